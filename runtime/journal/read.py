"""Other processes' runs, looked at only: their records, followed live, and the list of all with what each does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeAlias

import attrs
import trio

from runtime.errors import JournalError, NewerRecord
from runtime.events import ApprovalRequested, ModelFinished, QuestionAsked, Record, RunFinished

from . import index
from .database import SCHEMA, Database
from .folder import RunFolder, State, run_ids
from .index import RunRow
from .lock import is_owned
from .looking import cannot_share, flaw, look_alone
from .replay import fold
from .rows import Row
from .state import RunState

RunStatus: TypeAlias = Literal[
    "running",
    "waiting",
    "held",
    "interrupted",
    "forked",
    "completed",
    "stopped",
    "failed",
    "cancelled",
    "newer",
    "damaged",
]
NEVER_BEGAN = "it never began"
"""The problem of a folder whose process died, or was refused, before anything was on record."""
PAGE = 500
POLL = 0.05


class RunReader:
    """The record of a run, read-only; it disturbs its owner in nothing. All methods block.

    Raises JournalError: damage, or a newer Elenco's database. What a killed owner had not finished writing is not
    there: what is read is always a prefix of what was appended.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._database = _opened(folder) if folder.journal.exists() else None

    def __enter__(self) -> RunReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def last_seq(self) -> int:
        return self._database.last_seq() if self._database is not None else 0

    def page(self, from_seq: int, limit: int = PAGE) -> list[Record]:
        """Up to `limit` records from `from_seq` on."""
        return [self.record(row) for row in self.rows(from_seq, limit)]

    def rows(self, from_seq: int, limit: int = PAGE) -> list[Row]:
        """The same as they are kept, for who can use them so; `record` makes records of them."""
        if self._database is None and self.folder.journal.exists():
            self._database = _opened(self.folder)
        return self._database.rows(from_seq, limit) if self._database is not None else []

    def record(self, row: Row) -> Record:
        """The record of a row that this reader gave."""
        assert self._database is not None
        return self._database.record(row)

    def records(self, from_seq: int = 1) -> Iterator[Record]:
        """All records from `from_seq` on, as of now."""
        while page := self.page(from_seq):
            yield from page
            from_seq = page[-1].seq + 1

    def milestones(self) -> list[Record]:
        return self._database.milestones() if self._database is not None else []

    def records_of(self, types: Sequence[str], from_seq: int, to_seq: int) -> list[Record]:
        return self._database.records_of(types, from_seq, to_seq) if self._database is not None else []

    def has_outcome(self, actor: str, call_id: str) -> bool:
        return self._database is not None and self._database.has_outcome(actor, call_id)


def _opened(folder: RunFolder) -> Database:
    """A run's database, also on a full disk and in a folder that cannot be written."""
    try:
        return Database.for_reader(folder.journal)
    except JournalError as error:
        if not cannot_share(error.__cause__) or is_owned(folder.lock):
            raise
        try:
            connection = look_alone(folder.journal)
        except sqlite3.Error:
            raise error from None
        if connection.execute("PRAGMA user_version").fetchone()[0] > SCHEMA:
            connection.close()
            raise NewerRecord(f"the journal {folder.journal} was made by a newer Elenco: update Elenco") from None
        return Database(connection, folder.journal)


def load(folder: RunFolder, *, histories: bool = True, until: int | None = None) -> RunState:
    """The state of a run, up to and including the event `until` if it is given. Blocks. Raises JournalError."""
    state = RunState(histories=histories)
    with RunReader(folder) as reader:
        for record in reader.records():
            if until is not None and record.seq > until:
                break
            state = fold(state, record)
    return state


class Follower:
    """Records as they become durable, until the run has ended or its owner is gone; iterate it inside `async with`."""

    def __init__(self, folder: RunFolder, from_seq: int = 1) -> None:
        self._reader = RunReader(folder)
        self._next = max(from_seq, 1)
        self._waiting: list[Record] = []

    async def __aenter__(self) -> Follower:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Record:
        """The next record. Raises JournalError. A cancelled call loses nothing."""
        while not self._waiting:
            # Asked before reading: what the owner wrote before it went is then still found.
            owned = is_owned(self._reader.folder.lock)
            page = await trio.to_thread.run_sync(self._reader.page, self._next)
            if not page and not owned:
                raise StopAsyncIteration
            if page:
                self._next = page[-1].seq + 1
                self._waiting = page[::-1]
            else:
                await trio.sleep(POLL)
        return self._waiting.pop()


