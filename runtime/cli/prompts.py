"""Answers of the human at the terminal: a letter alone on its line is a choice, any other text a reason to refuse."""

from __future__ import annotations

import os

import attrs
import trio

from runtime.app import LiveRun
from runtime.errors import UsageError
from runtime.events import ApprovalRequested
from runtime.messages import JsonObject

from .card import KEYS, editable, edited
from .screen import Screen
from .visible import one_line


async def answer_questions(live: LiveRun, screen: Screen) -> None:
    """Read lines and decide with them, oldest question first, until cancelled. Others may answer elsewhere.

    At the end of the input nobody is there any more: the run is left to wait in its journal.
    """
    async with live.stream.subscribe(live.stream.seq + 1) as reader:
        while not live.approvals.pending:
            if not await reader.batch():
                return
    keys = Keyboard()
    while True:
        line = await keys.line()
        if line is None:
            live.run.settings = attrs.evolve(live.run.settings, headless=True)
            live.run.check_waiting()
            return
        screen.answered()
        if live.approvals.pending:
            await _answer(live, screen, keys, live.approvals.pending[0], line.strip())


class Keyboard:
    """Lines of a terminal. No thread waits for them, so none is left behind when nobody wants them any more."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    async def line(self) -> str | None:
        """The next line without its end, None at the end of the input. A cancelled call loses nothing."""
        while b"\n" not in self._buffer:
            await trio.lowlevel.wait_readable(self._descriptor)
            data = os.read(self._descriptor, 65_536)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")


async def _answer(live: LiveRun, screen: Screen, keys: Keyboard, request: ApprovalRequested, text: str) -> None:
    arguments: JsonObject | None = None
    match text:
        case "":
            await screen.say([KEYS], "> ")
            return
        case "y" | "Y" | "yes":
            decision, why = "allow", ""
        case "n" | "N" | "no":
            decision, why = "deny", ""
        case "e" | "E":
            decision, why = "allow", ""
            arguments = await _edit(screen, keys, request)
            if arguments is None:
                return
        case "s" | "S":
            live.cancel("you")
            return
        case _ if len(text) == 1:
            await screen.say([f"  '{one_line(text, 4)}' is no choice here", KEYS], "> ")
            return
        case _:
            decision, why = "deny", text
    try:
        await live.approvals.decide(request.id, decision, "you", why=why, arguments=arguments)
    except UsageError as late:
        await screen.say([str(late)])


async def _edit(screen: Screen, keys: Keyboard, request: ApprovalRequested) -> JsonObject | None:
    """The arguments as the human wants them, None to leave it."""
    await screen.say(
        [f"  now      {editable(request.arguments)}", "  type it as it should be; Enter alone goes back"], "edit> "
    )
    line = await keys.line() or ""
    screen.answered()
    if line.strip():
        try:
            return edited(request.arguments, line.strip("\r\n"))
        except ValueError as error:
            await screen.say([f"  cannot be used: {one_line(str(error), 100)}"])
    await screen.say([KEYS], "> ")
    return None
