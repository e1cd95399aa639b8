"""One reader's place in the log stream: what it has taken, what it still wants of the journal, when it is told."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.errors import JournalError
from runtime.events import ApprovalRequested, Gap, QuestionAsked, Record

if TYPE_CHECKING:
    from .stream import LogStream

PAGE = 500
BREATH = 0.01
"""Seconds that a reader in no hurry lets come together: text for a terminal, spans for a collector."""
PLENTY = 40
"""Records for which no reader waits on: they would only take memory."""


@attrs.frozen
class _Backlog:
    """Kept events to fetch from the journal, up to and including `until`; `then` follows them.

    `resync` is for who lost live events or wants no history: then everything live starts anew at the ring's end.
    """

    until: int
    then: tuple[Record, ...] = ()
    resync: bool = False


class Reader:
    """One reader's place in the stream, made by `LogStream.subscribe`; iterate it, or take whole batches."""

    def __init__(self, stream: LogStream, from_seq: int | None, breath: float) -> None:
        self._stream = stream
        self._breath = breath
        self._cursor = stream.mark()
        self._seen = stream.live
        self._waiting: list[Record] = []
        self._snapshot = from_seq is None
        self._rested = -math.inf
        self._backlog: _Backlog | None
        if from_seq is None:
            self._next = stream.seq + 1
            self._backlog = _Backlog(stream.seq, resync=True)
        else:
            self._next = min(max(from_seq, 1), stream.seq + 1)
            self._backlog = _Backlog(stream.seq, tuple(stream.resets()))

    @property
    def position(self) -> int:
        """Where it goes on in the ring, once it has read what it still wants of the journal."""
        return self._cursor

    def __aiter__(self) -> Reader:
        return self

    async def __anext__(self) -> Record:
        if not self._waiting:
            self._waiting = await self.batch()
            self._waiting.reverse()
            if not self._waiting:
                raise StopAsyncIteration
        return self._waiting.pop()

    async def batch(self) -> list[Record]:
        """What is new, at least one record; an empty list when the stream has ended.

        Raises JournalError. A cancelled call loses nothing.
        """
        stream = self._stream
        await trio.lowlevel.checkpoint()
        while True:
            await self._breathe()
            found = await self.catch_up() or self.take(stream.mark())
            if found or (found is not None and stream.closed):
                stream.let_go()
                self._rested = trio.current_time() + self._breath
                return found
            if found is not None:
                await stream.wait()
                self._rested = trio.current_time() + self._breath

    async def _breathe(self) -> None:
        """Let some more come in, since the last batch or the first that is new."""
        stream = self._stream
        if trio.current_time() >= self._rested or self._backlog is not None or stream.closed:
            return
        there = stream.since(self._cursor) if self._cursor >= stream.base else []
        if len(there) < PLENTY and not any(map(is_pressing, there)):
            with trio.move_on_at(self._rested):
                await stream.breath()

    async def catch_up(self) -> list[Record]:
        """What it needs that the ring does not have, a page at a time; an empty list when the ring goes on from here.

        Does not wait for what is new. Raises JournalError. A cancelled call loses nothing.
        """
        stream = self._stream
        while True:
            if self._cursor < stream.base and self._backlog is None:
                self._backlog = _Backlog(stream.seq, resync=True)
                self._cursor = stream.mark()
            if self._backlog is None:
                return []
            if found := await self._page(self._backlog):
                return found

    def take(self, until: int) -> list[Record] | None:
        """What the ring has for it up to a position, None where it has to catch up first; `let_go` then forgets it."""
        stream = self._stream
        if self._backlog is not None or self._cursor < stream.base:
            return None
        records, count = stream.since(self._cursor), max(0, until - self._cursor)
        found, left = records[:count], records[count:]
        if found:
            self._cursor = until
            self._seen = stream.live - sum(not record.event.kept for record in left)
            self._next = found[-1].seq + 1
        return found

    async def _page(self, backlog: _Backlog) -> list[Record]:
        stream = self._stream
        if self._next <= backlog.until:
            page = list(await stream.journal.read(self._next, min(PAGE, backlog.until + 1 - self._next)))
            if not page:
                raise JournalError(f"the journal has no event {self._next}, which was shown as durable")
            self._next = page[-1].seq + 1
            return page
        if not backlog.resync:
            self._backlog = None
            return list(backlog.then)
        if self._snapshot or stream.live > self._seen:
            await stream.fold_up_to(backlog.until)
        return self._restart(backlog.until)

    def _restart(self, until: int) -> list[Record]:
        """Go on at the ring's end: the kept events since `until`, what was lost, and the running turns whole."""
        stream = self._stream
        end = stream.mark()
        kept = [record for record in stream.since(stream.base) if record.event.kept and record.seq > until]
        if len(kept) != stream.seq - until:
            self._backlog = _Backlog(stream.seq, resync=True)
            return []
        lost = stream.live - self._seen
        found = [] if self._snapshot else list(kept)
        if self._snapshot or lost:
            if stream.folded < until:
                return []
            stream.fold(kept)
            if lost and not self._snapshot:
                found.append(stream.synthetic(Gap(lost=lost)))
            found.append(stream.snapshot())
            found += stream.resets()
        self._snapshot = False
        self._backlog = None
        self._cursor = end
        self._seen = stream.live
        self._next = stream.seq + 1
        return found


def is_pressing(record: Record) -> bool:
    """Whether somebody is asked something."""
    return isinstance(record.event, ApprovalRequested | QuestionAsked)
