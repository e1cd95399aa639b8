"""Calls to servers, good and bad ones: a clear result each time, the server told, nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from runtime.events import McpConnected, McpLost, Warned
from runtime.mcps.entry import Entry
from runtime.mcps.link import Gone

Way = Callable[..., Entry]


async def test_a_server_s_tools_are_listed_and_called_under_names_of_their_own(bench: Any, wayward: Way) -> None:
    """A server's tools are listed and called under names of their own."""
    async with bench(wayward()) as it:
        result = await it.call("way_echo", word="hello")
        assert ("ok", '{"word": "hello"}') == (result.kind, result.content)
        (connected,) = it.of(McpConnected)
        assert ("way", "echo") == (connected.server, connected.tools[0])


async def test_an_argument_may_have_any_name(bench: Any, wayward: Way) -> None:
    """An argument may have any name, also that of the context."""
    async with bench(wayward()) as it:
        assert '{"ctx": 1, "self": 2}' == (await it.call("way_echo", ctx=1, self=2)).content


async def test_progress_is_shown_while_a_call_runs(bench: Any, wayward: Way) -> None:
    """Progress is shown while a call runs."""
    async with bench(wayward()) as it:
        await it.call("way_sleep", seconds=0.3)
        assert ["sleeping (1/3)\n", "sleeping (2/3)\n", "sleeping (3/3)\n"] == it.shown


async def test_a_call_that_takes_too_long_is_ended_and_the_server_told(
    bench: Any, wayward: Way, tmp_path: Path
) -> None:
    """A call that takes too long is ended, the server is told, and the next call works."""
    log = tmp_path / "log"
    async with bench(wayward(timeout=0.3, env={"WAYWARD_LOG": str(log)})) as it:
        result = await it.call("way_hang")
        assert result.is_error
        assert "did not answer hang within 0.3 s" in result.content
        assert "ok" == (await it.call("way_echo")).kind
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    hang = next(each["id"] for each in sent if each.get("params", {}).get("name") == "hang")
    assert [hang] == [each["params"]["requestId"] for each in sent if each["method"] == "notifications/cancelled"]


async def test_a_cancelled_call_tells_the_server(bench: Any, wayward: Way, tmp_path: Path) -> None:
    """A cancelled call tells the server."""
    log = tmp_path / "log"
    async with bench(wayward(env={"WAYWARD_LOG": str(log)})) as it:
        with trio.move_on_after(0.2):
            await it.call("way_sleep", seconds=20)
        assert "ok" == (await it.call("way_echo")).kind
    assert "notifications/cancelled" in log.read_text()


