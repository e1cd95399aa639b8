"""Agents with servers: in a whole run, over a resume, without trust, with a human and a model behind a call."""

from __future__ import annotations

import json
import os
import random
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run
from runtime.definitions import Definition, Permissions
from runtime.errors import UsageError
from runtime.events import (
    BudgetSettled,
    McpConnected,
    McpLost,
    McpSwitched,
    PermissionDecided,
    PrefixChanged,
    QuestionAnswered,
    QuestionAsked,
    ToolFinished,
    ToolStarted,
)
from runtime.journal import MemoryJournal
from runtime.journal.replay import replay
from runtime.limits.limits import Limits
from runtime.mcps.entry import Entry
from runtime.outline import RunOptions
from runtime.providers.script import read_script
from runtime.providers.scripted import ScriptedProvider
from runtime.simulate.stage import staged
from runtime.steering import Steering
from runtime.watch.commands import Continue, Hold, SwitchServer
from tests.journal.watched import Watched

Way = Callable[..., Entry]
FULL = bool(os.environ.get("ELENCO_FULL"))


@attrs.define(eq=False)
class Play:
    """One agent `lead` with servers, playing a script; `journal` keeps its record."""

    folder: Path
    servers: dict[str, Entry]
    script: str
    subagents: tuple[str, ...] = ()
    allow: tuple[str, ...] = ("mcp(way/*)",)
    headless: bool = True
    limits: Limits = Limits()
    journal: MemoryJournal = attrs.Factory(MemoryJournal)

    @asynccontextmanager
    async def opened(self, resumption: Resumption | None = None) -> AsyncGenerator[LiveRun]:
        provider = ScriptedProvider(read_script("s.yaml", textwrap.dedent(self.script)))
        agents = [
            Definition(
                name,
                f"The {name}.",
                "Do it.",
                path=f"agents/{name}.md",
                mcps=tuple(self.servers),
                subagents=self.subagents if name == "lead" else (),
                permissions=Permissions(),
            )
            for name in ("lead", *self.subagents)
        ]
        options = RunOptions(
            agent="lead",
            task="go",
            workspace=self.folder,
            allow=self.allow,
            headless=self.headless,
            limits=self.limits,
        )
        ready = staged(options, agents, model="scripted/s", providers={"scripted/s": provider})
        async with open_run(
            attrs.evolve(ready, servers=self.servers), self.journal, "t1", resumption=resumption
        ) as live:
            live.run.chance = random.Random(0)
            yield live

    async def run(self) -> str:
        with trio.fail_after(60):
            async with self.opened() as live:
                report = await live.report()
        assert report is not None
        return report.status

    def of(self, kind: type[Any]) -> list[Any]:
        return [record.event for record in self.journal.records if isinstance(record.event, kind)]

    @property
    def results(self) -> list[str]:
        return [event.result for event in self.of(ToolFinished)]


async def test_an_agent_uses_the_tools_of_its_server(tmp_path: Path, wayward: Way) -> None:
    """An agent uses its server's tools under the rules; the server is connected once and is not lost at the end."""
    play = Play(
        tmp_path,
        {"way": wayward()},
        """
        lead:
          - calls: [{name: way_echo, arguments: {a: 1}}]
          - text: done
        """,
    )
    assert ("completed", ['{"a": 1}']) == (await play.run(), play.results)
    assert [("allow: mcp(way/*)", "own: flag")] == [(each.rule, each.by) for each in play.of(PermissionDecided)]
    assert (1, 0) == (len(play.of(McpConnected)), len(play.of(McpLost)))


async def test_a_call_no_rule_allows_asks(tmp_path: Path, wayward: Way) -> None:
    """A call that no rule allows asks; one that a rule denies is refused."""
    script = """
        lead:
          - calls: [{name: way_echo}]
          - text: done
        """
    play = Play(tmp_path, {"way": wayward()}, script, allow=())
    with trio.fail_after(30):
        async with play.opened() as live:
            assert await live.report() is None
    assert ["ask"] == [each.verdict for each in play.of(PermissionDecided)]


