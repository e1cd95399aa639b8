"""Commands in a terminal of the editor: only where the user took the walls down, and ended with their call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

if TYPE_CHECKING:
    from .conftest import Open
else:
    Open = Any

RUNS = """
    scribe:
      - calls: [{name: shell, arguments: {command: "echo own", timeout: 1}}]
      - text: "done"
"""
FREE: dict[str, Any] = {"sandbox": "unsandboxed", "yes": True}


async def test_without_walls_a_command_runs_in_the_editors_terminal(opened: Open) -> None:
    """Where the user took the walls down, a command runs in the editor's terminal, which the call shows."""
    async with opened(RUNS, **FREE) as editor:
        editor.offers = {"terminal": True}
        session = await editor.begin()
        await editor.prompt(session, "go")
    assert ["create", "wait_for_exit", "output", "release"] == [each["method"] for each in editor.terminals]
    made = editor.terminals[0]
    assert ("bash", ["-c", "echo own"], str(editor.workspace)) == (made["command"], made["args"], made["cwd"])
    shown, ended = editor.of("tool_call_update")[-2:]
    assert [{"type": "terminal", "terminalId": "t1"}] == shown["content"]
    assert (shown["toolCallId"], "failed") == (ended["toolCallId"], ended["status"])
    assert "out\n[exit code 3; in the editor's terminal, no walls]" == ended["rawOutput"]["result"]


@pytest.mark.parametrize(
    ("options", "offers", "command"),
    [
        ({"yes": True}, {"terminal": True}, "echo own"),
        ({**FREE, "sandbox": "read-only"}, {"terminal": True}, "echo own"),
        (FREE, {"terminal": "yes"}, "echo own"),
        (FREE, {"terminal": True}, "echo own # no terminal"),
    ],
)
async def test_any_other_command_runs_here(
    opened: Open, options: dict[str, Any], offers: dict[str, Any], command: str
) -> None:
    """A command with walls, without an offer, or for which the editor makes no terminal is run by Elenco."""
    async with opened(RUNS.replace("echo own", command), **options) as editor:
        editor.offers = offers
        session = await editor.begin()
        await editor.prompt(session, "go")
    assert {"create"} >= {each["method"] for each in editor.terminals}
    result = editor.of("tool_call_update")[-1]["rawOutput"]["result"]
    assert "editor's terminal" not in result
    assert "own" in result or "walls" in result  # a machine that can build none refuses


async def test_a_command_that_takes_too_long_is_ended(opened: Open) -> None:
    """A command in a terminal that takes too long is killed, and what it printed is told."""
    async with opened(RUNS, **FREE) as editor:
        editor.offers, editor.ended = {"terminal": True}, False
        session = await editor.begin()
        await editor.prompt(session, "go")
    assert ["create", "wait_for_exit", "kill", "output", "release"] == [each["method"] for each in editor.terminals]
    result = editor.of("tool_call_update")[-1]["rawOutput"]["result"]
    assert "out\nit did not end within 1 s and was stopped" in result


async def test_a_cancelled_prompt_lets_its_terminal_go(opened: Open) -> None:
    """A prompt that is cancelled while a command runs in a terminal lets the terminal go, which ends the command."""
    async with opened(RUNS.replace("timeout: 1", "timeout: 100"), **FREE) as editor:
        editor.offers, editor.ended = {"terminal": True}, False
        session = await editor.begin()
        stopped: list[Any] = []

        async def prompt() -> None:
            stopped.append(await editor.prompt(session, "go"))

        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(prompt)
                await editor.until(lambda it: len(it.terminals) == 2)
                await editor.peer.notify("session/cancel", {"sessionId": session})
    assert "cancelled" == stopped[0]["stopReason"]
    assert "release" == editor.terminals[-1]["method"]
