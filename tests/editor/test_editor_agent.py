"""What an editor sees of an agent: answers, thoughts, calls with diffs, plans, permissions, modes, cancel, load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from runtime.editor.rpc import INVALID_PARAMS, INVALID_REQUEST, NO_METHOD, RpcError

if TYPE_CHECKING:
    from .conftest import Open
else:
    Open = Any

WRITES = """
    scribe:
      - text: "I will write it down."
        calls: [{name: write_file, arguments: {path: a.txt, content: "hello\\n"}}]
      - text: "It is written."
"""
PLAIN = "scribe: [{text: first answer}, {text: second answer}]"


async def test_the_first_words_tell_version_and_capabilities(opened: Open) -> None:
    """Initialize tells the protocol's version and what the agent can do."""
    async with opened(PLAIN) as editor:
        found = await editor.peer.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    assert (1, True, []) == (found["protocolVersion"], found["agentCapabilities"]["loadSession"], found["authMethods"])
    assert "elenco" == found["agentInfo"]["name"]


async def test_a_prompt_is_answered_in_chunks(opened: Open) -> None:
    """A prompt's answer comes in chunks, then the turn ends with what it used."""
    async with opened(PLAIN) as editor:
        session = await editor.begin()
        done = await editor.prompt(session, "hello")
    assert ("end_turn", "first answer") == (done["stopReason"], editor.said())
    assert done["usage"]["outputTokens"] > 0


async def test_the_next_prompt_goes_on_where_the_last_one_ended(opened: Open) -> None:
    """A session's next prompt continues the conversation."""
    async with opened(PLAIN) as editor:
        session = await editor.begin()
        await editor.prompt(session, "hello")
        await editor.prompt(session, "and now?")
    assert "first answersecond answer" == editor.said()