async def test_a_run_goes_on_through_an_outage(tmp_path: Path, wayward: Way) -> None:
    """A run goes on through its server's death: clear errors, then the server is back."""
    calls = "\n".join("          - calls: [{name: way_echo}]" for _ in range(3))
    play = Play(
        tmp_path,
        {"way": wayward()},
        f"""
        lead:
          - calls: [{{name: way_die}}]
{calls}
          - stall: 3
            calls: [{{name: way_echo}}]
          - text: done
        """,
    )
    assert "completed" == await play.run()
    died, *down, back = play.results
    assert "was lost during the call: it ended by signal 9" in died
    assert all("MCP server way" in result for result in down)
    assert "{}" == back
    assert (2, 1) == (len(play.of(McpConnected)), len(play.of(McpLost)))


async def test_an_agent_goes_without_a_server_that_cannot_be_reached(tmp_path: Path) -> None:
    """An agent goes without a server that cannot be reached; the reason is on record."""
    play = Play(tmp_path, {"way": Entry("way", command="no-such-program")}, "lead: [{text: done}]")
    assert "completed" == await play.run()
    assert ["cannot start no-such-program: No such file or directory"] == [each.why for each in play.of(McpLost)]


async def test_a_call_to_a_server_that_never_came_up_says_why(tmp_path: Path) -> None:
    """A model that calls a tool of a server that never came up reads why that is not there, not the nearest name."""
    script = """
        lead:
          - calls: [{name: way_echo}, {name: other_echo}]
          - text: done
        """
    play = Play(tmp_path, {"way": Entry("way", command="no-such-program")}, script)
    assert "completed" == await play.run()
    why = "the MCP server way cannot be used: cannot start no-such-program: No such file or directory"
    assert [f"there is no tool 'way_echo': {why}. Your tools: ", "there is no tool 'other_echo'. Your tools: "] == [
        result.removesuffix("read_result").removesuffix("none") for result in play.results
    ]


async def test_changed_tools_come_with_the_next_turn(tmp_path: Path, wayward: Way) -> None:
    """Tools that a server adds during a run come with a later turn, on record as a changed prefix."""
    play = Play(
        tmp_path,
        {"way": wayward()},
        """
        lead:
          - calls: [{name: way_grow, arguments: {name: fresh}}]
          - stall: 1
            calls: [{name: way_echo}]
          - calls: [{name: way_fresh}]
          - text: done
        """,
    )
    assert "completed" == await play.run()
    (changed,) = play.of(PrefixChanged)
    assert "the tools of way have changed" == changed.why
    assert "way_fresh" in [tool["name"] for tool in changed.tools]
    assert "no tool fresh" == play.results[-1]


async def test_a_server_is_taken_out_of_a_run_and_brought_back(tmp_path: Path, wayward: Way, until: Any) -> None:
    """A person takes a server out of a live run and brings it back: its tools go and come, and all is on record."""
    play = Play(
        tmp_path,
        {"way": wayward(), "spare": wayward(name="spare", disabled=True)},
        """
        lead:
          - calls: [{name: way_echo}]
          - calls: [{name: way_sleep, arguments: {seconds: 20}}]
          - stall: 0.5
            calls: [{name: way_echo}]
          - calls: [{name: way_echo}, {name: spare_echo}]
          - text: done
        """,
        allow=("mcp(*/*)",),
    )
    with trio.fail_after(30):
        async with play.opened() as live:
            steering = Steering(live)
            await until(lambda: len(play.of(ToolStarted)) == 2)
            with pytest.raises(UsageError, match="names the MCP server 'wya'; did you mean 'way'"):
                await steering.run(SwitchServer(server="wya", on=False))
            with pytest.raises(UsageError, match="way is enabled already"):
                await steering.run(SwitchServer(server="way", on=True))
            await steering.run(SwitchServer(server="way", on=False, by="ada"))
            await until(lambda: len(play.results) == 2)
            await until(lambda: len(play.of(PrefixChanged)) == 1)
            assert set() == {tool["name"] for tool in play.of(PrefixChanged)[0].tools}
            await steering.run(Hold())
            for server in ("way", "spare"):
                await steering.run(SwitchServer(server=server, on=True))
            await until(lambda: len(play.of(McpConnected)) == 3)
            await steering.run(Continue())
            await live.report()
    assert "was lost during the call: it was disabled" in play.results[1]
    assert ["there is no tool 'way_echo'. Your tools: none", "{}", "{}"] == play.results[2:]
    assert [("way", False, "ada"), ("way", True, "you"), ("spare", True, "you")] == [
        (each.server, each.on, each.by) for each in play.of(McpSwitched)
    ]
    assert ["way", "way", "spare"] == sorted((each.server for each in play.of(McpConnected)), reverse=True)


