"""`elenco chat`: a conversation on the whole screen or in lines; a slip is told before either of them is loaded."""

from __future__ import annotations

import argparse
import codecs
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import UsageError
from runtime.journal.folder import RunFolder, State, open_state
from runtime.known import TOOL_NAMES
from runtime.outline import RunOptions, outline

from .command_run import flag_limits, model_flags, output_schema, refuse_unknown_servers, refuse_unused_servers
from .streams import check_output
from .which import find

if TYPE_CHECKING:
    from .earlier import Earlier


def run(arguments: argparse.Namespace) -> int:
    """Talk until the human leaves; Ctrl-C cancels the turn. The last turn's exit code counts. Raises ElencoError."""
    options = options_of(arguments, None, headless=_headless(arguments))
    if not arguments.resume:
        _look_first(arguments, options)
    state = open_state(arguments.state)
    folder = find(state, arguments.resume) if arguments.resume else None
    in_lines = arguments.plain or arguments.no_input or arguments.json or arguments.output or arguments.quiet
    if not in_lines and sys.stdin.isatty() and sys.stdout.isatty():
        if codecs.lookup(sys.stdout.encoding).name == "utf-8":
            return _screen(arguments, state, options, folder)
        print(f"in lines: the screen needs UTF-8, not {sys.stdout.encoding} (LC_ALL=C.UTF-8)", file=sys.stderr)
    _refuse_detached_lines(arguments)
    return _lines(arguments, state, options, folder)


def _refuse_detached_lines(arguments: argparse.Namespace) -> None:
    if arguments.detach:
        raise UsageError("--detach is for the chat on a whole screen; in lines: elenco run --detach")


def _look_first(arguments: argparse.Namespace, options: RunOptions) -> None:
    """Raises UsageError, DefinitionError for what can be told of a slip before anything is shown."""
    if arguments.output:
        check_output(Path(arguments.output))
    refuse_unknown_servers(arguments, options.workspace)
    seen = outline(options, tools=TOOL_NAMES)
    refuse_unused_servers(arguments, seen)
    seen.refuse_unpriced()


def _headless(arguments: argparse.Namespace) -> bool:
    return arguments.no_input or not sys.stdin.isatty()


def _screen(arguments: argparse.Namespace, state: State, options: RunOptions, folder: RunFolder | None) -> int:
    if folder is not None:
        from .earlier import on_record

        earlier = on_record(folder, headless=False)  # also of a live one: it is watched
        options = options_of(arguments, earlier, headless=False)
        _look_first(arguments, options)
    from runtime.chat.screen import show

    return show(arguments, state, options, folder)


def _lines(arguments: argparse.Namespace, state: State, options: RunOptions, folder: RunFolder | None) -> int:
    earlier = None
    if folder is not None:
        from .earlier import look_up

        earlier = look_up(state, folder.id, headless=_headless(arguments))
        options = options_of(arguments, earlier, headless=_headless(arguments))
        _look_first(arguments, options)
    from .line_chat import talk

    return talk(arguments, state, options, earlier)


def options_of(arguments: argparse.Namespace, earlier: Earlier | None, headless: bool) -> RunOptions:
    """What a turn is run with: the flags, and what of an earlier run's options still counts."""
    given = RunOptions(
        agent=arguments.agent or (earlier.options.agent if earlier is not None else "coordinator"),
        task="",
        model=model_flags(arguments),
        workspace=Path(arguments.workspace or "."),
        limits=flag_limits(arguments),
        allow=tuple(arguments.allow),
        ask=tuple(arguments.ask),
        deny=tuple(arguments.deny),
        yes=arguments.yes,
        headless=headless,
        mode=arguments.mode or "default",
        output_schema=output_schema(arguments),
        sandbox=arguments.sandbox,
        network=arguments.network,
        mcp=tuple(arguments.mcp),
        no_mcp=tuple(arguments.no_mcp),
    )
    if earlier is None:
        return given
    return earlier.followed_by(given, workspace=bool(arguments.workspace), mode=arguments.mode is not None)
