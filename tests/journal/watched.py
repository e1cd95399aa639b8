"""A journal for tests of what is on record when a child begins."""

from __future__ import annotations

from runtime.events import ActorStarted, Event, ToolStarted
from runtime.journal import MemoryJournal


class Watched(MemoryJournal):
    """Notes whether a child's parent had its call on record when the child was first heard of."""

    recorded = False

    def append(self, event: Event, body: str | None = None) -> int:
        if isinstance(event, ActorStarted) and event.parent is not None:
            self.recorded = any(isinstance(record.event, ToolStarted) for record in self.durable)
        return super().append(event, body)