async def test_a_server_stays_out_of_a_resumed_run(tmp_path: Path, wayward: Way, until: Any) -> None:
    """A server that was taken out of a run stays out when the run is resumed."""
    script = """
        lead:
          - calls: [{name: way_echo}]
          - stall: 600
            calls: [{name: way_echo}]
          - text: done
        """
    play = Play(tmp_path, {"way": wayward()}, script)
    with trio.fail_after(30):
        async with play.opened() as live:
            await until(lambda: bool(play.results))
            await Steering(live).run(SwitchServer(server="way", on=False))
            live.run.suspend()
    play.journal = play.journal.crash(0)
    play.script = script.replace("600", "0")
    state = replay(play.journal.records)
    with trio.fail_after(30):
        async with play.opened(Resumption(state, Limits.from_json(state.limits))) as live:
            await live.report()
    assert "there is no tool 'way_echo'" in play.results[-1]
    assert 1 == len(play.of(McpConnected))


async def test_a_child_s_server_is_started_when_the_child_is_hired(tmp_path: Path, wayward: Way) -> None:
    """Parent and child share one connection to a server."""
    play = Play(
        tmp_path,
        {"way": wayward()},
        """
        lead:
          - calls: [{name: delegate_to_aide, arguments: {task: echo}}]
          - text: done
        aide:
          - calls: [{name: way_echo, arguments: {b: 2}}]
          - text: echoed
        """,
        subagents=("aide",),
    )
    assert ("completed", '{"b": 2}') == (await play.run(), play.results[0])
    assert 1 == len(play.of(McpConnected))


async def test_a_childs_servers_start_after_its_call_is_on_record(tmp_path: Path, wayward: Way) -> None:
    """A child that names servers begins when the call that sent it is durable: a server is a process of its own."""
    script = """
        lead:
          - calls: [{name: delegate_to_aide, arguments: {task: help}}]
          - text: done
        aide: [{text: helped}]
        """
    play = Play(tmp_path, {"way": wayward()}, script, subagents=("aide",), journal=(journal := Watched()))
    assert "completed" == await play.run()
    assert journal.recorded


async def test_a_resumed_run_has_the_tools_on_record_while_their_server_is_down(
    tmp_path: Path, wayward: Way, until: Any
) -> None:
    """A resumed run keeps the tools its model was shown while their server is down; their calls say so."""
    script = """
        lead:
          - calls: [{name: way_echo, arguments: {a: 1}}]
          - stall: 600
            calls: [{name: way_echo, arguments: {a: 2}}]
          - text: done
        """
    play = Play(tmp_path, {"way": wayward()}, script)
    with trio.fail_after(30):
        async with play.opened() as live:
            await until(lambda: bool(play.results))
            live.run.suspend()
    play.journal = play.journal.crash(0)
    play.servers = {"way": Entry("way", command="no-such-program")}
    play.script = script.replace("600", "0")
    state = replay(play.journal.records)
    with trio.fail_after(30):
        async with play.opened(Resumption(state, Limits.from_json(state.limits))) as live:
            report = await live.report()
    assert report is not None
    assert "completed" == report.status
    assert "cannot be used: cannot start no-such-program" in play.results[-1]


