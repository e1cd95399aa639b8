"""Decisions only a human can make: asked and answered as durable events, the first answer wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import attrs
import trio

from .errors import UsageError
from .events import ApprovalDecided, ApprovalRequested, Event
from .messages import JsonObject


class Recorder(Protocol):
    """The part of a journal that is needed here."""

    def append(self, event: Event) -> int: ...
    async def barrier(self) -> None: ...


@attrs.define(eq=False)
class Pending:
    """A question a human has not answered yet."""

    request: ApprovalRequested
    answered: trio.Event = attrs.Factory(trio.Event)
    decision: ApprovalDecided | None = None


class Approvals:
    """The open questions of one run. Whoever shows them (terminal, dashboard, socket) calls `decide`."""

    def __init__(self, journal: Recorder, waiting: Callable[[], None]) -> None:
        self._journal = journal
        self._waiting = waiting
        self._asked = 0
        self._by_call: dict[tuple[str, str], Pending] = {}
        self._by_id: dict[str, Pending] = {}

    @property
    def pending(self) -> tuple[ApprovalRequested, ...]:
        """What nobody has decided yet, oldest first."""
        return tuple(entry.request for entry in self._by_id.values() if entry.decision is None)

    def restore(self, requests: Iterable[ApprovalRequested], decisions: Iterable[ApprovalDecided]) -> None:
        """Take over what an earlier process asked, and what has been decided since."""
        for request in requests:
            self._asked += 1
            pending = Pending(request)
            self._by_id[request.id] = self._by_call[request.actor, request.call_id] = pending
        for decision in decisions:
            if (entry := self._by_id.get(decision.id)) is not None:
                entry.decision = decision
                entry.answered.set()

    async def ask(
        self, actor: str, call_id: str, name: str, arguments: JsonObject, why: str, preview: str = ""
    ) -> ApprovalDecided:
        """The decision on a call, waiting for it as long as it takes; one that is on record counts at once.

        Raises JournalError. A cancelled ask leaves the question open: a later process finds it in the journal.
        """
        pending = self._by_call.get((actor, call_id))
        if pending is None:
            self._asked += 1
            request = ApprovalRequested(
                actor=actor,
                id=f"a{self._asked}",
                call_id=call_id,
                name=name,
                arguments=arguments,
                why=why,
                preview=preview,
            )
            pending = Pending(request)
            self._journal.append(request)
            await self._journal.barrier()
            self._by_id[request.id] = self._by_call[actor, call_id] = pending
        if pending.decision is None:
            self._waiting()
        await pending.answered.wait()
        assert pending.decision is not None
        del self._by_id[pending.request.id], self._by_call[actor, call_id]
        return pending.decision

    async def decide(
        self,
        id: str,
        decision: str,
        by: str,
        *,
        why: str = "",
        scope: str = "once",
        arguments: JsonObject | None = None,
    ) -> None:
        """Record a human's decision, then act on it. Raises UsageError for an unknown or decided id, JournalError.

        A cancelled call may leave the decision recorded and not acted on in this process; a resume finds it.
        """
        pending = self._by_id.get(id)
        if pending is None or pending.decision is not None:
            open_ids = ", ".join(request.id for request in self.pending) or "none"
            raise UsageError(f"{id} waits for no decision; open: {open_ids}")
        request = pending.request
        pending.decision = ApprovalDecided(
            actor=request.actor, id=id, decision=decision, by=by, why=why, scope=scope, arguments=arguments
        )
        self._journal.append(pending.decision)
        await self._journal.barrier()
        pending.answered.set()
