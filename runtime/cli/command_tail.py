"""`elenco tail`: a run's events, live ones too, from the journal and the log stream alone."""

from __future__ import annotations

import argparse

from runtime.journal.folder import open_state
from runtime.journal.lock import is_owned

from .which import find, refuse_unbegun


def run(arguments: argparse.Namespace) -> int:
    """Print what is on record; with --follow, go on until the run ends. Raises UsageError, JournalError."""
    folder = find(open_state(arguments.state, to_look=True), arguments.run)
    refuse_unbegun(folder)
    from runtime.journal.read import RunReader

    from .printer import Printer, follow_run

    printer = Printer(folder.id, as_json=arguments.json)
    first = max(arguments.from_seq, 1)
    if arguments.follow and is_owned(folder.lock):
        import trio

        trio.run(follow_run, folder, first, printer)
        return 0
    with RunReader(folder) as reader:
        for record in reader.records(first):
            printer.show(record)
    return 0
