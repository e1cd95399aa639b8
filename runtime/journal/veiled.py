"""A journal into which no secret comes: the same journal, with every event cleaned on its way in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runtime.errors import JournalError
from runtime.events import Event, Record
from runtime.secrecy import Veil

from .interface import Contents, Journal, Publish
from .rows import encode_body


class VeiledJournal:
    """What it keeps beside the record is not looked at: who puts a content there has looked."""

    def __init__(self, journal: Journal, veil: Veil) -> None:
        self._journal = journal
        self._veil = veil

    @property
    def contents(self) -> Contents:
        return self._journal.contents

    @property
    def last_seq(self) -> int:
        return self._journal.last_seq

    @property
    def durable_seq(self) -> int:
        return self._journal.durable_seq

    def append(self, event: Event, body: str | None = None) -> int:
        if body is None:
            body = encode_body(event)
        if self._veil.may_stand_in(body):
            return self._journal.append(self._veil.event(event))
        return self._journal.append(event, body)

    async def barrier(self) -> None:
        await self._journal.barrier()

    def subscribe(self, publish: Publish) -> None:
        self._journal.subscribe(publish)

    def when_failed(self, notify: Callable[[JournalError], None]) -> None:
        self._journal.when_failed(notify)

    async def read(self, from_seq: int, limit: int) -> Sequence[Record]:
        return await self._journal.read(from_seq, limit)