def follow(folder: RunFolder, from_seq: int = 1) -> Follower:
    """Follow a run from `from_seq` on, from any process."""
    return Follower(folder, from_seq)


@attrs.frozen
class RunInfo:
    """One line of the list of runs: its row with what its journal says now.

    `waits_for` are the ids of approvals and questions nobody has answered; `problem` says why a run is damaged, or
    newer: written by a newer Elenco.
    """

    row: RunRow
    status: RunStatus
    owned: bool
    waits_for: tuple[str, ...] = ()
    problem: str = ""


def runs(state: State) -> list[RunInfo]:
    """Every run, newest first. Blocks. Raises JournalError only for the index itself.

    There may be thousands that have ended: of those only the head and the size of the journal are looked at.
    """
    known = index.rows(state)
    found = [info(state, run_id, known.get(run_id)) for run_id in run_ids(state)]
    return sorted(found, key=lambda each: each.row.started, reverse=True)


def info(state: State, run_id: str, row: RunRow | None = None) -> RunInfo:
    """What one run is and does. Blocks."""
    folder = state.run(run_id)
    if row is not None and row.ended is not None and row.status:
        if problem := flaw(folder.journal):
            return RunInfo(row, "damaged", owned=False, problem=problem)
        return RunInfo(row, _ended(row.status), owned=False)
    owned = is_owned(folder.lock)
    try:
        with RunReader(folder) as reader:
            found = _live(reader, row, owned)
    except NewerRecord as error:
        return RunInfo(row or _unknown(folder.path), "newer", owned, problem=str(error))
    except JournalError as error:
        return RunInfo(row or _unknown(folder.path), "damaged", owned, problem=str(error))
    if found.problem and row is not None and (problem := flaw(folder.journal)):
        # A row is written when there is a journal: this one had begun.
        return attrs.evolve(found, problem=problem)
    return found


def _live(reader: RunReader, row: RunRow | None, owned: bool) -> RunInfo:
    milestones = reader.milestones()
    state = RunState(histories=False)
    steps = tokens = 0
    estimated = False
    for record in milestones:
        state = fold(state, record)
        if isinstance(record.event, ModelFinished):
            steps += record.event.purpose != "summary"
            tokens += record.event.usage.get("input", 0) + record.event.usage.get("output", 0)
            estimated |= bool(record.event.usage.get("estimated"))
    costs = [record.event.cost_usd for record in milestones if isinstance(record.event, ModelFinished)]
    row = attrs.evolve(
        _described(reader.folder.path, state, row),
        steps=steps,
        tokens=tokens,
        estimated=estimated,
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
    if isinstance(finished := state.finished, RunFinished):
        status = str(finished.report.get("status", "failed"))
        row = attrs.evolve(row, ended=state.at, status=status, reason=finished.report.get("reason") or "")
        return RunInfo(row, _ended(status), owned)
    if state.started is None and not owned:
        return RunInfo(row, "damaged", owned, problem=NEVER_BEGAN)
    asked: tuple[ApprovalRequested | QuestionAsked, ...] = (*state.pending_approvals, *state.pending_questions)
    # Once it is to be cancelled, nobody needs to decide anything: a resume ends it.
    asked = () if state.cancel is not None else asked
    waits = tuple(each.id for each in asked if not reader.has_outcome(each.actor, _call_of(each)))
    phase = state.phase
    if phase == "waiting" and (waits or owned):
        return RunInfo(row, "waiting", owned, waits)
    if not owned:
        standing: RunStatus = "interrupted" if state.forked is None else "forked"
        return RunInfo(row, standing if state.cancel is None else "cancelled", owned, waits)
    return RunInfo(row, "held" if phase == "held" else "running", owned, waits)


def _call_of(asked: ApprovalRequested | QuestionAsked) -> str:
    return asked.within if isinstance(asked, QuestionAsked) else asked.call_id


def _described(path: Path, state: RunState, row: RunRow | None) -> RunRow:
    if row is not None or state.started is None:
        return row or _unknown(path)
    started = state.started
    return RunRow(
        id=path.name,
        agent=started.agent,
        task=started.task,
        model=started.model,
        workspace=started.workspace,
        started=state.started_at,
        max_steps=started.limits.get("max_steps"),
    )


def _unknown(path: Path) -> RunRow:
    return RunRow(id=path.name, agent="", task="", model="", workspace="", started=path.stat().st_mtime)


def _ended(status: str) -> RunStatus:
    match status:
        case "completed" | "stopped" | "failed" | "cancelled":
            return status
        case _:
            return "failed"
