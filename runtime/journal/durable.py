"""The journal on disk: one SQLite database a run, one writer, one commit for everybody who waits.

Commits run in one thread of the journal's own, which takes them from a queue and tells of them through a pipe: that
costs less than half of a trip through Trio's worker threads. Whoever needs a barrier, while few do, starts a commit and
waits for it in place, for PATIENCE: a fast disk is done sooner than Trio could be told, and a team whose answers came
at the same moment is spread out, each request sent while the next is made ready. In a crowd, or on a slow disk, all
wait in Trio's way, and share the next commit when one is under way. What nobody waits for is committed within about
50 ms. After the first failed commit nothing is ever written again.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from queue import SimpleQueue

import trio

from runtime.errors import JournalError
from runtime.events import Event, Record, type_of

from .blobs import Blobs
from .database import BIG, Database
from .elsewhere import in_state
from .folder import RunFolder, opening
from .interface import Clock, Publish, already_recorded, outcome_key
from .lock import RunLock
from .nursery import serving
from .rows import Row, encode_body, ref_of

TICK = 0.025
"""Seconds between looks for events nobody waits for: they are committed at the second look."""
PATIENCE = 0.003
"""Seconds for which a commit is waited for without letting other tasks run; a disk that had been idle takes one."""
TOGETHER = 0.005
"""Seconds for which they are held up by several such commits, of all journals of a thread, before they have a turn."""
FEW = 4
"""Tasks that wanted a barrier LATELY up to which it is waited for in place: a crowd has better to do meanwhile."""
LATELY = 0.02
"""Seconds."""
SLOW = 64
"""Commits that are waited for in Trio's way after one that took longer than PATIENCE."""
YOUNG = 16
"""Commits after which a run is taken for a long one: more of its log is written ahead then, a piece after each."""
CLOSING = 10.0
"""Seconds the last commit may take when the journal is closed."""
MOMENT = 0.5
"""Seconds its thread has to end after that."""


@asynccontextmanager
async def open_journal(folder: RunFolder, *, clock: Clock = time.time) -> AsyncGenerator[SqliteJournal]:
    """Own a run's journal, a new one or one to go on with. What was appended is durable when the block ends.

    Raises JournalError: owned by another process, made by a newer Elenco, damaged, or the last commit failed.
    """
    lock = await trio.to_thread.run_sync(lambda: RunLock.take(folder.lock))
    try:
        journal = await trio.to_thread.run_sync(lambda: SqliteJournal(folder, clock))
    except BaseException:
        lock.release()
        raise
    try:
        async with serving() as nursery:
            nursery.start_soon(journal.serve)
            nursery.start_soon(journal.flush_lazily)
            try:
                yield journal
            finally:
                await journal.close()
    finally:
        # A writer that hangs in a commit keeps the lock: nobody else may write beside it.
        if journal.stopped:
            lock.release()


