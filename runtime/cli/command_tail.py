"""`elenco tail`: a run's events, live ones too, from the journal and the log stream alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator

import trio

from runtime.events import ModelDelta, Record
from runtime.journal.folder import RunFolder, find_run, open_state
from runtime.journal.lock import is_owned
from runtime.journal.read import RunReader, follow
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.watch.client import Disconnected, NotRunning, connect
from runtime.watch.lines import line

from .tree import changed_lines


def run(arguments: argparse.Namespace) -> int:
    """Print what is on record; with --follow, go on until the run ends. Raises UsageError, JournalError."""
    folder = find_run(open_state(arguments.state), arguments.run)
    printer = _Printer(folder.id, arguments.json)
    if arguments.follow and is_owned(folder.lock):
        trio.run(_follow, folder, arguments.from_seq, printer)
        return 0
    with RunReader(folder) as reader:
        for record in reader.records(max(arguments.from_seq, 1)):
            printer.show(record)
    return 0


async def _follow(folder: RunFolder, from_seq: int, printer: _Printer) -> None:
    seen = from_seq - 1
    async for record in _live(folder, max(from_seq, 1)):
        await trio.to_thread.run_sync(printer.show, record)
        seen = max(seen, record.seq)
    async with follow(folder, seen + 1) as rest:
        async for record in rest:
            await trio.to_thread.run_sync(printer.show, record)


async def _live(folder: RunFolder, from_seq: int) -> AsyncIterator[Record]:
    try:
        async with connect(folder) as client, client.subscribe(from_seq) as records:
            async for record in records:
                yield record
    except (NotRunning, Disconnected):
        return


class _Printer:
    """Writes records as JSON lines, or as lines for a person."""

    def __init__(self, run: str, json: bool) -> None:
        self._run = run
        self._json = json
        self._state = RunState(histories=False)
        self._open = False

    def show(self, record: Record) -> None:
        if self._json:
            sys.stdout.buffer.write(line(record, self._run))
            sys.stdout.buffer.flush()
            return
        if isinstance(record.event, ModelDelta):
            if record.event.kind == "text":
                print(record.event.text, end="", flush=True)
                self._open = True
            return
        self._state = fold(self._state, record)
        for text in changed_lines(self._state, record):
            print(f"\n{text}" if self._open else text, flush=True)
            self._open = False
