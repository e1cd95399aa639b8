"""`elenco import`: a run out of a file that `elenco show --format jsonl` has written."""

from __future__ import annotations

import argparse
import random
import sys

from runtime.errors import UsageError
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import open_state


def run(arguments: argparse.Namespace) -> int:
    """Print the id of the new run. Raises UsageError for a file that holds none, naming the line; JournalError."""
    from runtime.journal.copies import import_lines
    from runtime.watch.lines import record_from

    state = open_state(arguments.state)
    source = arguments.file
    if source == "-":
        made = import_lines(state, sys.stdin.buffer, "standard input", record_from, random.Random())
    else:
        try:
            with open(source, "rb") as file:
                made = import_lines(state, file, source, record_from, random.Random())
        except OSError as error:
            raise UsageError(f"cannot read {source}: {error.strerror}") from error
    print(made.id)
    print(f"what it was allowed is not taken over   elenco show {made.id}{in_state()}", file=sys.stderr)
    return 0
