"""Decisions only a human can make: asked and answered as durable events, the first answer wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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

    def is_decided(self) -> bool:
        return self.decision is not None

    async def answer(self) -> ApprovalDecided:
        """The decision, once it is recorded. A cancelled wait leaves the question as it is."""
        await self.answered.wait()
        assert self.decision is not None
        return self.decision


class Approvals:
    """The open questions of one run. Whoever shows them (terminal, dashboard, socket) calls `decide`.

    `changed` is called when a decision has been made.
    """

    def __init__(self, journal: Recorder, changed: Callable[[], None]) -> None:
        self._journal = journal
        self._changed = changed
        self._asked = 0
        self._by_call: dict[tuple[str, str, str], Pending] = {}
        self._by_id: dict[str, Pending] = {}
        self._decided: dict[str, ApprovalDecided] = {}

    @property
    def pending(self) -> tuple[ApprovalRequested, ...]:
        """What nobody has decided yet, oldest first."""
        return tuple(entry.request for entry in self._by_id.values() if entry.decision is None)

    def restore(
        self, asked: int, requests: Iterable[ApprovalRequested], decisions: Mapping[str, ApprovalDecided]
    ) -> None:
        """Take over what an earlier process asked: `asked` questions in all, and those whose call has no result yet."""
        self._asked = asked
        self._decided.update(decisions)
        for request in requests:
            pending = Pending(request, decision=decisions.get(request.id))
            if pending.is_decided():
                pending.answered.set()
            self._enter(pending)

    def knows(self, actor: str, call_id: str, about: str) -> bool:
        """Whether this was asked about a call that has no result yet."""
        return (actor, call_id, about) in self._by_call

    def edited(self, actor: str, call_id: str) -> JsonObject | None:
        """The arguments a human gave a call that has no result yet, None where nobody changed them."""
        pending = self._by_call.get((actor, call_id, "call"))
        return None if pending is None or pending.decision is None else pending.decision.arguments

    def was_asked(self, actor: str, call_id: str) -> bool:
        """Whether a question about this call is on record."""
        return (actor, call_id, "call") in self._by_call

    def was_decided(self, actor: str, call_id: str) -> bool:
        """Whether a human has decided on this call, and it has no result yet."""
        pending = self._by_call.get((actor, call_id, "call"))
        return pending is not None and pending.decision is not None

    async def ask(
        self,
        actor: str,
        call_id: str,
        name: str,
        arguments: JsonObject,
        why: str,
        preview: str = "",
        always: tuple[str, ...] = (),
        about: str = "call",
    ) -> Pending:
        """The question whether a call may run, on record; the same one again for a call that was asked about before.

        Raises JournalError. A cancelled ask may leave the question on record; `withdraw` it when the call ends.
        """
        pending = self._by_call.get((actor, call_id, about))
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
                always=always,
                about=about,
            )
            # Known before it is shown: whoever sees it may answer at once.
            self._enter(pending := Pending(request))
            self._journal.append(request)
            await self._journal.barrier()
        return pending

    def withdraw(self, actor: str, call_id: str) -> None:
        """The call has its result: nothing is left to decide, or to use a decision for."""
        for about in ("call", "unclear"):
            pending = self._by_call.pop((actor, call_id, about), None)
            if pending is not None:
                del self._by_id[pending.request.id]

    def _enter(self, pending: Pending) -> None:
        request = pending.request
        self._by_id[request.id] = self._by_call[request.actor, request.call_id, request.about] = pending

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

        A cancelled call has decided all the same.
        """
        pending = self._by_id.get(id)
        if (made := self._decided.get(id)) is not None:
            raise UsageError(f"{id} was decided before: {made.decision}, by {made.by or 'somebody'}")
        if pending is None:
            open_ids = ", ".join(request.id for request in self.pending) or "none"
            raise UsageError(f"{id} waits for no decision; open: {open_ids}")
        request = pending.request
        pending.decision = self._decided[id] = ApprovalDecided(
            actor=request.actor, id=id, decision=decision, by=by, why=why, scope=scope, arguments=arguments
        )
        self._journal.append(pending.decision)
        self._changed()
        try:
            await self._journal.barrier()
        finally:
            # Also when nobody waits for the barrier any more: no effect goes before the next one.
            pending.answered.set()
