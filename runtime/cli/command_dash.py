"""`elenco dash`: the web dashboard over all runs of this machine."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.errors import UsageError
from runtime.journal.folder import open_state

if TYPE_CHECKING:
    from runtime.dash.server import Address

HINT = "the link holds the key to your runs: it is for this machine's browser   Ctrl-C ends it"


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises UsageError, ElencoError where the port is taken."""
    if not 0 <= arguments.port < 65536:
        raise UsageError("--port is a number from 0, for any that is free, to 65535")
    from runtime.dash.server import serve

    state = open_state(arguments.state, to_look=True)
    if not state.runs.exists():
        state = open_state(arguments.state)  # It is there for runs that are still to come.

    with contextlib.ExitStack() as stack:

        def told(address: Address) -> None:
            print(address.link, flush=True)
            print(HINT, file=sys.stderr)
            if arguments.open:
                import webbrowser

                webbrowser.open(stack.enter_context(_way_in(address.link)).as_uri())

        serve(state, arguments.port, told)
    return 0


@contextlib.contextmanager
def _way_in(link: str) -> Generator[Path]:
    """A private page that leads to the link: a browser's command line can be read by everybody on the machine."""
    from runtime.watch.runtime_folder import runtime_folder

    descriptor, name = tempfile.mkstemp(".html", "dash-", runtime_folder())
    path = Path(name)
    try:
        with open(descriptor, "w") as file:
            file.write(
                f'<!doctype html><meta http-equiv="refresh" content="0; url={link}"><a href="{link}">Elenco</a>\n'
            )
        yield path
    finally:
        path.unlink(missing_ok=True)
