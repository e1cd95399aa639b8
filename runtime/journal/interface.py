"""What the agents see of the journal: append now, await a barrier where it matters, read it back.

`append` costs no input or output: the event gets its place and waits in memory. `barrier` returns when everything
appended so far is on disk. What nobody waits for is committed about 50 ms later, so that watchers are not late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from runtime.errors import JournalError
from runtime.events import ApprovalDecided, Event, QuestionAnswered, Record, ToolFinished

Publish: TypeAlias = Callable[[Sequence[Record]], None]
Clock: TypeAlias = Callable[[], float]


class AlreadyRecorded(JournalError):
    """This call has its outcome, or this approval its decision: the first one counts, nothing was written."""


class Contents(Protocol):
    """What is kept beside the record of a run, each content under its SHA-256. Both methods block."""

    def put(self, data: bytes) -> str:
        """Keep `data` and return its name once it is durable. Raises OSError."""
        ...

    def get(self, digest: str) -> bytes:
        """The content of that name. Raises JournalError when it is gone or damaged."""
        ...


class Journal(Protocol):
    """The record of one run. Its owner is the only writer."""

    @property
    def contents(self) -> Contents:
        """What is kept beside the record: files as they were, results too long to show."""
        ...

    @property
    def last_seq(self) -> int:
        """The seq of the newest event, durable or not; 0 before the first."""
        ...

    @property
    def durable_seq(self) -> int:
        """The seq of the newest event on disk."""
        ...

    def append(self, event: Event, body: str | None = None) -> int:
        """Take a kept event and return its seq, counted from 1; `body` is its JSON where somebody has written it.

        Raises AlreadyRecorded for a second outcome of a call or a second decision on an approval, and JournalError
        once a commit has failed.
        """
        ...

    async def barrier(self) -> None:
        """Return when everything appended so far is durable.

        Raises JournalError; from then on nothing more is written. A cancelled barrier leaves its events to be
        written all the same.
        """
        ...

    def subscribe(self, publish: Publish) -> None:
        """Have `publish` called with each batch of records once it is durable, in order; it must not block."""
        ...

    def when_failed(self, notify: Callable[[JournalError], None]) -> None:
        """Have `notify` called once nothing can be written any more; it must not block."""
        ...

    async def read(self, from_seq: int, limit: int) -> Sequence[Record]:
        """Up to `limit` durable records from `from_seq` on, oldest first. Raises JournalError."""
        ...


def outcome_key(event: Event) -> tuple[str, str, str] | None:
    """What may be recorded only once in a run: the outcome of a call, the decision on an approval, an answer."""
    match event:
        case ToolFinished():
            return (event.actor, event.call_id, event.type)
        case ApprovalDecided() | QuestionAnswered():
            return ("", event.id, event.type)
        case _:
            return None


def already_recorded(event: Event) -> AlreadyRecorded:
    match event:
        case ToolFinished():
            return AlreadyRecorded(f"call {event.call_id} of {event.actor} already has its outcome")
        case ApprovalDecided():
            return AlreadyRecorded(f"{event.id} was already decided: the first decision counts")
        case QuestionAnswered():
            return AlreadyRecorded(f"{event.id} was already answered: the first answer counts")
        case _:
            return AlreadyRecorded(f"{event.type} is already recorded")
