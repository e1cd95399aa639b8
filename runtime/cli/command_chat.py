"""`elenco chat`: a conversation in lines; every line is a run that continues the one before."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import attrs

from runtime.errors import ElencoError, UsageError
from runtime.journal.folder import RunFolder, State, open_state
from runtime.known import ModelFlags
from runtime.outline import RunOptions, outline

from .command_run import flag_limits, output_schema
from .earlier import Earlier, look_up
from .server_prompts import filled_in, is_prompt
from .streams import as_text

PROMPT = "you> "
COMPACT = "/compact"
"""The line that makes the conversation smaller and is answered with what came of it."""


def run(arguments: argparse.Namespace) -> int:
    """Talk until the input ends; Ctrl-C cancels the turn. The last turn's exit code counts. Raises ElencoError."""
    state = open_state(arguments.state)
    headless = arguments.no_input or not sys.stdin.isatty()
    earlier = look_up(state, arguments.resume, headless=headless) if arguments.resume else None
    options = _options(arguments, earlier, headless)
    outline(options)  # A slip is told before the first line is typed.
    chat = Chat(state, options, earlier, arguments)
    code = 0
    if earlier is not None and earlier.state.finished is None:
        code = chat.finish_turn(earlier)
    elif earlier is not None and earlier.answer:
        print(earlier.answer)
    while (line := _line(interactive=sys.stdin.isatty())) is not None:
        if line.strip():
            code = chat.turn(as_text(line.strip()))
    if chat.last is not None:
        print(f"go on: elenco chat --plain --resume {chat.last.id}", file=sys.stderr)
    return code


@attrs.define
class Chat:
    """A conversation: what the next turn is run with, and the run of the last one."""

    state: State
    options: RunOptions
    earlier: Earlier | None
    arguments: argparse.Namespace
    last: RunFolder | None = attrs.field(init=False, default=None)

    def turn(self, text: str) -> int:
        """One line to its answer; what goes wrong is told, and the conversation goes on."""
        from runtime.app import plan

        from .live import Shown, begin

        def work() -> tuple[int, RunFolder]:
            if text == COMPACT and self.earlier is None:
                raise UsageError(f"{COMPACT}: nothing has been said yet")
            if text == COMPACT:
                options = attrs.evolve(self.options, task=COMPACT, compacts=True, output_schema=None)
                return begin(plan(options), self.state, Shown(quiet=self.arguments.quiet), self.earlier)
            task = filled_in(text, self.options, self.arguments) if is_prompt(text) else text
            options = attrs.evolve(self.options, task=task)
            return begin(plan(options), self.state, Shown(quiet=self.arguments.quiet), self.earlier)

        return self._after(work)

    def finish_turn(self, earlier: Earlier) -> int:
        """A turn that was broken off goes on from its record, before anything new is said."""
        import trio

        from runtime.app import Resumption, plan
        from runtime.resume import limits_after

        from .live import Shown, stay

        record, folder = earlier.state, earlier.folder
        options = attrs.evolve(earlier.options, yes=earlier.options.yes or self.arguments.yes)
        resumption = Resumption(record, limits_after(record, {}))
        shown = Shown(quiet=self.arguments.quiet)
        return self._after(lambda: (trio.run(stay, plan(options), self.state, folder, shown, resumption), folder))

    def _after(self, work: Callable[[], tuple[int, RunFolder]]) -> int:
        from .faults import show

        try:
            code, folder = work()
            self.earlier = look_up(self.state, folder.id, headless=self.options.headless)
            self.last = folder
        except ElencoError as error:
            return show(error)
        return code


def _options(arguments: argparse.Namespace, earlier: Earlier | None, headless: bool) -> RunOptions:
    given = RunOptions(
        agent=arguments.agent or (earlier.options.agent if earlier is not None else "coordinator"),
        task="",
        model=ModelFlags(arguments.model, arguments.base_url, arguments.wire),
        workspace=Path(arguments.workspace or "."),
        limits=flag_limits(arguments),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        headless=headless,
        mode=arguments.mode,
        output_schema=output_schema(arguments),
        sandbox=arguments.sandbox,
        network=arguments.network,
        mcp=tuple(arguments.mcp),
        no_mcp=tuple(arguments.no_mcp),
    )
    return earlier.followed_by(given, workspace=bool(arguments.workspace)) if earlier is not None else given


def _line(*, interactive: bool) -> str | None:
    """The next line, None at the end of the input; Ctrl-C drops what was typed."""
    while True:
        try:
            if interactive:
                return _asked()
            line = sys.stdin.readline()
            return line if line else None
        except KeyboardInterrupt:
            print(file=sys.stderr)


def _asked() -> str | None:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]  # lines can be edited and recalled
    try:
        return input(PROMPT)
    except EOFError:
        print(file=sys.stderr)
        return None