async def test_a_call_is_shown_asked_about_and_ends_with_its_diff(opened: Open) -> None:
    """A call that asks goes through the editor's permission request; its end shows the diff of the file."""
    read = "scribe:\n      - calls: [{name: read_file, arguments: {path: a.txt}}]"
    async with opened(WRITES.replace("scribe:", read)) as editor:
        (editor.workspace / "a.txt").write_text("old\n")
        session = await editor.begin()
        done = await editor.prompt(session, "write")
    assert "end_turn" == done["stopReason"]
    [request] = editor.asked
    assert ["allow_once", "allow_always", "reject_once"] == [each["kind"] for each in request["options"]]
    assert {"path": "a.txt", "content": "hello\n"} == request["toolCall"]["rawInput"]
    read_call, call = editor.of("tool_call")
    assert "read" == read_call["kind"]
    path = str(editor.workspace / "a.txt")
    assert ("write_file a.txt", "edit", "pending", [{"path": path}]) == (
        call["title"], call["kind"], call["status"], call["locations"],
    )  # fmt: skip
    updates = [each for each in editor.of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
    assert ["in_progress", "completed"] == [each["status"] for each in updates]
    assert {call["toolCallId"]} == {each["toolCallId"] for each in updates} | {request["toolCall"]["toolCallId"]}
    assert {"type": "diff", "path": path, "oldText": "old\n", "newText": "hello\n"} == updates[-1]["content"][0]
    assert "hello\n" == (editor.workspace / "a.txt").read_text()


@pytest.mark.parametrize("kind", ["reject_once", None])
async def test_a_refused_call_does_not_run(opened: Open, kind: str | None) -> None:
    """What the human refuses, or does not choose, is not done; the model goes on."""
    async with opened(WRITES) as editor:
        editor.choose = lambda params: kind
        session = await editor.begin()
        done = await editor.prompt(session, "write")
    assert ("end_turn", "failed") == (done["stopReason"], editor.of("tool_call_update")[-1]["status"])
    assert not (editor.workspace / "a.txt").exists()


async def test_what_is_always_allowed_is_not_asked_again(opened: Open) -> None:
    """Allowed always, the same call is not asked about in the next prompt."""
    async with opened(
        "scribe: [" + "{calls: [{name: write_file, arguments: {path: a.txt, content: x}}]}, {text: done}, " * 2 + "]"
    ) as editor:
        editor.choose = lambda params: "allow_always"
        session = await editor.begin()
        await editor.prompt(session, "write")
        await editor.prompt(session, "again")
    assert 1 == len(editor.asked)


async def test_a_cancelled_prompt_ends_as_cancelled(opened: Open) -> None:
    """Cancelled while the model works, a prompt ends with the stop reason cancelled, and the session goes on."""
    async with opened("scribe: [{stall: 1000, text: never}, {text: later}]") as editor:
        session = await editor.begin()
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await trio.sleep(0.2)
                await editor.peer.notify("session/cancel", {"sessionId": session})

            nursery.start_soon(cancel)
            with trio.fail_after(20):
                done = await editor.prompt(session, "hello")
        assert "cancelled" == done["stopReason"]


async def test_a_prompt_that_waits_for_permission_can_be_cancelled(opened: Open) -> None:
    """Cancelled while a human is asked, a prompt ends as cancelled and the call does not run."""
    async with opened(WRITES) as editor:
        editor.choose = lambda params: "never"
        session = await editor.begin()
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await editor.until(lambda editor: editor.asked)
                await editor.peer.notify("session/cancel", {"sessionId": session})

            nursery.start_soon(cancel)
            with trio.fail_after(20):
                done = await editor.prompt(session, "write")
    assert "cancelled" == done["stopReason"]
    assert not (editor.workspace / "a.txt").exists()


async def test_a_plan_is_shown_as_it_changes(opened: Open) -> None:
    """The agent's list of what is to be done is the editor's plan."""
    script = """
        scribe:
          - calls: [{name: todo_write, arguments: {items: [{text: look, status: done}, {text: write, status: doing}]}}]
          - text: done
    """
    async with opened(script) as editor:
        session = await editor.begin()
        await editor.prompt(session, "plan")
    [plan] = editor.of("plan")
    assert [("look", "completed"), ("write", "in_progress")] == [(e["content"], e["status"]) for e in plan["entries"]]


async def test_the_mode_says_what_needs_asking(opened: Open) -> None:
    """In the mode accept-edits nobody is asked about an edit, in the mode plan it is refused."""
    async with opened(WRITES) as editor:
        session = await editor.begin()
        await editor.peer.request("session/set_mode", {"sessionId": session, "modeId": "accept-edits"})
        await editor.prompt(session, "write")
        assert [] == editor.asked
        assert (editor.workspace / "a.txt").exists()
        [changed] = editor.of("current_mode_update")
        assert "accept-edits" == changed["currentModeId"]
    async with opened(WRITES, mode="plan") as editor:
        (editor.workspace / "a.txt").unlink()
        session = await editor.begin()
        await editor.prompt(session, "write")
        assert not (editor.workspace / "a.txt").exists()


async def test_a_question_with_options_is_put_to_the_human(opened: Open) -> None:
    """An agent's question with options is put as a choice; the answer goes back to it."""
    script = """
        scribe:
          - calls: [{name: ask_user, arguments: {question: "Which?", options: [red, blue]}}]
          - text: done
    """
    async with opened(script, yes=True) as editor:
        session = await editor.begin()
        await editor.prompt(session, "ask")
    [request] = editor.asked
    assert ["red", "blue", "None of these"] == [each["name"] for each in request["options"]]
    assert "red" in editor.of("tool_call_update")[-1]["rawOutput"]["result"]


async def test_a_session_is_loaded_with_what_was_said(opened: Open) -> None:
    """A loaded session shows the conversation again, calls and results with it, and goes on from there."""
    script = WRITES + "      - text: The third.\n"
    async with opened(script) as editor:
        session = await editor.begin()
        await editor.prompt(session, "write")
    async with opened(script) as editor:
        await editor.peer.request("initialize", {"protocolVersion": 1})
        found = await editor.peer.request(
            "session/load", {"sessionId": session, "cwd": str(editor.workspace), "mcpServers": []}
        )
        assert "default" == found["modes"]["currentModeId"]
        assert ("write", "I will write it down.It is written.") == (editor.said("user_message_chunk"), editor.said())
        assert ["completed"] == [each["status"] for each in editor.of("tool_call_update")]
        editor.told.clear()
        done = await editor.prompt(session, "go on")
        assert ("end_turn", "The third.") == (done["stopReason"], editor.said())


async def test_a_limit_ends_a_turn_with_its_reason(opened: Open) -> None:
    """A turn that a limit has ended says so in its stop reason and in words."""
    from runtime.limits.limits import Limits

    script = "scribe: [{repeat: 5, text: x, calls: [{name: read_file, arguments: {path: agents/scribe.md}}]}]"
    async with opened(script, limits=Limits(max_steps=2)) as editor:
        session = await editor.begin()
        done = await editor.prompt(session, "read")
    assert "max_turn_requests" == done["stopReason"]
    assert "(stopped by max_steps" in editor.said()


async def test_a_failed_turn_is_an_error_and_the_session_lives_on(opened: Open) -> None:
    """A turn that fails is answered with an error that says why."""
    async with opened("scribe: [{text: one}]") as editor:
        session = await editor.begin()
        await editor.prompt(session, "one")
        with pytest.raises(RpcError, match="used up"):
            await editor.prompt(session, "two")


@pytest.mark.parametrize(
    ("method", "params", "code", "words"),
    [
        ("session/nwe", {}, NO_METHOD, "no method"),
        ("initialize", {"protocolVersion": "1"}, INVALID_PARAMS, "whole number"),
        ("session/new", {"cwd": "relative"}, INVALID_PARAMS, "absolute path"),
        ("session/new", {"cwd": "/no/such/folder"}, INVALID_PARAMS, "no folder"),
        ("session/prompt", {"sessionId": "x", "prompt": []}, INVALID_PARAMS, "no session"),
        ("session/load", {"sessionId": "../x", "cwd": "/"}, INVALID_PARAMS, "no session"),
        ("session/set_mode", {"sessionId": "x", "modeId": "y"}, INVALID_PARAMS, "no session"),
        ("authenticate", {"methodId": "x"}, INVALID_PARAMS, "sign in"),
    ],
)
async def test_a_wrong_request_is_answered_with_what_is_wrong(
    opened: Open, method: str, params: Any, code: int, words: str
) -> None:
    """A request that makes no sense is answered with an error that says what is wrong."""
    async with opened(PLAIN) as editor:
        with pytest.raises(RpcError, match=words) as caught:
            await editor.peer.request(method, params)
        assert code == caught.value.code


async def test_a_prompt_that_cannot_be_taken_is_refused(opened: Open) -> None:
    """An empty prompt, an image, and a second prompt at the same time are refused; links and attachments are taken."""
    async with opened("scribe: [{stall: 0.5, text: done}]") as editor:
        session = await editor.begin()
        for blocks, words in (
            ([], "empty"),
            ([{"type": "text", "text": "  "}], "empty"),
            ([{"type": "image", "data": "", "mimeType": "image/png"}], "cannot be taken"),
            ("hello", "list of content blocks"),
        ):
            with pytest.raises(RpcError, match=words):
                await editor.peer.request("session/prompt", {"sessionId": session, "prompt": blocks})
        attached: list[dict[str, Any]] = [
            {"type": "text", "text": "look at"},
            {"type": "resource_link", "name": "a", "uri": "file:///w/a%20b.txt"},
            {"type": "resource", "resource": {"uri": "file:///w/c.txt", "text": "content"}},
        ]
        async with trio.open_nursery() as nursery:

            async def first() -> None:
                await editor.peer.request("session/prompt", {"sessionId": session, "prompt": attached})

            nursery.start_soon(first)
            await trio.sleep(0.1)
            with pytest.raises(RpcError, match="under way") as caught:
                await editor.prompt(session, "me too")
            assert INVALID_REQUEST == caught.value.code


async def test_an_editor_that_leaves_takes_its_run_along(opened: Open) -> None:
    """When the editor leaves in the middle of a prompt, the run is cancelled and the agent ends."""
    with trio.fail_after(20):
        async with opened("scribe: [{stall: 1000, text: never}]") as editor:
            session = await editor.begin()
            async with trio.open_nursery() as nursery:

                async def ask() -> None:
                    with pytest.raises(RpcError):
                        await editor.prompt(session, "hello")

                nursery.start_soon(ask)
                await trio.sleep(0.2)
                await editor.stream.aclose()


async def test_what_is_not_saved_is_read_from_the_editor(opened: Open) -> None:
    """A file with unsaved changes is read as the editor shows it, and cannot be changed until it is saved."""
    script = """
        scribe:
          - calls: [{name: read_file, arguments: {path: a.txt}}, {name: read_file, arguments: {path: b.txt}}]
          - calls: [{name: write_file, arguments: {path: a.txt, content: over}}]
          - text: done
    """
    async with opened(script, yes=True) as editor:
        for name in ("a.txt", "b.txt"):
            (editor.workspace / name).write_text("on disk\n")
        editor.offers = {"fs": {"readTextFile": True}}
        editor.buffers[str(editor.workspace / "a.txt")] = "in the editor\n"
        session = await editor.begin()
        await editor.prompt(session, "read")
        results = [each["rawOutput"]["result"] for each in editor.of("tool_call_update") if "rawOutput" in each]
        assert any("not saved" in each and "1\tin the editor" in each for each in results)
        assert any(each == "b.txt: lines 1-1 of 1\n1\ton disk" for each in results)
        assert "on disk\n" == (editor.workspace / "a.txt").read_text()


async def test_what_is_written_is_told_to_the_editor(opened: Open) -> None:
    """Where the editor offers to write files, a written file is on disk and in the editor."""
    async with opened(WRITES) as editor:
        editor.offers = {"fs": {"readTextFile": True, "writeTextFile": True}}
        session = await editor.begin()
        await editor.prompt(session, "write")
        assert {str(editor.workspace / "a.txt"): "hello\n"} == editor.buffers
        assert "hello\n" == (editor.workspace / "a.txt").read_text()
