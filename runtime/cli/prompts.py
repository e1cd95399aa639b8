"""Answers of the human at the terminal: a letter alone on its line is a choice, any other text a reason to refuse."""

from __future__ import annotations

import os

import attrs
import trio

from runtime.app import LiveRun
from runtime.errors import UsageError
from runtime.events import ApprovalRequested, QuestionAsked
from runtime.messages import JsonObject

from .card import editable, edited, keys, question_keys
from .choices import Allow, Refuse, choice_of
from .screen import Screen
from .visible import one_line
from .watcher import Watcher


async def answer_questions(live: LiveRun, watcher: Watcher, screen: Screen) -> None:
    """Read lines and decide with them, oldest question first, until cancelled. Others may answer elsewhere.

    At the end of the input nobody is there any more: the run is left to wait in its journal.
    """
    async with live.stream.subscribe(live.stream.seq + 1) as reader:
        while not watcher.state.pending:
            if not await reader.batch():
                return
    keyboard = Keyboard()
    while True:
        line = await keyboard.line()
        if line is None:
            live.run.settings = attrs.evolve(live.run.settings, headless=True)
            live.run.check_waiting()
            return
        screen.answered()
        match watcher.state.asked:
            case ApprovalRequested() as request:
                await _decide(live, screen, keyboard, request, line.strip())
            case QuestionAsked() as question:
                await _answer(live, screen, question, line.strip())
            case None:
                pass


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


async def _answer(live: LiveRun, screen: Screen, question: QuestionAsked, text: str) -> None:
    if not text:
        await screen.say([question_keys(question)], "> ")
        return
    try:
        await live.questions.answer(question.id, text, "you")
    except UsageError as late:
        await screen.say([str(late)])


async def _decide(live: LiveRun, screen: Screen, keyboard: Keyboard, request: ApprovalRequested, text: str) -> None:
    decision, scope, why = "allow", "once", ""
    arguments: JsonObject | None = None
    match choice_of(request, text):
        case Allow(scope=scope):
            pass
        case Refuse(why=why):
            decision = "deny"
        case "edit":
            arguments = await _edit(screen, keyboard, request)
            if arguments is None:
                return
        case "stop":
            live.cancel("you")
            return
        case "none":
            said = [f"  '{one_line(text, 4)}' is no choice here"] if text else []
            await screen.say([*said, keys(request)], "> ")
            return
    try:
        await live.approvals.decide(request.id, decision, "you", why=why, scope=scope, arguments=arguments)
    except UsageError as late:
        await screen.say([str(late)])


async def _edit(screen: Screen, keyboard: Keyboard, request: ApprovalRequested) -> JsonObject | None:
    """The arguments as the human wants them, None to leave it."""
    now = [f"  now      {editable(request.arguments)}", "  type it as it should be; Enter alone goes back"]
    await screen.say(now, "edit> ")
    line = await keyboard.line() or ""
    screen.answered()
    if line.strip():
        try:
            return edited(request.arguments, line.strip("\r\n"))
        except ValueError as error:
            await screen.say([f"  cannot be used: {one_line(str(error), 100)}"])
    await screen.say([keys(request)], "> ")
    return None
