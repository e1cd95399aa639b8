"""`elenco tail`: a run's events, live ones too, from the journal and the log stream alone."""

from __future__ import annotations

import argparse
import sys

from runtime.errors import ElencoError
from runtime.journal.folder import RunFolder, open_state
from runtime.journal.lock import is_owned

from .version import VERSION
from .which import find, refuse_unbegun


def run(arguments: argparse.Namespace) -> int:
    """Print what is on record; with --follow, go on until the run ends. Raises UsageError, JournalError."""
    folder = find(open_state(arguments.state, to_look=True), arguments.run)
    refuse_unbegun(folder)
    from runtime.journal.read import RunReader

    from .printer import Printer, follow_run

    if arguments.otel:
        return _export(folder)
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


def _export(folder: RunFolder) -> int:
    import trio

    from runtime.telemetry.target import asked_for

    target = asked_for(True, VERSION)
    assert target is not None
    from .telemetry import export_run

    if undelivered := trio.run(export_run, folder, target):
        raise ElencoError(undelivered)
    print(f"sent the spans and metrics of run {folder.id}", file=sys.stderr)
    return 0
