"""A conversation in lines: each prompt is a run that continues the one before."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import attrs

from runtime.chat.bodies import FOLDER as BODIES
from runtime.chat.commands import Given, Prompt, Slash, Wrong, read
from runtime.chat.typed import Typed
from runtime.errors import ElencoError, UsageError
from runtime.journal import index
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State, create_run
from runtime.outline import RunOptions
from runtime.plugins import plugins
from runtime.watch.commands import Command, SetModel, SwitchServer

from .chat_commands import COMPACT, Commands
from .earlier import Earlier, look_up
from .keyboard import Keyboard
from .recall import asked, echoed, prepare
from .server_prompts import filled_in, is_prompt
from .within import Typing

if TYPE_CHECKING:
    from .live import Shown


def talk(arguments: argparse.Namespace, state: State, options: RunOptions, earlier: Earlier | None) -> int:
    """Talk until the human leaves; the last turn's exit code counts. Raises ElencoError."""
    chat = Chat(state, options, earlier, arguments)
    commands = Commands(chat)
    typed = Typed.of(state.path, options.workspace) if sys.stdin.isatty() else None
    if typed is not None:
        prepare(typed, chat.typing.more)
    code = 0
    if earlier is not None and earlier.state.finished is None:
        code = chat.finish_turn(earlier)
    elif earlier is not None and earlier.answer and not arguments.json:
        print(earlier.answer)
    while not commands.over and (line := _line(chat.typing, typed)) is not None:
        match read(line.strip(), chat.typing.more, lines=True):
            case Prompt(text=text) if text:
                code = chat.turn(text)
            case Prompt():
                pass
            case Given() as given:
                code = commands.run(given, code)
            case Wrong(why=why):
                print(why, file=sys.stderr)
    if chat.last is not None:
        print(f"go on: elenco chat --plain --resume {chat.last.id}{in_state()}", file=sys.stderr)
    return code


def carry_name(state: State, before: str, run: str) -> None:
    """A conversation's name goes from its last turn's run to the next one's. Where that fails, a warning says so."""
    row = index.row(state, before)
    if row is not None and row.name:
        with contextlib.suppress(ElencoError):
            index.rename(state, before, "")
            index.rename(state, run, row.name)


@attrs.define
class Chat:
    """A conversation: what the next turn is run with, and the run of the last one.

    `named`: the conversation's name goes on to the next run;
    `debug`: bodies of requests and responses are kept with each run.
    """

    state: State
    options: RunOptions
    earlier: Earlier | None
    arguments: argparse.Namespace
    named: bool = True
    debug: bool = False
    typing: Typing = attrs.field(init=False)
    last: RunFolder | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        more = [Slash(name, "[WORDS]", each.summary, origin="plugin") for name, each in plugins().commands.items()]
        self.typing = Typing(Keyboard(), more, self._carried, person=sys.stdin.isatty())

    @property
    def run(self) -> str | None:
        """The newest run of the conversation."""
        return self.earlier.folder.id if self.earlier is not None else None

    def choose(self, model: str) -> None:
        """Ask another model from now on."""
        self.options = self.options.on_model(model)

    def turn(self, text: str) -> int:
        """One line to its answer; what goes wrong is told, and the conversation goes on."""
        from runtime.app import plan

        from .live import begin

        def work() -> tuple[int, RunFolder]:
            if text == COMPACT and self.earlier is None:
                raise UsageError(f"{COMPACT}: nothing has been said yet")
            if text == COMPACT:
                with self._folder() as (folder, options):
                    ready = plan(attrs.evolve(options, task=COMPACT, compacts=True, output_schema=None))
                return begin(ready, self.state, self._shown(), self.earlier, folder)
            task = filled_in(text, self.options, self.arguments) if is_prompt(text) else text
            with self._folder() as (folder, options):
                ready = plan(attrs.evolve(options, task=task))
            code, folder = begin(ready, self.state, self._shown(), self.earlier, folder)
            if self.earlier is not None and self.named:
                carry_name(self.state, self.earlier.folder.id, folder.id)
            return code, folder

        return self._after(work)

    def finish_turn(self, earlier: Earlier) -> int:
        """A turn that was broken off goes on from its record, before anything new is said."""
        import trio

        from runtime.app import plan

        from .live import stay

        def work() -> tuple[int, RunFolder]:
            options, resumption = earlier.taken_up(self.options)
            return trio.run(stay, plan(options), self.state, earlier.folder, self._shown(), resumption), earlier.folder

        return self._after(work)

    @contextlib.contextmanager
    def _folder(self) -> Generator[tuple[RunFolder, RunOptions]]:
        """A new run's folder and what it is run with; nothing is left of it where that cannot be."""
        folder = create_run(self.state, random.Random())
        options = self.options
        if self.debug and options.model.record is None:
            options = attrs.evolve(options, model=attrs.evolve(options.model, record=folder.path / BODIES))
        with index.beginning(self.state, folder):
            yield folder, options

    def _shown(self) -> Shown:
        from .live import Shown

        return attrs.evolve(Shown.of(self.arguments), typing=self.typing)

    def _carried(self, command: Command) -> None:
        """What was changed within a turn stays so in the next ones."""
        match command:
            case SetModel(model=model):
                self.choose(model)
            case SwitchServer(server=server, on=on):
                from runtime.chat.session import switched

                self.options = switched(self.options, server, on=on)
            case _:
                pass

    def _after(self, work: Callable[[], tuple[int, RunFolder]]) -> int:
        from .faults import show

        try:
            code, folder = work()
            self.earlier = look_up(self.state, folder.id, headless=self.options.headless)
            self.last, self.named = folder, True
        except ElencoError as error:
            return show(error)
        return code


def _line(typing: Typing, typed: Typed | None) -> str | None:
    """The next line, None at the end of the input; Ctrl-C drops what was typed."""
    if typing.later:
        line = typing.later.popleft()
        return echoed(typed, line) if typed is not None else line
    while not typing.ended:
        try:
            return asked(typed) if typed is not None else typing.keyboard.next()
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return None
