"""What each event about the run, or about several actors, does to the state; the table that `replay` folds by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import attrs

from runtime.events import (
    ActorContinued,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    CancelRequested,
    Event,
    FileChanged,
    FileChanging,
    LimitsChanged,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    McpConnected,
    McpLost,
    McpSwitched,
    MessageReceived,
    MessageSent,
    ModelChanged,
    QuestionAnswered,
    QuestionAsked,
    Record,
    RunFinished,
    RunForked,
    RunImported,
    RunResumed,
    RunStarted,
    RunWaiting,
    Warned,
)
from runtime.handover.attachment import attachment_from_json, opening
from runtime.messages import ToolResults, UserMessage
from runtime.record import (
    message_of,
    messages_from_json,
)

from .state import ActorState, ActorStatus, Alert, Held, RunState

KEPT_ALERTS = 100
STARTING = "start_"
"""How the tools begin that start a child and do not wait for it."""


def _run_started(state: RunState, event: RunStarted, record: Record) -> None:
    state.started, state.started_at, state.limits = event, record.at, event.limits


def _run_waiting(state: RunState, event: RunWaiting, record: Record) -> None:
    state.waiting = True


def _run_resumed(state: RunState, event: RunResumed, record: Record) -> None:
    state.waiting, state.forked = False, None
    for actor in state.actors.values():
        actor.request = actor.retry = None
    if state.finished is None:
        return
    state.cancel = state.finished = None
    if (root := state.actors.get(state.root)) is not None:
        root.reopen(record.at)
    for actor in state.actors.values():
        actor.cancel = None


def _run_forked(state: RunState, event: RunForked, record: Record) -> None:
    """A copy that nobody has gone on with: no process was lost."""
    state.forked = event


def _run_imported(state: RunState, event: RunImported, record: Record) -> None:
    """Nobody here has decided what stands before: what is still open is asked anew."""
    state.imported = True
    state.void.update(state.requests)
    for id in state.requests:
        state.pending.pop(id, None)
    state.decisions.clear()


def _run_finished(state: RunState, event: RunFinished, record: Record) -> None:
    state.finished = event
    state.waiting = False
    state.pending.clear()
    root = state.actors.get(state.root)
    if root is not None and root.report is None:
        root.report = event.report
        root.status = cast("ActorStatus", event.report.get("status", "failed"))


def _limits_changed(state: RunState, event: LimitsChanged, record: Record) -> None:
    actor = state.actors.get(event.actor)
    if actor is not None:
        actor.limits = {**actor.limits, **event.limits}
    if actor is None or event.actor == state.root:
        state.limits = {**state.limits, **event.limits}
    if event.by == "resume":
        for each in state.actors.values():
            if each.stop is not None and (each.report is None or each.path == state.root):
                each.reopen(record.at)


def _model_changed(state: RunState, event: ModelChanged, record: Record) -> None:
    if (actor := state.actors.get(event.actor)) is not None:
        actor.model, actor.window, actor.learned = event.model, event.window, None
    elif state.started is not None and not event.actor:
        state.started = attrs.evolve(state.started, model=event.model)


def _cancel_requested(state: RunState, event: CancelRequested, record: Record) -> None:
    actor = state.actors.get(event.actor)
    if actor is not None:
        actor.cancel = event
    if actor is None or event.actor == state.root:
        state.cancel = event


def _held(state: RunState, event: ActorHeld | ActorContinued, record: Record) -> None:
    held = Held(event.by, record.at) if isinstance(event, ActorHeld) else None
    actor = state.actors.get(event.actor)
    if actor is not None:
        actor.held = held
    else:
        state.held = held


def _approval_requested(state: RunState, event: ApprovalRequested, record: Record) -> None:
    state.requests[event.id] = event
    state.pending[event.id] = record.at
    actor = state.actors.get(event.actor)
    if actor is not None and (call := actor.calls.get(event.call_id)) is not None:
        call.approval = event.id
        if event.about == "unclear":
            call.unclear = event.id


def _approval_decided(state: RunState, event: ApprovalDecided, record: Record) -> None:
    if event.id not in state.decisions:
        state.decisions[event.id] = event
        state.pending.pop(event.id, None)
        state.waiting = False


def _question_asked(state: RunState, event: QuestionAsked, record: Record) -> None:
    state.questions[event.id] = event
    state.pending[event.id] = record.at
    actor = state.actors.get(event.actor)
    if actor is not None and (call := actor.calls.get(event.within)) is not None:
        call.question = event.id


def _question_answered(state: RunState, event: QuestionAnswered, record: Record) -> None:
    if event.id not in state.answers:
        state.answers[event.id] = event
        state.pending.pop(event.id, None)
        state.waiting = False


def _alert(state: RunState, event: Alert, record: Record) -> None:
    state.alerts.append((record.seq, record.at, event))
    if len(state.alerts) > KEPT_ALERTS:
        del state.alerts[0]
    actor = state.actors.get(event.actor)
    if actor is None:
        return
    actor.judged = True
    if isinstance(event, LoopStopped):
        actor.stop = ("loop", event.why)
    elif event.note:
        _advise(state, actor, event.call_id, event.note)


def _advise(state: RunState, actor: ActorState, call_id: str, note: str) -> None:
    """The guard's words stand at the end of the round's last result, or alone where there was no call."""
    if not state.histories:
        return
    if not call_id:
        actor.history.append(UserMessage(note, "note"))
    elif actor.history and isinstance(last := actor.history[-1], ToolResults):
        actor.history[-1] = ToolResults(
            tuple(
                attrs.evolve(result, content=f"{result.content}\n\n{note}") if result.call_id == call_id else result
                for result in last.results
            )
        )


def _warned(state: RunState, event: Warned, record: Record) -> None:
    state.warnings.append(event.text)


def _mcp_connected(state: RunState, event: McpConnected, record: Record) -> None:
    state.servers[event.server] = "connected"
    state.server_tools[event.server] = event.tools


def _mcp_lost(state: RunState, event: McpLost, record: Record) -> None:
    state.servers[event.server] = f"lost: {event.why}"


def _mcp_switched(state: RunState, event: McpSwitched, record: Record) -> None:
    state.switched[event.server] = event.on
    state.servers[event.server] = "enabled" if event.on else "disabled"


def _file_changing(state: RunState, event: FileChanging, record: Record) -> None:
    state.originals.setdefault(event.path, event.before)


def _file_changed(state: RunState, event: FileChanged, record: Record) -> None:
    state.changes.append(event)
    actor = state.actors.get(event.actor)
    if actor is not None and (call := actor.calls.get(event.call_id)) is not None:
        call.changed[event.path] = event.after


def _message_sent(state: RunState, event: MessageSent, record: Record) -> None:
    state.undelivered[event.id] = event
    if event.kind == "message":
        state.told.add(event.id)
    elif (actor := state.actors.get(event.actor)) is not None and actor.parent == event.to:
        actor.sent = True


def _message_received(state: RunState, event: MessageReceived, record: Record) -> None:
    actor = state.actors.get(event.actor)
    if actor is not None:
        actor.trail.open(event.id)
    if actor is not None and (call := actor.calls.get(event.call_id)) is not None:
        call.message = event.id  # delivered when the call has its result
        return
    sent = state.undelivered.pop(event.id, None)
    if sent is not None and sent.text != event.text and state.histories:
        state.long_reports[event.id] = sent.text
    if actor is not None and not event.call_id:
        actor.judged = True
    if actor is not None and state.histories and not event.call_id:
        actor.history.append(message_of(event))


def _actor_started(state: RunState, event: ActorStarted, record: Record) -> None:
    actor = ActorState(
        path=event.actor,
        agent=event.agent,
        number=event.number,
        parent=event.parent,
        task=event.task,
        model=event.model,
        prompt_model=event.model,
        limits=event.limits,
        prompt=event.prompt,
        tools=event.tools,
        call_id=event.call_id,
        definition=event.definition,
        started_at=record.at,
        last_at=record.at,
        turn=event.turn,
        window=event.window,
        measured=event.measured,
    )
    state.kept.update(event.results)
    actor.trail.open(*event.results)
    attached = tuple(map(attachment_from_json, event.attached))
    actor.trail.begun(attached)
    state.kept.update((each.handle, each.full) for each in attached if each.full)
    if state.histories:
        actor.history += messages_from_json(event.history)
        if event.task or not event.history:
            actor.history.append(UserMessage(opening(event.task, attached)))
    state.actors[actor.path] = actor
    state.by_call[event.parent, event.call_id] = actor.path
    parent = state.actors.get(event.parent) if event.parent is not None else None
    if parent is not None:
        call = parent.calls.get(event.call_id or "")
        actor.background = call is not None and call.name.startswith(STARTING)
        if actor.path not in parent.children:
            parent.children.append(actor.path)
    elif not state.root:
        state.root = actor.path


_Step: TypeAlias = Callable[[RunState, Any, Record], None]

RUN_STEPS: dict[type[Event], _Step] = {
    RunStarted: _run_started,
    RunWaiting: _run_waiting,
    RunResumed: _run_resumed,
    RunFinished: _run_finished,
    RunForked: _run_forked,
    RunImported: _run_imported,
    LimitsChanged: _limits_changed,
    ModelChanged: _model_changed,
    CancelRequested: _cancel_requested,
    ActorStarted: _actor_started,
    ActorHeld: _held,
    ActorContinued: _held,
    ApprovalRequested: _approval_requested,
    ApprovalDecided: _approval_decided,
    QuestionAsked: _question_asked,
    QuestionAnswered: _question_answered,
    LoopNudged: _alert,
    LoopBlocked: _alert,
    LoopStopped: _alert,
    Warned: _warned,
    McpConnected: _mcp_connected,
    McpLost: _mcp_lost,
    McpSwitched: _mcp_switched,
    FileChanging: _file_changing,
    FileChanged: _file_changed,
    MessageSent: _message_sent,
    MessageReceived: _message_received,
}
