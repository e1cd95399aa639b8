"""A journal in memory, for tests and the simulator: nothing blocks, and it fails and crashes where it is told to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import trio

from runtime.errors import JournalError
from runtime.events import Event, Record

from .interface import Clock, Publish, already_recorded, outcome_key
from .rows import encode_body


class MemoryContents:
    """Contents in memory; they survive a `crash` of the journal they belong to."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._kept[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        """Raises JournalError for a name nothing is kept under."""
        if digest not in self._kept:
            raise JournalError(f"nothing is kept under {digest}")
        return self._kept[digest]


class MemoryJournal:
    """Durable means: a barrier or `flush` has passed. Nothing is published before.

    `fail_append` and `fail_barrier` name the call, counted from 1, that fails like a full disk; every later one
    fails too. `crash` gives what another process would find.
    """

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        clock: Clock = trio.current_time,
        fail_append: int | None = None,
        fail_barrier: int | None = None,
        contents: MemoryContents | None = None,
    ) -> None:
        self.contents = contents or MemoryContents()
        self._records = list(records)
        self._durable = len(self._records)
        self._outcomes = {key for record in self._records if (key := outcome_key(record.event)) is not None}
        self._clock = clock
        self._fail_append = fail_append
        self._fail_barrier = fail_barrier
        self._appends = 0
        self._barriers = 0
        self._failure: JournalError | None = None
        self._publish: list[Publish] = []
        self._notify: list[Callable[[JournalError], None]] = []

    @property
    def last_seq(self) -> int:
        return len(self._records)

    @property
    def durable_seq(self) -> int:
        return self._durable

    @property
    def records(self) -> tuple[Record, ...]:
        """Everything appended, durable or not."""
        return tuple(self._records)

    @property
    def durable(self) -> tuple[Record, ...]:
        return tuple(self._records[: self._durable])

    def append(self, event: Event, body: str | None = None) -> int:
        if self._failure is not None:
            raise JournalError(str(self._failure))
        self._appends += 1
        if self._appends == self._fail_append:
            raise self.fail(f"append {self._appends} failed, as told")
        if not event.kept:
            raise TypeError(f"{event.type} is live only; it goes to the log stream")
        if body is None:
            encode_body(event)
        if (key := outcome_key(event)) is not None:
            if key in self._outcomes:
                raise already_recorded(event)
            self._outcomes.add(key)
        self._records.append(Record(len(self._records) + 1, self._clock(), event))
        return len(self._records)

    async def barrier(self) -> None:
        await trio.lowlevel.checkpoint()
        if self._failure is not None:
            raise JournalError(str(self._failure))
        self._barriers += 1
        if self._barriers == self._fail_barrier:
            raise self.fail(f"barrier {self._barriers} failed, as told")
        self.flush()

    def flush(self) -> None:
        """Make everything durable, as the delayed commit of a real journal does."""
        if self._failure is not None or self._durable == len(self._records):
            return
        batch = self._records[self._durable :]
        self._durable = len(self._records)
        for publish in self._publish:
            publish(batch)

    def subscribe(self, publish: Publish) -> None:
        self._publish.append(publish)

    def when_failed(self, notify: Callable[[JournalError], None]) -> None:
        self._notify.append(notify)

    async def read(self, from_seq: int, limit: int) -> Sequence[Record]:
        await trio.lowlevel.checkpoint()
        start = max(from_seq, 1) - 1
        return self._records[start : min(start + limit, self._durable)]

    def crash(self, extra: int = 0) -> MemoryJournal:
        """What is left after kill -9: the durable records, and `extra` more that a commit under way had taken."""
        left = self._records[: self._durable + extra]
        return MemoryJournal(left, clock=self._clock, contents=self.contents)

    def fail(self, text: str) -> JournalError:
        """Break, as a disk does: nothing can be written from now on."""
        failure = self._failure = JournalError(text)
        for notify in self._notify:
            notify(failure)
        return failure