async def test_calls_run_side_by_side(bench: Any, wayward: Way) -> None:
    """Calls to one server run side by side, and each gets its own answer."""
    answers: list[str] = []

    async def one(number: int) -> None:
        await it.call("way_sleep", seconds=0.1)
        answers.append((await it.call("way_echo", number=number)).content)

    async with bench(wayward()) as it:
        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(one, number)
    assert {f'{{"number": {number}}}' for number in range(8)} == set(answers)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("die", {}, "was lost during the call: it ended by signal 9; its last words:\nI am not well"),
        ("half", {}, "was lost during the call: it ended with exit code 0"),
        ("close", {}, "was lost during the call: it closed the connection"),
        ("lies", {}, "answered with a result that its own schema forbids"),
        ("malformed", {}, "the answer is malformed"),
        ("big", {"size": 50_000_000}, "the answer is 500000"),
        ("nothing", {}, "there is no tool 'way_nothing'"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_a_clear_error(
    bench: Any, wayward: Way, name: str, arguments: dict[str, Any], said: str
) -> None:
    """What goes wrong in a call is a clear error result, at once."""
    async with bench(wayward()) as it:
        with trio.fail_after(30):
            result = await it.call(f"way_{name}", **arguments)
        assert "error" == result.kind
        assert said in result.content


async def test_a_server_that_died_is_started_again(bench: Any, wayward: Way, until: Any) -> None:
    """A server that died is started again; until then its calls fail at once and say when it is tried again."""
    async with bench(wayward()) as it:
        await it.call("way_die")
        await until(lambda: bool(it.of(McpLost)))
        during = await it.call("way_echo")
        assert re.search(
            r"the MCP server way is (down: it ended by signal 9.*tried again|not there yet)", during.content, re.S
        )
        await until(lambda: len(it.of(McpConnected)) == 2)
        assert "ok" == (await it.call("way_echo")).kind
        assert ["way"] == [lost.server for lost in it.of(McpLost)]


async def test_a_server_that_dies_while_idle_is_noticed(bench: Any, wayward: Way, until: Any) -> None:
    """A server that dies while nobody calls it is noticed and told."""
    async with bench(wayward()) as it:
        with trio.move_on_after(0.05):
            await it.call("way_close")
        await until(lambda: bool(it.of(McpLost)))
        assert "it closed the connection" == it.of(McpLost)[0].why


@pytest.mark.parametrize("modes", [("banner",), ("latin",), ("banner", "latin")])
async def test_noise_before_the_first_message_does_no_harm(bench: Any, wayward: Way, modes: tuple[str, ...]) -> None:
    """A greeting on the output, or bytes that are no UTF-8, do no harm."""
    async with bench(wayward(*modes)) as it:
        assert "ok" == (await it.call("way_echo")).kind


async def test_noise_among_the_messages_does_no_harm(bench: Any, wayward: Way) -> None:
    """Garbage between messages, 20 MB on standard error and an answer for nobody do no harm."""
    async with bench(wayward(timeout=20)) as it:
        assert "garbled" == (await it.call("way_garble")).content
        assert "flooded" == (await it.call("way_flood", lines=20_000)).content
        with trio.move_on_after(0.2):
            await it.call("way_wrong")
        assert "ok" == (await it.call("way_echo")).kind


async def test_a_large_result_is_shortened_for_the_model(bench: Any, wayward: Way) -> None:
    """A result of ten million characters is taken, and shortened for the model."""
    async with bench(wayward()) as it:
        result = await it.call("way_big", size=10_000_000)
        assert "ok" == result.kind
        assert len(result.content) < 40_000
        assert "left out" in result.content


@pytest.mark.parametrize(
    ("mode", "tools"),
    [
        ("pages", [f"way_tool{page}" for page in range(5)]),
        ("circle", ["way_only"]),
        ("odd-tool", ["way_good"]),
        ("twice", ["way_echo"]),
    ],
)
async def test_odd_lists_of_tools_give_what_is_good_of_them(
    bench: Any, wayward: Way, mode: str, tools: list[str]
) -> None:
    """All pages of a list are read, one that never ends is not, and what is no tool costs nothing but itself."""
    async with bench(wayward(mode)) as it:
        assert tools == [tool.name for tool in it.fleet.tools_of(["way"])]
        if mode == "odd-tool":
            assert ["tools of the MCP server way that are none: 'bad', one without a name"] == [
                each.text for each in it.of(Warned)
            ]


async def test_a_server_that_quits_at_once_says_why(bench: Any, wayward: Way) -> None:
    """A server that quits at once is lost with its exit code and its last words; no exception gets out."""
    async with bench(wayward("quits")) as it:
        assert "it ended with exit code 3; its last words:\nno settings found" == it.of(McpLost)[0].why
        assert [] == it.fleet.tools_of(["way"])


async def test_a_server_that_never_answers_is_given_its_time(bench: Any, wayward: Way) -> None:
    """A server that never answers to the first request is given its time, no more."""
    with trio.fail_after(10):
        async with bench(wayward("silent", startup_timeout=0.5)) as it:
            assert "it did not answer within 0.5 s" in it.of(McpLost)[0].why


async def test_a_program_that_is_not_there_is_not_tried_again(bench: Any) -> None:
    """A program that is not there is told and not tried again."""
    async with bench(Entry("gone", command="no-such-program-anywhere")) as it:
        state = it.fleet.links["gone"].state
        assert isinstance(state, Gone)
        assert "cannot start no-such-program-anywhere: No such file or directory" == state.why


async def test_a_variable_that_is_not_set_is_told(bench: Any) -> None:
    """A variable that is not set is told with the place that names it."""
    entry = Entry("x", command="true", env={"KEY": "${SURELY_NOT_SET_HERE}"}, path="elenco.yaml", line=7)
    async with bench(entry) as it:
        assert "the variable SURELY_NOT_SET_HERE is not set (elenco.yaml:7)" == it.fleet.links["x"].state.why


@pytest.mark.parametrize("modes", [("deaf",), ("stubborn",), ("child",), ("daemon",), ("child", "daemon", "stubborn")])
async def test_nothing_of_a_server_is_left_behind(
    bench: Any, wayward: Way, is_alive: Callable[[int], bool], modes: tuple[str, ...]
) -> None:
    """Nothing of a server is left behind, whatever it ignores and whatever it has started, within seconds."""
    with trio.fail_after(15):
        async with bench(wayward(*modes)) as it:
            assert "ok" == (await it.call("way_echo")).kind
            words = list(it.fleet.links["way"].witness.words)
    pids = [int(word.split()[1]) for word in words]
    assert len(set(modes) & {"child", "daemon"}) == len(pids)
    assert not any(map(is_alive, pids))


async def test_new_tools_are_noticed(bench: Any, wayward: Way, until: Any) -> None:
    """A server that says that its tools have changed is asked for them again."""
    async with bench(wayward()) as it:
        before = it.fleet.version
        await it.call("way_grow", name="fresh")
        await until(lambda: bool(it.fleet.version != before))
        assert "way_fresh" in [tool.name for tool in it.fleet.tools_of(["way"])]


async def test_a_picture_comes_as_a_picture(bench: Any, wayward: Way) -> None:
    """An image in a result is an image for the model."""
    async with bench(wayward()) as it:
        (image,) = (await it.call("way_picture")).images
        assert ("image/png", "aGVsbG8=") == (image.media_type, image.data)


async def test_hints_count_from_trusted_servers_alone(bench: Any, wayward: Way) -> None:
    """What a server says of a tool's effects counts if the settings trust it, and only then."""
    async with bench(wayward(), wayward(name="known", trust=True)) as it:
        tools = {tool.name: tool for tool in it.fleet.tools_of(["way", "known"])}
        assert ("once", "none", "once") == (
            tools["way_echo"].effects,
            tools["known_echo"].effects,
            tools["known_sleep"].effects,
        )


async def test_only_wanted_tools_are_offered(bench: Any, wayward: Way) -> None:
    """Where the settings name the tools that are wanted, no other is offered."""
    async with bench(wayward(tools=("echo",))) as it:
        assert ["way_echo"] == [tool.name for tool in it.fleet.tools_of(["way"])]


async def test_a_disabled_server_is_not_started(bench: Any, wayward: Way) -> None:
    """A disabled server is not started."""
    async with bench(wayward(disabled=True)) as it:
        assert "it is disabled" in it.fleet.links["way"].outage()


async def test_the_workspace_is_the_root_a_server_is_told(bench: Any, wayward: Way, tmp_path: Path) -> None:
    """A server that asks for roots is told the workspace."""
    async with bench(wayward()) as it:
        found = json.loads((await it.call("way_ask_roots")).content)
        assert [{"uri": tmp_path.as_uri(), "name": "workspace"}] == found["roots"]


async def test_without_an_agent_nobody_answers_for_a_human(bench: Any, wayward: Way) -> None:
    """A server that wants a human or a model is refused where there is none, and its call goes on."""
    async with bench(wayward()) as it:
        assert {"action": "cancel"} == json.loads((await it.call("way_ask_human")).content)
        assert "there is nobody to ask" in (await it.call("way_ask_model")).content
