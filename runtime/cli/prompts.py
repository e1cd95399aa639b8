"""Answers of the human at the terminal: a letter alone on its line is a choice, any other text a reason to refuse."""

from __future__ import annotations

import attrs

from runtime.app import LiveRun
from runtime.errors import UsageError
from runtime.events import ApprovalRequested, QuestionAsked
from runtime.messages import JsonObject

from .card import editable, edited, keys, question_keys
from .choices import Allow, Refuse, choice_of
from .keyboard import Keyboard
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
    while (line := await keyboard.line()) is not None:
        await decide(live, watcher, screen, keyboard, line)
    nobody_left(live)


def nobody_left(live: LiveRun) -> None:
    """What needs a human waits in the journal from now on."""
    live.run.settings = attrs.evolve(live.run.settings, headless=True)
    live.run.check_waiting()


async def decide(live: LiveRun, watcher: Watcher, screen: Screen, keyboard: Keyboard, line: str) -> None:
    """Take a line as the answer to the oldest question, if there is one."""
    screen.answered()
    match watcher.state.asked:
        case ApprovalRequested() as request:
            await _decide(live, screen, keyboard, request, line.strip())
        case QuestionAsked() as question:
            await _answer(live, screen, question, line.strip())
        case None:
            pass


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
