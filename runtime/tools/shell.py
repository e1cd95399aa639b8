"""The tool shell: one command line, in the walls of its actor, with what it printed and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.events import Warned
from runtime.messages import JsonObject
from runtime.policy.subjects import ShellSubject, Subject
from runtime.sandbox.capture import Capture

from ._tool import Output, Tool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from runtime.reaper import Process
    from runtime.sandbox.box import Box

SECONDS = 120
MOST_SECONDS = 1800
MOST_BYTES = 200_000_000
"""What a command may print before it is stopped."""
LIVE_CHARS = 400_000
"""What of it is shown while it runs."""
GRACE = 2.0
"""Seconds between asking a command to end and killing it."""
DRAIN = 0.3
"""Seconds for what is still in the pipe when the command has ended, where something it left holds the pipe open."""
LONG = 10.0
"""A command that took longer says how long."""


def command_subject(arguments: JsonObject) -> Subject:
    """What permission rules see of a command line, whichever tool runs it."""
    return ShellSubject(str(arguments.get("command", "")))


def command_preview(ctx: ToolContext, arguments: JsonObject) -> str:
    """What a human who is asked sees: the command as it is, and its walls."""
    says = f"({ctx.sandbox.says})" if ctx.sandbox is not None else ""
    return f"$ {arguments['command']}\n{says}".rstrip()


@attrs.define
class _Ended:
    """Why a command was stopped, "" if it ended by itself."""

    why: str = ""


@tool(timeout=None, subject=command_subject, preview=command_preview)
async def shell(ctx: ToolContext, command: str, timeout: int = SECONDS) -> Output:
    """Run a command line under bash in the workspace, in a sandbox; gives what it printed and its exit code.

    Each call is a shell of its own: folder and variables do not last. Nothing can be typed into it, and what it leaves
    running ends with the call; use start_job for that.

    Args:
        command: The command line. Several lines are fine.
        timeout: Seconds after which it is stopped, at most 1800.
    """
    if ctx.sandbox is None:
        raise ToolError("commands are run in a run alone")
    seconds = min(max(timeout, 1), MOST_SECONDS)
    begun = trio.current_time()
    box = await ctx.sandbox.start(command)
    capture = Capture()
    ended = _Ended()
    try:
        with trio.move_on_after(seconds) as limit:
            await _follow(ctx, box.process, capture, ended)
        if limit.cancelled_caught:
            ended.why = f"it did not end within {seconds} s and was stopped"
            await _stop(ctx, box.process, capture)
        elif ended.why:
            await _stop(ctx, box.process, capture)
    finally:
        code = await box.process.end(0.0 if ended.why else GRACE)
    _hear(ctx, capture, b"", final=True)
    return await _output(ctx, box, capture, code, ended, trio.current_time() - begun)


async def _follow(ctx: ToolContext, process: Process, capture: Capture, ended: _Ended) -> None:
    """Take in what a command prints until it has ended, or has printed too much."""
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            if not await _read(ctx, process, capture):
                ended.why = f"it printed more than {MOST_BYTES // 1_000_000} MB and was stopped"
                nursery.cancel_scope.cancel()

        nursery.start_soon(read)
        await process.wait()
        nursery.cancel_scope.deadline = trio.current_time() + DRAIN


async def _read(ctx: ToolContext, process: Process, capture: Capture) -> bool:
    """Read to the end of the pipe; False where it is too much."""
    assert process.stdout is not None
    while capture.bytes <= MOST_BYTES:
        data = await process.stdout.receive_some()
        if not data:
            return True
        _hear(ctx, capture, data)
    return False


async def _stop(ctx: ToolContext, process: Process, capture: Capture) -> None:
    """Ask a command to end and hear what it says to that."""
    await process.terminate()
    with trio.move_on_after(GRACE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read, ctx, process, capture)
            await process.wait()
            nursery.cancel_scope.deadline = trio.current_time() + DRAIN


def _hear(ctx: ToolContext, capture: Capture, data: bytes, *, final: bool = False) -> None:
    shown = capture.chars
    text = capture.feed(data, final=final)
    if text and shown < LIVE_CHARS:
        ctx.output(text)
        if capture.chars >= LIVE_CHARS:
            ctx.output("\n[the rest is not shown while it runs]\n")


async def _output(ctx: ToolContext, box: Box, capture: Capture, code: int, ended: _Ended, seconds: float) -> Output:
    notes = [await made_note(ctx, box), ended.why]
    said = [f"exit code {code}" if code >= 0 else f"ended by signal {-code}", box.walls]
    if seconds >= LONG and not ended.why:
        said.append(f"took {seconds:.0f} s")
    text = capture.text
    lines = [*([text.rstrip("\n")] if text.strip() else []), *filter(None, notes), f"[{'; '.join(said)}]"]
    data: JsonObject = {"exit_code": code, "walls": box.walls, "bytes": capture.bytes, "stopped": ended.why or None}
    return Output("\n".join(lines), is_error=code != 0 or bool(ended.why), data=data)


async def made_note(ctx: ToolContext, box: Box) -> str:
    """What a command made that governs agents, in words; the human who looks after the run is told as well."""
    return told_of_made(ctx, await box.made())


def told_of_made(ctx: ToolContext, made: Sequence[str]) -> str:
    """The same, where it is known what was made."""
    if not made:
        return ""
    text = f"{', '.join(made)} governs agents and was made by a command, without asking: look at it before the next run"
    ctx.report(Warned(text=text))
    return f"[{text}]"


SHELL_TOOLS: tuple[Tool, ...] = (shell,)
