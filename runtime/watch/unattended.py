"""Commands to a run that no process works on: take the lock, record what was said, leave; a resume finds it."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
import trio

from runtime.choice import chosen
from runtime.errors import UsageError
from runtime.events import (
    ApprovalDecided,
    CancelRequested,
    CompactionRequested,
    Event,
    QuestionAnswered,
    Record,
    SteerReceived,
)
from runtime.journal.folder import RunFolder
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.journal.visit import visit
from runtime.messages import JsonObject

from .client import NotRunning, connect
from .commands import Answer, Approve, Cancel, Command, Compact, Deny, Say


async def deliver(folder: RunFolder, command: Command, new_id: Callable[[], str]) -> JsonObject:
    """Have a command carried out by the run's process, or recorded for the next one where there is none.

    `new_id` names a message that is recorded. Raises UsageError where the command makes no sense or needs a live
    run, JournalError, ElencoError. A cancelled call may have taken effect.
    """
    try:
        async with connect(folder) as client:
            return await client.send(command)
    except NotRunning:
        event = event_of(command, new_id)
        if event is None:
            raise
    record = await trio.to_thread.run_sync(append_command, folder, event)
    return {"recorded": record.seq}


def event_of(command: Command, new_id: Callable[[], str]) -> Event | None:
    """What to record for a command; None for one that only a live run can carry out."""
    match command:
        case Approve():
            return ApprovalDecided(
                id=command.id, decision="allow", by=command.by, scope=command.scope, arguments=command.arguments
            )
        case Deny():
            return ApprovalDecided(id=command.id, decision="deny", by=command.by, why=command.why)
        case Answer():
            return QuestionAnswered(id=command.id, answer=command.text, by=command.by)
        case Say():
            return SteerReceived(actor=command.actor or "", id=new_id(), text=command.text, by=command.by)
        case Cancel():
            return CancelRequested(actor=command.actor or "", by=command.by)
        case Compact():
            return CompactionRequested(actor=command.actor or "", by=command.by or "you")
        case _:
            return None


def append_command(folder: RunFolder, event: Event, clock: Callable[[], float] = time.time) -> Record:
    """Record an event in a run that nobody owns, durably, and leave; the first decision on a request wins.

    An empty actor means the root, or the one who asked. Blocks. Raises UsageError when it is too late or nothing
    waits for it, JournalError when the run is owned or cannot be written.
    """
    with visit(folder, clock=clock) as visitor:
        state = RunState(histories=False)
        for record in visitor.records():
            state = fold(state, record)
        return visitor.append(_addressed(folder, state, event))


def _addressed(folder: RunFolder, state: RunState, event: Event) -> Event:
    if state.finished is not None:
        raise UsageError(f"too late: run {folder.id} has ended")
    match event:
        case ApprovalDecided():
            if (decided := state.decisions.get(event.id)) is not None:
                raise UsageError(f"{event.id} was decided before: {decided.decision}, by {decided.by or 'somebody'}")
            if event.id not in state.pending or event.id not in state.requests:
                raise UsageError(_nothing(event.id, [request.id for request in state.pending_approvals]))
            return attrs.evolve(event, actor=state.requests[event.id].actor)
        case QuestionAnswered():
            if (answered := state.answers.get(event.id)) is not None:
                raise UsageError(f"{event.id} was answered before, by {answered.by or 'somebody'}")
            if event.id not in state.pending or event.id not in state.questions:
                raise UsageError(_nothing(event.id, [question.id for question in state.pending_questions]))
            asked = state.questions[event.id]
            if not event.answer.strip():
                raise UsageError(f"the answer to {event.id} is empty")
            return attrs.evolve(event, actor=asked.actor, answer=chosen(event.answer, asked.options))
        case _:
            path = event.actor or state.root
            actor = state.actors.get(path)
            if actor is None:
                raise UsageError(
                    f"run {folder.id} has no actor '{path}'; it has {', '.join(state.actors) or 'none yet'}"
                )
            if actor.status != "running":
                raise UsageError(f"too late: {path} is {actor.status}")
            return attrs.evolve(event, actor=path)


def _nothing(id: str, open_ids: list[str]) -> str:
    return f"{id} waits for no decision; open: {', '.join(open_ids) or 'none'}"
