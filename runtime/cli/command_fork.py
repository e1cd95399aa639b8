"""`elenco fork`: a copy of a run up to some event, to go on with in another way."""

from __future__ import annotations

import argparse
import random
import sys

from runtime.journal.elsewhere import in_state
from runtime.journal.folder import open_state

from .which import find


def run(arguments: argparse.Namespace) -> int:
    """Print the id of the new run. Raises UsageError for an event that is not there, JournalError."""
    from runtime.journal.copies import fork

    state = open_state(arguments.state)
    folder = find(state, arguments.run)
    made = fork(state, folder, arguments.at, random.Random())
    print(made.id)
    print(f"files of the workspace stay as they are   go on: elenco resume {made.id}{in_state()}", file=sys.stderr)
    return 0
