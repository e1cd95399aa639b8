"""What all runs of a state folder have spent: each journal is read once, and from then on only what is new in it."""

from __future__ import annotations

import os
import threading
import time
from operator import itemgetter
from typing import TypeAlias

import attrs

from runtime.errors import JournalError
from runtime.journal.folder import RunFolder, State, run_ids
from runtime.journal.read import RunReader
from runtime.messages import JsonObject

from .spending import TYPES, RunSpending, by_day

Stamp: TypeAlias = tuple[tuple[int, int, int], ...]
"""Inode, size and time of a journal and of the log beside it: while they stay, so does what they hold."""
_COARSE = 10**9
"""Nanoseconds: two changes nearer to each other may bear the same time."""


@attrs.define
class _Known:
    stamp: Stamp
    spending: RunSpending
    next: int = 1
    problem: str = ""


class Usage:
    """The spending of a state folder's runs, kept between questions. Its methods block, and take turns."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, _Known] = {}
        self._turn = threading.Lock()

    def as_json(self, offset: int) -> JsonObject:
        """Spending by day of a viewer `offset` minutes east of UTC; `damaged` names runs that cannot be read."""
        with self._turn:
            self._look()
            spending = {run_id: known.spending for run_id, known in self._known.items()}
            damaged = {run_id: known.problem for run_id, known in self._known.items() if known.problem}
            return {**by_day(spending, offset), "damaged": damaged}

    def _look(self) -> None:
        there = run_ids(self._state)
        for gone in self._known.keys() - set(there):
            del self._known[gone]
        for run_id in there:
            folder = self._state.run(run_id)
            stamp, known = _stamp(folder), self._known.get(run_id)
            if known is None or _replaced(known.stamp, stamp):
                known = self._known[run_id] = _Known((), RunSpending())
            if known.stamp != stamp:
                _read_on(folder, known)
                known.stamp = stamp


def _read_on(folder: RunFolder, known: _Known) -> None:
    known.problem = ""
    try:
        with RunReader(folder) as reader:
            last = reader.last_seq()
            for record in reader.records_of(TYPES, known.next, last):
                known.spending.add(record)
            known.next = max(known.next, last + 1)
    except JournalError as error:
        known.problem = str(error)


def _replaced(before: Stamp, now: Stamp) -> bool:
    return bool(before and now) and before[0][0] != now[0][0]


def _stamp(folder: RunFolder) -> Stamp:
    """Taken before the journal is read: what is written meanwhile gives another one next time.

    A file system's clock is coarse, so a journal written just now gets a stamp of its own at each look.
    """
    found: list[tuple[int, int, int]] = []
    for path in (folder.journal, folder.journal.with_name(f"{folder.journal.name}-wal")):
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    if found and (now := time.time_ns()) - max(found, key=itemgetter(2))[2] < _COARSE:
        found.append((0, 0, now))
    return tuple(found)
