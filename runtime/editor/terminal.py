"""shell in a terminal of the editor: for commands that have no walls anyway, where the user can watch them."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, cast

import attrs
import trio

from runtime.messages import JsonObject
from runtime.sandbox.capture import Capture
from runtime.sandbox.guarded import made_meanwhile, names_that_govern
from runtime.tools import Output, Tool, ToolContext
from runtime.tools.shell import MOST_SECONDS, SECONDS, shell, told_of_made

from . import shapes

Ask: TypeAlias = Callable[[str, JsonObject], Awaitable[Any]]
"""Asks the editor: a method without its `terminal/`, and parameters. Gives the answer, None for an error."""
Show: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Shows a terminal, by its id, as the content of a call, by its id."""

WHERE = "in the editor's terminal, no walls"
MOST_BYTES = 1_000_000
"""What of a command's output the editor is to keep."""
PATIENCE = 10.0
"""Seconds an editor has to make a terminal, to tell what it holds, and to let it go."""


@attrs.frozen
class Terminals:
    """The terminals of one editor for one session."""

    ask: Ask
    show: Show


def shell_in(terminals: Terminals) -> Tool:
    """The tool shell as it is with an editor that has terminals.

    Only a command whose actor has no walls, which the user alone decides, runs there. Any other runs in its walls, and
    one for which the editor makes no terminal runs here. A cancelled call ends the command.
    """

    async def run(ctx: ToolContext, command: str, timeout: int = SECONDS) -> Output:
        id = None
        if ctx.sandbox is not None and ctx.sandbox.level == "unsandboxed":
            id = await _made(terminals, ctx, command)
        if id is None:
            output: Output = await shell.run(ctx, command=command, timeout=timeout)
            return output
        return await _followed(terminals, ctx, id, min(max(timeout, 1), MOST_SECONDS))

    return attrs.evolve(shell, run=run)


async def _made(terminals: Terminals, ctx: ToolContext, command: str) -> str | None:
    words = {
        "command": "bash",
        "args": ["-c", command],
        "cwd": ctx.workspace.root,
        "outputByteLimit": MOST_BYTES,
    }
    with trio.move_on_after(PATIENCE):
        id = _text(await terminals.ask("create", words), "terminalId")
        if id is not None:
            await terminals.show(ctx.call_id, id)
        return id
    return None


async def _followed(terminals: Terminals, ctx: ToolContext, id: str, seconds: int) -> Output:
    named = {"terminalId": id}
    before = await trio.to_thread.run_sync(_governing, ctx.workspace.root)
    try:
        with trio.move_on_after(seconds) as limit:
            await terminals.ask("wait_for_exit", named)
        with trio.move_on_after(PATIENCE):
            if limit.cancelled_caught:
                await terminals.ask("kill", named)
            said = await terminals.ask("output", named)
            return await _output(ctx, said, before, seconds if limit.cancelled_caught else None)
        return Output(f"[the editor does not tell what the command printed; {WHERE}]", is_error=True)
    finally:
        with trio.move_on_after(PATIENCE, shield=True):  # which ends a command that still runs
            await terminals.ask("release", named)


async def _output(ctx: ToolContext, said: Any, before: frozenset[str], stopped_after: int | None) -> Output:
    found = _object(said)
    ended = _object(found.get("exitStatus"))
    code, signal = ended.get("exitCode"), ended.get("signal")
    capture = Capture()
    capture.feed((_text(found, "output") or "").encode(errors="replace"), final=True)
    why = f"it did not end within {stopped_after} s and was stopped" if stopped_after is not None else ""
    how = f"exit code {code}" if isinstance(code, int) else f"ended by signal {signal or 'unknown'}"
    made = await trio.to_thread.run_sync(made_meanwhile, ctx.workspace.root, before)
    lines = [
        capture.text.rstrip("\n"),
        "[the beginning was not kept]" if found.get("truncated") is True else "",
        told_of_made(ctx, made),
        why,
        f"[{how}; {WHERE}]",
    ]
    data: JsonObject = {"exit_code": code, "walls": WHERE, "bytes": capture.bytes, "stopped": why or None}
    return Output("\n".join(filter(None, lines)), is_error=code != 0 or bool(why), data=data)


def _governing(workspace: str) -> frozenset[str]:
    root = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return names_that_govern(root)
    finally:
        os.close(root)


def _object(found: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _text(answer: Any, key: str) -> str | None:
    found: Any = _object(answer).get(key)
    return found if isinstance(found, str) else None


def content_of(call: str, terminal: str) -> JsonObject:
    """An update that shows a terminal as the content of a call."""
    return shapes.progress(call, "in_progress", [{"type": "terminal", "terminalId": terminal}])


def offered(capabilities: Any) -> bool:
    """Whether an editor has terminals."""
    return _object(capabilities).get("terminal") is True
