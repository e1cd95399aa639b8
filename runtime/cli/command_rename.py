"""`elenco rename`: give a run a name to find it by."""

from __future__ import annotations

import argparse
import sys

from runtime.errors import UsageError
from runtime.journal import index
from runtime.journal.folder import open_state

from .streams import as_text
from .visible import one_line
from .which import find

LONGEST = 40


def run(arguments: argparse.Namespace) -> int:
    """Raises UsageError for an unknown run and a name that is none or taken."""
    state = open_state(arguments.state)
    name = " ".join(as_text(arguments.name).split())
    if not name or len(name) > LONGEST or one_line(name, LONGEST) != name:
        raise UsageError(f"a name is one line of 1 to {LONGEST} characters")
    folder = find(state, arguments.run)
    taken = next((row.id for row in index.rows(state).values() if name in (row.name, row.id)), None)
    if taken not in (None, folder.id):
        raise UsageError(f"run {taken} has that name already")
    index.rename(state, folder.id, name)
    print(f"run {folder.id} is now called {name}", file=sys.stderr)
    return 0