async def test_a_server_asks_the_agent_s_human(tmp_path: Path, wayward: Way, until: Any) -> None:
    """A server's form becomes a question; what does not fit is asked again; the answer goes back to the server."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    play = Play(
        tmp_path,
        {"way": wayward(timeout=5)},
        f"""
        lead:
          - calls: [{{name: way_ask_human, arguments: {{schema: {json.dumps(schema)}}}}}]
          - text: done
        """,
        headless=False,
    )
    with trio.fail_after(30):
        async with play.opened() as live:
            for number, answer in ((1, "many"), (2, "7")):
                await until(lambda id=f"q{number}": [id] == [each.id for each in live.questions.pending])
                await live.questions.answer(f"q{number}", answer, "you")
            await live.report()
    assert {"action": "accept", "content": {"n": 7}} == json.loads(play.results[0])
    first, second = play.of(QuestionAsked)
    assert first.text.startswith("The MCP server way asks: Which word?")
    assert second.text.startswith("That does not fit: n is a number.")


async def test_with_nobody_there_a_form_is_cancelled_and_the_run_goes_on(tmp_path: Path, wayward: Way) -> None:
    """With nobody there a form is cancelled, and the run is not suspended."""
    play = Play(
        tmp_path,
        {"way": wayward()},
        """
        lead:
          - calls: [{name: way_ask_human}]
          - text: done
        """,
    )
    assert "completed" == await play.run()
    assert {"action": "cancel"} == json.loads(play.results[0])


@pytest.mark.parametrize(("sampling", "said"), [("allow", "I am a model"), ("deny", "")])
async def test_a_server_asks_the_agent_s_model(tmp_path: Path, wayward: Way, sampling: Any, said: str) -> None:
    """A server gets a reply of the agent's model where the settings let it; it is paid from the agent's budget."""
    play = Play(
        tmp_path,
        {"way": wayward(sampling=sampling)},
        """
        lead:
          - calls: [{name: way_ask_model}]
            usage: {input: 10, output: 10}
          - text: I am a model
            usage: {input: 100, output: 20}
        """,
    )
    assert "completed" == await play.run()
    answer: Any = json.loads(play.results[0])
    assert said == (answer["content"]["text"] if "content" in answer else "")
    paid = [each.usage["output"] for each in play.of(BudgetSettled)]
    assert ([10, 20, 20] if sampling == "allow" else [10, 20]) == paid


@pytest.mark.parametrize(("answer", "said"), [("yes", "I am a model"), ("no", "the user refused")])
async def test_a_person_decides_whether_a_server_gets_the_model(
    tmp_path: Path, wayward: Way, until: Any, answer: str, said: str
) -> None:
    """Where the settings do not say, a person is asked whether a server may have an answer of the agent's model."""
    play = Play(
        tmp_path,
        {"way": wayward()},
        """
        lead:
          - calls: [{name: way_ask_model}]
          - text: I am a model
          - text: done
        """,
        headless=False,
    )
    with trio.fail_after(30):
        async with play.opened() as live:
            await until(lambda: bool(live.questions.pending))
            assert "The MCP server way wants an answer of your model" in play.of(QuestionAsked)[0].text
            await live.questions.answer("q1", answer, "you")
            await live.report()
    assert said in play.results[0]


async def test_cancelling_a_run_while_a_server_is_awaited_ends_it(tmp_path: Path, wayward: Way) -> None:
    """A run that is cancelled while it waits for a server to start ends at once, cancelled."""
    play = Play(tmp_path, {"way": wayward("silent", startup_timeout=60)}, "lead: [{text: done}]")
    with trio.fail_after(20):
        async with play.opened() as live:
            await trio.sleep(0.2)
            live.cancel()
            report = await live.report()
    assert report is not None
    assert "cancelled" == report.status


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        ("mcp-server-time", "auto"),
        ("mcp-server-git", "auto"),
        ("mcp-server-fetch", "legacy"),
        *([("mcp-server-time", "legacy"), ("mcp-server-git", "legacy"), ("mcp-server-fetch", "auto")] if FULL else []),
    ],
)
async def test_servers_nobody_here_wrote_are_listed_and_called(
    bench: Any, tmp_path: Path, command: str, mode: Any
) -> None:
    """Servers nobody here wrote are listed and called in both dialects of the protocol."""
    program = Path(sys.executable).with_name(command)
    if not program.exists():
        pytest.skip(f"{command} is not installed")
    call: dict[str, tuple[str, dict[str, Any], str]] = {
        "mcp-server-time": ("x_get_current_time", {"timezone": "Asia/Tokyo"}, '"timezone": "Asia/Tokyo"'),
        "mcp-server-git": ("x_git_status", {"repo_path": str(tmp_path)}, "No commits yet"),
        "mcp-server-fetch": ("x_fetch", {"url": "http://127.0.0.1:9/"}, "127.0.0.1"),
    }
    name, arguments, said = call[command]
    if command == "mcp-server-git":
        await trio.run_process(["git", "init", "-q", str(tmp_path)])
    async with bench(Entry("x", command=str(program), mode=mode)) as it:
        result = await it.call(name, **arguments)
        assert said in result.content


