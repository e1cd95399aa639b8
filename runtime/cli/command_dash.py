"""`elenco dash`: the web dashboard over all runs of this machine."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from runtime.errors import UsageError
from runtime.journal.folder import open_state

if TYPE_CHECKING:
    from runtime.dash.server import Address


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C. Raises UsageError, ElencoError where the port is taken."""
    if not 0 <= arguments.port < 65536:
        raise UsageError("--port is a number from 0, for any that is free, to 65535")
    from runtime.dash.server import serve

    state = open_state(arguments.state, to_look=True)

    def told(address: Address) -> None:
        print(address.link, flush=True)
        print("the link holds the key to your runs: it is for this machine's browser   Ctrl-C ends it", file=sys.stderr)
        if arguments.open:
            import webbrowser

            webbrowser.open(address.link)

    serve(state, arguments.port, told)
    return 0