class SqliteJournal:
    """The Journal of a live run; made by `open_journal`."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        with opening(folder):
            database = Database.for_writer(folder.journal, clock())
        try:
            self._last = self._durable = database.last_seq()
            self._once = set(database.once())
            self.contents = Blobs(folder.blobs)
            self.contents.sweep()
            self._writer = _Writer(database)
        except BaseException:
            database.close()
            raise
        self._folder = folder
        self._clock = clock
        self._rows: list[Row] = []
        self._records: list[Record] = []
        self._big: dict[int, Event] = {}
        self._waiters: dict[trio.lowlevel.Task, int] = {}
        self._publish: list[Publish] = []
        self._notify: list[Callable[[JournalError], None]] = []
        self._failure: str | None = None
        self._idle = trio.lowlevel.ParkingLot()
        self._serving = trio.CancelScope(shield=True)
        self._commits = 0
        self._recent = _Recent()
        self._served = 0
        self._slow = 0

    @property
    def last_seq(self) -> int:
        return self._last

    @property
    def durable_seq(self) -> int:
        return self._durable

    @property
    def stopped(self) -> bool:
        """Whether the writer's thread has ended."""
        return self._writer.stopped

    @property
    def commits(self) -> int:
        """How many commits were made so far."""
        return self._commits

    @trio.lowlevel.enable_ki_protection
    def append(self, event: Event, body: str | None = None) -> int:
        if self._failure is not None:
            raise JournalError(self._failure)
        if not event.kept:
            raise TypeError(f"{event.type} is live only; it goes to the log stream")
        if body is None:
            body = encode_body(event)
        if (key := outcome_key(event)) is not None:
            if key in self._once:
                raise already_recorded(event)
            self._once.add(key)
        seq = self._last = self._last + 1
        at = self._clock()
        if len(body) > BIG:
            self._big[seq] = event
        self._rows.append((seq, at, event.actor, type_of(event), ref_of(event), body, None))
        self._records.append(Record(seq, at, event, body=body if len(body) <= BIG else None))
        if self._idle:
            self._idle.unpark()
        return seq

    async def barrier(self) -> None:
        if self._failure is not None:
            raise JournalError(self._failure)
        target = self._last
        if self._durable >= target:
            await trio.lowlevel.checkpoint()
            return
        task = id(trio.lowlevel.current_task())
        crowd = self._recent.count(task, trio.current_time()) > FEW
        bearable = not crowd and _HELD.bears_more(time.perf_counter())
        if not crowd and (self._served == task or not bearable):
            before = _HELD.total
            await trio.lowlevel.checkpoint()  # Others who are at work append now, and share the commit.
            bearable = _HELD.total == before
            if bearable:
                _HELD.lately = 0.0
        else:
            await trio.lowlevel.checkpoint_if_cancelled()
        may_wait = bearable and not (self._slow or self._writer.busy)
        if may_wait and self._durable < target and self._failure is None:
            self._served = task
            self._commit_in_place()
        if self._durable < target and self._failure is None:
            await trio.lowlevel.wait_task_rescheduled(self._waiting_for(target))
        if self._durable < target:
            raise JournalError(self._failure or "the journal is closed")

    @trio.lowlevel.enable_ki_protection
    def _commit_in_place(self) -> None:
        begun = time.perf_counter()
        self._start()
        batch = self._writer.done_within(PATIENCE)
        _HELD.add(begun, time.perf_counter())
        if batch is not None:
            self._settle(batch)
        else:
            self._slow = SLOW

    def _waiting_for(self, target: int) -> Callable[[object], trio.lowlevel.Abort]:
        """Wake this task when `target` is durable; what gives that up. No coroutine of its own: a crowd waits so."""
        task = trio.lowlevel.current_task()
        self._waiters[task] = target
        self._slow = max(0, self._slow - 1)
        if not self._writer.busy:
            self._start()
        return partial(self._give_up, task)

    def _give_up(self, task: trio.lowlevel.Task, _: object) -> trio.lowlevel.Abort:
        del self._waiters[task]
        return trio.lowlevel.Abort.SUCCEEDED

    def subscribe(self, publish: Publish) -> None:
        self._publish.append(publish)

    def when_failed(self, notify: Callable[[JournalError], None]) -> None:
        self._notify.append(notify)

    async def read(self, from_seq: int, limit: int) -> Sequence[Record]:
        def page() -> list[Record]:
            database = Database.for_reader(self._folder.journal)
            try:
                return database.records(from_seq, limit)
            finally:
                database.close()

        return await trio.to_thread.run_sync(page)

    # --- committing ----------------------------------------------------------------------------------------------

    @trio.lowlevel.enable_ki_protection
    def _start(self) -> None:
        batch = _Batch(self._rows, self._records, self._big)
        self._rows, self._records, self._big = [], [], {}
        self._writer.start(batch)

    @trio.lowlevel.enable_ki_protection
    async def serve(self) -> None:
        """Settle each commit until the journal is closed; no cancellation from outside stops it before."""
        with self._serving:
            while True:
                self._settle(await self._writer.finished())

    def _settle(self, batch: _Batch) -> None:
        if batch.error is None:
            self._commits += 1
            self._durable = batch.records[-1].seq
            for publish in self._publish:
                publish(batch.records)
        else:
            self._failure = self._explain(batch.error)
            self._rows, self._records, self._big = [], [], {}
            for notify in self._notify:
                notify(JournalError(self._failure))
        for task, target in list(self._waiters.items()):
            if target <= self._durable or self._failure is not None:
                del self._waiters[task]
                trio.lowlevel.reschedule(task)
        if self._waiters:
            self._start()

    @trio.lowlevel.enable_ki_protection
    async def flush_lazily(self) -> None:
        """Commit what nobody waits for; runs until cancelled. In a fast loop it finds nothing to do."""
        seen = 0
        while True:
            if not self._rows:
                await self._idle.park()
                seen = self._rows[0][0] if self._rows else 0
            await trio.sleep(TICK)
            oldest = self._rows[0][0] if self._rows else 0
            if oldest and oldest == seen and not self._writer.busy:
                self._start()
            seen = oldest

    async def close(self) -> None:
        """Write the rest and end the writer's thread; shielded, and bounded by CLOSING seconds. Raises JournalError."""
        latest = trio.current_time() + CLOSING
        try:
            with trio.move_on_at(latest) as bound:
                bound.shield = True
                if self._failure is None:
                    await self.barrier()
            if bound.cancelled_caught:
                raise JournalError(f"the last commit to {self._folder.journal} took longer than {CLOSING:g} s")
        finally:
            self._failure = self._failure or "the journal is closed"
            self._serving.cancel()
            with trio.move_on_at(max(latest, trio.current_time() + MOMENT)) as bound:
                bound.shield = True
                await self._writer.stop()

    def _explain(self, error: Exception) -> str:
        return (
            f"cannot write the journal {self._folder.journal}: {_why(error)}; the run stops here, "
            f"the first {self._durable} events are safe"
            + (f"; go on: elenco resume {self._folder.id}{in_state()}" if self._durable else "")
        )