async def interrupted_at_a_form(play: Play, until: Any, *answers: str) -> None:
    """Suspend a run in which a server waits for its form; give the answers, then go on."""
    with trio.fail_after(30):
        async with play.opened() as live:
            for number, answer in enumerate(answers, 1):
                await until(lambda id=f"q{number}": [id] == [each.id for each in live.questions.pending])
                if number < len(answers):
                    await live.questions.answer(f"q{number}", answer, "you")
            live.run.suspend()
    play.journal = play.journal.crash(0)
    state = replay(play.journal.records)
    waiting = f"q{len(answers)}"
    assert [waiting] == [each.id for each in state.pending_questions]
    (call,) = state.actors["lead"].open_calls
    assert waiting == call.question, "whoever watches sees what the call waits for"
    play.journal.append(QuestionAnswered(id=waiting, answer=answers[-1], by="ada"))
    state = replay(play.journal.records)
    play.headless = True
    with trio.fail_after(30):
        async with play.opened(Resumption(state, Limits.from_json(state.limits))) as live:
            report = await live.report()
            assert () == live.questions.pending
    assert report is not None
    assert "completed" == report.status
    assert {} == replay(play.journal.records).pending


FORM = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
ASKING = """
    lead:
      - calls: [{{name: way_ask_human, arguments: {{schema: {form}}}}}]
      - text: done
    """


async def test_a_form_answered_after_a_crash_reaches_the_call_that_is_made_again(
    tmp_path: Path, wayward: Way, until: Any
) -> None:
    """A call made again gets what was answered, misfits included, when its server asks the same again."""
    server = wayward("repeatable", trust=True, timeout=20)
    play = Play(tmp_path, {"way": server}, ASKING.format(form=FORM), headless=False)
    await interrupted_at_a_form(play, until, "many", "7")
    assert {"action": "accept", "content": {"n": 7}} == json.loads(play.results[0])
    assert ["q1", "q2"] == [each.id for each in play.of(QuestionAsked)]


async def test_a_form_with_another_question_is_not_answered_with_the_old_answer(
    tmp_path: Path, wayward: Way, until: Any
) -> None:
    """What a server asks differently the second time is a new question; with nobody there it is cancelled."""
    server = wayward("repeatable", "moody", trust=True, timeout=20)
    play = Play(tmp_path, {"way": server}, ASKING.format(form=FORM), headless=False)
    await interrupted_at_a_form(play, until, "7")
    assert {"action": "cancel"} == json.loads(play.results[0])


async def test_of_a_call_that_may_have_taken_effect_the_model_reads_what_it_had_asked(
    tmp_path: Path, wayward: Way, until: Any
) -> None:
    """A call that is not made again is told as unknown, with the question and the answer that may be lost."""
    play = Play(tmp_path, {"way": wayward(timeout=20)}, ASKING.format(form=FORM), headless=False)
    await interrupted_at_a_form(play, until, "7")
    (told,) = play.of(ToolFinished)
    assert "unknown" == told.kind
    assert "it may have taken effect" in told.result
    assert "while it ran it asked 'The MCP server way asks: Which word?" in told.result
    assert "the answer '7' may not have reached it" in told.result
