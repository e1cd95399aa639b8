"""`elenco tail`: a run's events, live ones too, from the journal and the log stream alone."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from runtime.errors import ElencoError
from runtime.journal.folder import RunFolder, open_state
from runtime.journal.lock import is_owned

from .version import VERSION
from .which import find, refuse_unbegun

if TYPE_CHECKING:
    from runtime.journal.read import RunReader

    from .printer import Printer


def run(arguments: argparse.Namespace) -> int:
    """Print what is on record; with --follow, go on until the run ends. Raises UsageError, JournalError."""
    folder = find(open_state(arguments.state, to_look=True), arguments.run)
    refuse_unbegun(folder)
    from runtime.journal.read import RunReader

    from .printer import Printer, follow_run

    if arguments.otel:
        return _export(folder)
    printer = Printer(folder.id, as_json=arguments.json)
    with RunReader(folder) as reader:
        first = _first(reader, printer, arguments.from_seq)
        printer.know(reader.records(), first)
    if arguments.follow and is_owned(folder.lock):
        import trio

        trio.run(follow_run, folder, first, printer)
        return 0
    with RunReader(folder) as reader:
        for record in reader.records(first):
            printer.show(record)
    return 0


def _first(reader: RunReader, printer: Printer, wanted: int) -> int:
    """The event to begin with. Below zero counts those that are shown from the end, as it stands now."""
    if wanted >= 0:
        return max(wanted, 1)
    shown = printer.shown(reader.records())
    return shown[wanted] if len(shown) >= -wanted else 1


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
