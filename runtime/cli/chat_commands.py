"""What the slash commands do in the line mode of a chat: most are other commands of `elenco`, run here."""

from __future__ import annotations

import base64
import sys
import time
from typing import TYPE_CHECKING

from runtime.chat.bodies import KEPT, NOT_KEPT, newest_of
from runtime.chat.commands import Given, elenco_words, help_lines, steering
from runtime.chat.export import export
from runtime.chat.figures import bars
from runtime.chat.past import chain, conversations, session_line
from runtime.chat.view import last_thought
from runtime.errors import ElencoError, UsageError
from runtime.watch.commands import SwitchServer

from .earlier import look_up
from .faults import show
from .parser import parse
from .visible import one_line, visible
from .watcher import thought_lines
from .within import BY

if TYPE_CHECKING:
    from .line_chat import Chat

KEYS = """\
A line is for the agent; what is typed while a turn is under way waits for its end, but for what acts on the turn:
/cancel  /say TEXT  /budget LIMIT N  /models PROVIDER/MODEL  /mcps on|off NAME  /compact  /status  /thinking
Ctrl-C cancels the turn   Ctrl-D leaves"""
COMPACT = "/compact"
"""The line that makes the conversation smaller and is answered with what came of it."""


class Commands:
    """The commands of one conversation, between its turns; `over`: the human wants to leave."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.over = False
        self.undone = 0

    def run(self, given: Given, code: int) -> int:
        """Do what was typed; the exit code of the chat so far, or of a prompt that a server has filled in."""
        chat = self.chat
        if given.slash.name == "compact":
            return chat.turn(COMPACT)
        if given.slash.origin == "server":
            return chat.turn(f"/{given.slash.name} {given.rest}".rstrip())
        try:
            self._do(given)
        except (ElencoError, ValueError) as error:
            if isinstance(error, ElencoError):
                show(error)
            else:
                print(f"/{given.slash.name}: {error}", file=sys.stderr)
        return code

    def _do(self, given: Given) -> None:
        chat, rest = self.chat, given.rest
        words = elenco_words(
            given, workspace=str(chat.options.workspace), agent=chat.options.agent, run=self._subject(given)
        )
        if isinstance(words, str):
            raise UsageError(words)
        if words is not None:
            self._elenco(list(words), given)
            return
        match given.slash.name:
            case "help":
                print("\n".join([*help_lines(chat.typing.more, lines=True), "", KEYS]))
            case "thinking":
                self._thinking()
            case "debug":
                self._debug(rest)
            case "copy":
                self._copy()
            case "cancel" | "say":
                raise UsageError(f"no turn is under way: /{given.slash.name} is for one that is")
            case "export":
                assert chat.run is not None
                file = export(chat.state, chat.run, chat.options.workspace, rest)
                print(f"written to {file}", file=sys.stderr)
            case "models":
                self._choose_model(rest)
            case "budget":
                self._budget(rest)
            case "mcps":
                self._switch(given)
            case "sessions":
                self._sessions(rest)
            case "new":
                chat.earlier = None
                print("a new conversation", file=sys.stderr)
            case "fork":
                self._fork(rest)
            case _:
                self.over = True

    def _subject(self, given: Given) -> str | None:
        """The run a command is about: undo takes back one turn after the other."""
        run = self.chat.run
        if given.slash.name != "undo" or run is None:
            return run
        turns = chain(self.chat.state, run)
        return turns[max(0, len(turns) - 1 - self.undone)]

    def _elenco(self, words: list[str], given: Given) -> None:
        if given.slash.origin != "plugin":
            words += ["--state", str(self.chat.state.path)]
        command, arguments = parse(words)
        if command(arguments) == 0 and given.slash.name == "undo":
            self.undone += 1

    def _choose_model(self, name: str) -> None:
        chat = self.chat
        from runtime.outline import outline

        outline(chat.options.on_model(name)).refuse_unpriced()
        chat.choose(name)
        print(f"the next turn is for {name}; what a provider has cached of the conversation is lost", file=sys.stderr)

    def _budget(self, rest: str) -> None:
        if rest:
            raise UsageError("no turn is under way: a limit is changed within one")
        earlier = self.chat.earlier
        if earlier is None or not earlier.state.root:
            raise UsageError("nothing has been spent yet")
        state = earlier.state
        for bar in bars(state, state.root, dict(state.limits), time.time()):
            print(bar)

    def _thinking(self) -> None:
        typing, earlier = self.chat.typing, self.chat.earlier
        typing.thinking = not typing.thinking
        print(f"what the model thinks is {'shown' if typing.thinking else 'hidden'} from now on", file=sys.stderr)
        root = earlier.state.actors.get(earlier.state.root) if earlier is not None else None
        if typing.thinking and root is not None:
            print("\n".join(thought_lines(last_thought(root.history))) or "nothing was thought in the last turn")

    def _debug(self, rest: str) -> None:
        chat = self.chat
        match rest:
            case "on" | "off":
                chat.debug = rest == "on"
                print(KEPT if chat.debug else NOT_KEPT, file=sys.stderr)
            case "":
                run = chat.run
                turns = chain(chat.state, run) if run is not None else []
                print(visible(newest_of(chat.state, turns, on=chat.debug)))
            case _:
                raise UsageError("write /debug, /debug on or /debug off")

    def _copy(self) -> None:
        earlier = self.chat.earlier
        answer = earlier.answer if earlier is not None else ""
        if not answer:
            raise UsageError("there is no answer yet")
        if not sys.stdout.isatty():
            raise UsageError("there is no terminal here whose clipboard could take it")
        sys.stdout.write(f"\x1b]52;c;{base64.b64encode(answer.encode('utf-8', 'replace')).decode()}\a")
        sys.stdout.flush()
        print(f"the last answer was given to the terminal's clipboard, {len(answer)} characters", file=sys.stderr)

    def _switch(self, given: Given) -> None:
        from runtime.chat.session import switched

        chat, command = self.chat, steering(given, BY)
        assert isinstance(command, SwitchServer)
        chat.options = switched(chat.options, command.server, on=command.on)
        print(f"{command.server} is {'on' if command.on else 'off'} from the next turn on", file=sys.stderr)

    def _sessions(self, wanted: str) -> None:
        chat = self.chat
        found = conversations(chat.state, chat.options.workspace)
        if not wanted:
            for each in found:
                print(session_line(each, time.time(), current=each.run == chat.run))
            return
        run = next((each.run for each in found if wanted in (each.run, each.name)), None)
        if run is None:
            raise UsageError(f"no conversation '{one_line(wanted, 40)}' here  (/sessions)")
        chat.earlier, chat.named = look_up(chat.state, run, headless=chat.options.headless), True
        if chat.earlier.state.finished is None:
            chat.finish_turn(chat.earlier)
        elif chat.earlier.answer:
            print(chat.earlier.answer)

    def _fork(self, rest: str) -> None:
        chat = self.chat
        turns = chain(chat.state, chat.run) if chat.run is not None else []
        back = int(rest) if rest.isdecimal() else 0 if not rest else -1
        if not 0 <= back < len(turns):
            raise UsageError(f"write /fork or /fork N, N below {len(turns)}, the turns so far")
        chat.earlier, chat.named = look_up(chat.state, turns[-1 - back], headless=chat.options.headless), False
        print(f"what you say next begins a branch; the original stays: {turns[-1]}", file=sys.stderr)
