"""The screen of a chat, in Textual; imported by nobody but `elenco chat`."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.journal.folder import RunFolder, State
from runtime.outline import RunOptions

if TYPE_CHECKING:
    from .app import ChatApp

FAULT = "fault.txt"


def show(arguments: argparse.Namespace, state: State, options: RunOptions, folder: RunFolder | None) -> int:
    """Take the terminal until the human leaves, then say how to go on; the last turn's exit code counts."""
    from runtime.cli.live import EXIT, WAITING

    from .early import early_keys

    app = app_for(arguments, state, options, folder)
    for name in ("COLUMNS", "LINES"):  # what a shell exports there stays as it was when the terminal is resized
        os.environ.pop(name, None)
    with early_keys() as app.early:
        app.run()
    for line in app.last_words():
        print(line, file=sys.stderr)
    if app.fault is not None:
        # Textual's own traceback shows the values of variables, which may be secrets.
        place = _kept(state.path / "chat", app.fault)
        print(f"error: a fault of Elenco's own ended the screen: {app.fault!r:.200}  ({place})", file=sys.stderr)
        return 1
    if app.return_code:
        return app.return_code
    finished = app.session.view.state.finished
    if finished is not None:
        return EXIT.get(str(finished.report.get("status")), 1)
    return WAITING if app.session.unfinished and not app.detach else 0


def app_for(arguments: argparse.Namespace, state: State, options: RunOptions, folder: RunFolder | None) -> ChatApp:
    """The screen, not yet shown."""
    from .app import ChatApp

    return ChatApp(state, options, _words(arguments, options), folder, detach=arguments.detach)


def _words(arguments: argparse.Namespace, options: RunOptions) -> list[str]:
    """What the runtime process is started with: the same flags, on absolute places."""
    words = [options.agent, "--workspace", str(options.workspace.resolve())]
    flags = {
        "--state": Path(arguments.state).absolute() if arguments.state else None,
        "--model": options.model.model,
        "--base-url": options.model.base_url,
        "--wire": options.model.wire,
        "--sandbox": options.sandbox,
        "--network": options.network,
        "--mode": options.mode,
        "--output-schema": Path(arguments.output_schema).absolute() if arguments.output_schema else None,
        "--record": Path(arguments.record).absolute() if arguments.record else None,
    }
    for flag, value in flags.items():
        words += [flag, str(value)] if value is not None else []
    for name, value in options.limits.as_json().items():
        words += [f"--{name.replace('_', '-')}", str(value)] if name != "sources" else []
    for flag, values in (
        ("--allow", options.allow),
        ("--ask", options.ask),
        ("--deny", options.deny),
        ("--mcp", options.mcp),
        ("--no-mcp", options.no_mcp),
    ):
        for each in values:
            words += [flag, each]
    words += ["--yes"] if options.yes else []
    return [*words, "--detach"] if arguments.detach else words


def _kept(folder: Path, fault: BaseException) -> str:
    """Where the traceback is, for a report."""
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        (folder / FAULT).write_text("".join(traceback.format_exception(fault)))
    except OSError as error:
        return f"its traceback could not be kept: {error.strerror}"
    return f"its traceback: {folder / FAULT}"
