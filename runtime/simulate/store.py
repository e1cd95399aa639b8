"""A journal in memory that commits late, takes its time, fails where it is told, and can be looked at after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import trio

from runtime.events import ActorFinished, Event, Record, RunWaiting
from runtime.journal.memory import MemoryJournal

from .world import Accident

COMMIT_AFTER = 0.05


class Store(MemoryJournal):
    """`serve` is the task that commits what nobody waits for. `on_waiting` is called at each `run.waiting`."""

    def __init__(
        self, records: Iterable[Record], random: Random, accident: Accident | None = None, slow: bool = False
    ) -> None:
        kind, at = (accident.kind, accident.at) if accident is not None else ("", 0)
        super().__init__(
            records,
            fail_append=at if kind == "append" else None,
            fail_barrier=at if kind == "barrier" else None,
        )
        self._reports_left = at if kind == "report" else 0
        self._random = random
        self._slow = slow
        self._news = trio.Event()
        self.on_waiting: Callable[[], None] = lambda: None

    async def serve(self) -> None:
        """Commit a moment after something came that nobody waits for, for ever."""
        while True:
            await self._news.wait()
            await trio.sleep(COMMIT_AFTER)
            self._news = trio.Event()
            self.flush()

    def append(self, event: Event, body: str | None = None) -> int:
        seq = super().append(event, body)
        self._news.set()
        if isinstance(event, RunWaiting):
            self.on_waiting()
        if isinstance(event, ActorFinished) and "/" in event.actor and self._reports_left:
            self._reports_left -= 1
            if not self._reports_left:
                self.die()
        return seq

    async def barrier(self) -> None:
        if self._slow and self._random.random() < 0.3:
            await trio.sleep(self._random.random() * COMMIT_AFTER)
        await super().barrier()

    def die(self) -> None:
        """From now on nothing is written: the process is gone, and its tasks are only still to be cleared away."""
        self.fail("killed")

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def left(self, extra: int) -> tuple[Record, ...]:
        """What another process finds."""
        return self.crash(extra).records
