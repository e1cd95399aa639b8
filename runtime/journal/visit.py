"""A visit to the record of a run that nobody owns: take the lock, look, append, leave. All of it blocks."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from runtime.errors import JournalError
from runtime.events import Event, Record, type_of

from .database import BIG, Database
from .folder import RunFolder, no_space, opening
from .interface import Clock
from .lock import RunLock
from .rows import Row, encode_body, ref_of

PAGE = 500
"""Records a commit or a look takes at once."""


@contextmanager
def visit(folder: RunFolder, *, clock: Clock = time.time) -> Generator[Visit]:
    """Own a run for as long as the block lasts. Raises JournalError: it is owned already, damaged, or made by a newer
    Elenco.
    """
    lock = RunLock.take(folder.lock)
    try:
        with opening(folder):
            database = Database.for_writer(folder.journal, clock())
        try:
            yield Visit(folder, database, clock)
        finally:
            database.close()
    finally:
        lock.release()


class Visit:
    """Made by `visit`."""

    def __init__(self, folder: RunFolder, database: Database, clock: Clock) -> None:
        self.folder = folder
        self._database = database
        self._clock = clock

    def records(self) -> Iterator[Record]:
        """All there are, oldest first. Raises JournalError for damage."""
        seq = 1
        while page := self._database.records(seq, PAGE):
            yield from page
            seq = page[-1].seq + 1

    def append(self, event: Event) -> Record:
        """Record one more event, durably. Raises JournalError."""
        record = Record(self._database.last_seq() + 1, self._clock(), event)
        self.write([record])
        return record

    def write(self, records: Iterable[Record]) -> None:
        """Write records that follow the last one, all or none. Raises JournalError."""
        try:
            self._database.commit([self._row(record) for record in records])
        except (sqlite3.Error, OSError, ValueError) as error:
            why = no_space(self.folder.path) or error
            raise JournalError(f"cannot write the journal {self.folder.journal}: {why}") from error

    def _row(self, record: Record) -> Row:
        event = record.event
        body = encode_body(event)
        row: Row = (record.seq, record.at, event.actor, type_of(event), ref_of(event), body, None)
        return self._database.spill(row, event) if len(body) > BIG else row