def _why(error: Exception) -> str:
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_FULL" or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EDQUOT):
        return f"no space is left ({error})"
    if name.startswith("SQLITE_IOERR") or getattr(error, "errno", 0) == errno.EFBIG:
        return f"the disk refused it: a fault, a quota or a file size limit ({name or error})"
    return str(error)


class _Held(threading.local):
    """For how long tasks of this thread were lately held up by commits in place, of all its journals together.

    `total` is the sum since ever, `lately` that since all had a turn: since a task let the others go first, or for
    LATELY nobody was held up.
    """

    def __init__(self) -> None:
        self.total = self.lately = 0.0
        self._last = self._ended = 0.0

    def bears_more(self, now: float) -> bool:
        """Whether one more commit that takes as long as the last may be waited for: all of them within TOGETHER."""
        if now - self._ended > LATELY:
            self.lately = 0.0
        return self.lately + self._last <= TOGETHER

    def add(self, begun: float, ended: float) -> None:
        self._last = min(ended - begun, PATIENCE)
        self._ended = ended
        self.total += self._last
        self.lately += self._last


_HELD = _Held()


class _Recent:
    """How many different tasks have wanted a barrier of late: in this span of LATELY or the one before."""

    def __init__(self) -> None:
        self._tasks: set[int] = set()
        self._before = 0
        self._until = 0.0

    def count(self, task: int, now: float) -> int:
        if now >= self._until:
            self._before = len(self._tasks) if now < self._until + LATELY else 0
            self._tasks = set()
            self._until = now + LATELY
        self._tasks.add(task)
        return max(self._before, len(self._tasks))


class _Batch:
    """What one commit writes, and how it ended."""

    def __init__(self, rows: list[Row], records: list[Record], big: dict[int, Event]) -> None:
        self.rows = rows
        self.records = records
        self.big = big
        self.error: Exception | None = None
        self.done = threading.Lock()
        self.done.acquire()
        self.rings = True
        """Whether its end is told through the pipe too."""


class _Writer:
    """The thread that commits, one batch at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch: _Batch | None = None
        self._commits: SimpleQueue[_Batch | None] = SimpleQueue()
        self._done, self._done_writer = os.pipe()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def stopped(self) -> bool:
        return not self._thread.is_alive()

    @property
    def busy(self) -> bool:
        return self._batch is not None

    def start(self, batch: _Batch) -> None:
        self._batch = batch
        self._commits.put(batch)

    def done_within(self, seconds: float) -> _Batch | None:
        """The batch under way, waited for in place; None when it takes longer, and `finished` will tell."""
        batch = self._batch
        assert batch is not None
        batch.rings = False
        if batch.done.acquire(timeout=seconds):
            return self._taken()
        batch.rings = True
        return self._taken() if batch.done.acquire(blocking=False) else None

    async def finished(self) -> _Batch:
        """Wait for the batch under way, or the next one. A cancelled wait leaves it to the next call."""
        while True:
            await trio.lowlevel.wait_readable(self._done)
            os.read(self._done, 1)
            if self._batch is not None and self._batch.done.acquire(blocking=False):
                return self._taken()  # else it was taken in place

    def _taken(self) -> _Batch:
        batch, self._batch = self._batch, None
        assert batch is not None
        return batch

    async def stop(self) -> None:
        """End the thread, which closes the database, after the commit under way."""
        self._commits.put(None)
        await trio.to_thread.run_sync(self._thread.join, abandon_on_cancel=True)
        os.close(self._done)
        os.close(self._done_writer)

    def _run(self) -> None:
        count, longer = 0, True
        try:
            while self._commit(self._commits.get()):
                count += 1
                if longer and (count == 1 or count > YOUNG):
                    longer = self._database.lengthen_log()
        finally:
            self._database.close()

    def _commit(self, batch: _Batch | None) -> bool:
        """Write a batch; whether another may come. Nothing of it is kept here while waiting for the next one."""
        if batch is None:
            return False
        batch.error = RuntimeError("the writer's thread broke")
        try:
            rows = batch.rows
            if batch.big:
                rows = [self._database.spill(row, batch.big[row[0]]) if row[0] in batch.big else row for row in rows]
            self._database.commit(rows)
            batch.error = None
        except (sqlite3.Error, OSError, ValueError) as error:
            batch.error = error
        finally:
            batch.done.release()
            if batch.rings:
                os.write(self._done_writer, b".")
        return True
