"""What each event of one actor does to its state; the table that `replay` folds by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import attrs

from runtime.events import (
    SENT_BACK,
    SUMMARISED,
    ActorFinished,
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    CompactionRequested,
    ContextCompacted,
    Event,
    HookFinished,
    HookStarted,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    NoteAdded,
    NotesChanged,
    PermissionDecided,
    PrefixChanged,
    Record,
    SkillLoaded,
    SteerReceived,
    ToolFinished,
    ToolRetried,
    ToolStarted,
)
from runtime.messages import Message, ToolResults, UserMessage
from runtime.record import (
    messages_from_json,
    reply_of,
    result_of,
    usage_from_json,
)

from .state import ActorState, ActorStatus, CallState, PastCall, PastNote, PastStep, RunState


def _actor_finished(state: RunState, actor: ActorState, event: ActorFinished, record: Record) -> None:
    actor.report = event.report
    actor.status = cast("ActorStatus", event.report.get("status", "failed"))
    actor.request = actor.retry = None
    actor.held = None
    actor.judged = True
    _clock_read(actor, event.elapsed, record)
    if (parent := state.actors.get(actor.parent or "")) is not None:
        parent.trail.received(event.report)
    for call in actor.calls.values():
        _nobody_waits(state, actor.path, call)


def _model_requested(state: RunState, actor: ActorState, event: ModelRequested, record: Record) -> None:
    actor.request, actor.retry = event, None
    actor.elapsed = max(actor.elapsed, event.elapsed)
    _clock_read(actor, event.elapsed, record)
    state.waiting = False


def _clock_read(actor: ActorState, elapsed: float, record: Record) -> None:
    if elapsed:
        actor.stood = record.at - actor.started_at - elapsed


def _model_ended(
    state: RunState, actor: ActorState, event: ModelRetried | ModelFailed | ModelWithdrawn, record: Record
) -> None:
    actor.request = None
    actor.retry = event if isinstance(event, ModelRetried) else None


def _model_finished(state: RunState, actor: ActorState, event: ModelFinished, record: Record) -> None:
    actor.request = None
    if event.purpose == "summary":
        return
    actor.context = event.usage.get("input", 0) + event.usage.get("output", 0)
    actor.turn = event.turn + 1
    actor.wrapped_up = event.purpose == "wrap_up"
    actor.reopened = False
    if event.text.strip():
        actor.last_text = event.text
    # What ran at the start stands; any other moment is a new one from here on.
    actor.hooked = [hook for hook in actor.hooked if hook.event in ("run_start", "actor_start")]
    actor.hooking = [hook for hook in actor.hooking if hook.event in ("run_start", "actor_start")]
    actor.calls = {call["id"]: CallState(call["id"], call["name"], call["arguments"]) for call in event.tool_calls}
    actor.missing = len(actor.calls)
    if state.histories:
        reply = reply_of(event)
        actor.history.append(reply)
        for part in reply.calls:
            if (call := actor.calls.get(part.id)) is not None:
                call.raw = part.raw
        if not actor.calls and event.purpose == "turn":
            actor.past.append(PastStep(event.text, (), record.at))


def _permission_decided(state: RunState, actor: ActorState, event: PermissionDecided, record: Record) -> None:
    call = actor.calls.get(event.call_id)
    if call is not None:
        if not call.verdict:
            actor.tool_calls += 1
        call.verdict = event.verdict


def _tool_retried(state: RunState, actor: ActorState, event: ToolRetried, record: Record) -> None:
    actor.tool_calls += 1


def _tool_started(state: RunState, actor: ActorState, event: ToolStarted, record: Record) -> None:
    call = actor.calls.get(event.call_id)
    if call is not None:
        call.started += 1
        call.started_at = record.at
        call.unclear = ""
        state.waiting = False


def _tool_finished(state: RunState, actor: ActorState, event: ToolFinished, record: Record) -> None:
    call = actor.calls.get(event.call_id)
    if call is None or call.finished is not None:
        return
    call.finished = event
    if event.full:
        state.kept[event.call_id] = event.full
    _see(actor, call, event)
    actor.trail.finished(event, call.arguments)
    state.undelivered.pop(call.message, None)
    _nobody_waits(state, actor.path, call)
    actor.missing -= 1
    if actor.missing:
        return
    if state.histories:
        results = [call.finished for call in actor.calls.values() if call.finished is not None]
        actor.history.append(ToolResults(tuple(result_of(result) for result in results)))
        past = tuple(
            PastCall(
                call.name,
                call.arguments if call.arguments is not None else {"raw": call.raw},
                result.result,
                result.is_error,
                result.seconds,
            )
            for call, result in zip(actor.calls.values(), results, strict=True)
        )
        actor.past.append(PastStep(_reply_text(actor.history), past, record.at))
    actor.judged = False
    actor.calls = {}


def _nobody_waits(state: RunState, actor: str, call: CallState) -> None:
    """A call that has ended takes its questions with it; it may have put several for somebody else."""
    state.pending.pop(call.approval, None)
    if call.question:
        for question in state.pending_questions:
            if (question.actor, question.within) == (actor, call.call_id):
                del state.pending[question.id]


def _see(actor: ActorState, call: CallState, event: ToolFinished) -> None:
    """What the actor knows of files: what the call showed, then what it changed. Only a call that has ended counts."""
    if event.name == "read_file" and event.data is not None:
        actor.seen.update(event.data.get("seen", {}))
    for path, content in call.changed.items():
        if content is None:
            actor.seen.pop(path, None)
        else:
            actor.seen[path] = content


def _reply_text(history: list[Message]) -> str:
    return cast("Any", history[-2]).text if len(history) > 1 else ""


def _steer_received(state: RunState, actor: ActorState, event: SteerReceived, record: Record) -> None:
    if not event.entered:
        actor.steers[event.id] = event
        state.waiting = False
        return
    actor.steers.pop(event.id, None)
    if state.histories:
        actor.history.append(UserMessage(event.text, "steer"))
        actor.past.append(PastNote("user_message"))


def _note_added(state: RunState, actor: ActorState, event: NoteAdded, record: Record) -> None:
    actor.judged = True
    if event.stop is not None:
        actor.stop = (event.stop["reason"], event.stop["detail"])
        actor.wrapping_up = True
    if event.why == SENT_BACK:
        actor.rejected += 1
    if state.histories:
        actor.history.append(UserMessage(event.text, "note"))
        if event.why == "length":
            actor.past.append(PastNote("continuation"))
        if event.why == SENT_BACK:
            actor.past.append(PastNote("user_message"))


def _hook_started(state: RunState, actor: ActorState, event: HookStarted, record: Record) -> None:
    actor.hooking.append(event)


def _hook_finished(state: RunState, actor: ActorState, event: HookFinished, record: Record) -> None:
    if event.call_id:
        if (call := actor.calls.get(event.call_id)) is not None:
            call.hooked.append(event)
        return
    actor.hooked.append(event)
    actor.hooking = [each for each in actor.hooking if (each.hook, each.event) != (event.hook, event.event)]
    if event.event == "actor_finish" and event.outcome == "deny":
        actor.sent_back += 1
    if event.context:
        actor.judged = True
        if state.histories:
            actor.history.append(UserMessage(event.context, "note"))


def _compaction_requested(state: RunState, actor: ActorState, event: CompactionRequested, record: Record) -> None:
    actor.compact = event.by


def _context_compacted(state: RunState, actor: ActorState, event: ContextCompacted, record: Record) -> None:
    if event.by:
        actor.compact = ""
    if event.history is None:
        return
    actor.judged = True
    if state.histories:
        actor.history = list(messages_from_json(event.history))
        actor.past.append(PastNote("compaction"))
        if event.number:
            actor.measured = (len(actor.history), event.after)
    if event.number:
        actor.context = event.after
        if event.window and (actor.window is None or event.window < actor.window):
            actor.learned = event.window
        actor.window = event.window or actor.window
        actor.compactions = event.number
        actor.summaries += any(step.startswith(SUMMARISED) for step in event.steps)
    state.kept.update(event.results)


def _budget_reserved(state: RunState, actor: ActorState, event: BudgetReserved, record: Record) -> None:
    actor.reservations[event.id] = event
    actor.judged = True
    if event.purpose == "turn":
        actor.result_cap = event.result_cap


def _budget_refused(state: RunState, actor: ActorState, event: BudgetRefused, record: Record) -> None:
    actor.stop = actor.stop or (event.limit, event.message)


def _prefix_changed(state: RunState, actor: ActorState, event: PrefixChanged, record: Record) -> None:
    if event.prompt is not None:
        actor.prompt, actor.prompt_model = event.prompt, actor.model
    if event.tools is not None:
        actor.tools = event.tools


def _budget_settled(state: RunState, actor: ActorState, event: BudgetSettled, record: Record) -> None:
    reserved = actor.reservations.pop(event.id, None)
    actor.usage = actor.usage + usage_from_json(event.usage)
    known = event.cost_usd is not None and actor.cost_usd is not None
    actor.cost_usd = cast("float", actor.cost_usd) + cast("float", event.cost_usd) if known else None
    if event.replied and (reserved is None or reserved.purpose != "summary"):
        actor.steps += 1


def _notes_changed(state: RunState, actor: ActorState, event: NotesChanged, record: Record) -> None:
    actor.notes = event.notes


def _skill_loaded(state: RunState, actor: ActorState, event: SkillLoaded, record: Record) -> None:
    actor.skills.pop(event.name, None)  # the newest stands last
    actor.skills[event.name] = event if state.histories else attrs.evolve(event, text="")


_Step: TypeAlias = Callable[[RunState, ActorState, Any, Record], None]

ACTOR_STEPS: dict[type[Event], _Step] = {
    ActorFinished: _actor_finished,
    ModelRequested: _model_requested,
    ModelFinished: _model_finished,
    ModelRetried: _model_ended,
    ModelFailed: _model_ended,
    ModelWithdrawn: _model_ended,
    PermissionDecided: _permission_decided,
    ToolStarted: _tool_started,
    ToolRetried: _tool_retried,
    ToolFinished: _tool_finished,
    SteerReceived: _steer_received,
    NoteAdded: _note_added,
    HookStarted: _hook_started,
    HookFinished: _hook_finished,
    ContextCompacted: _context_compacted,
    CompactionRequested: _compaction_requested,
    BudgetReserved: _budget_reserved,
    BudgetRefused: _budget_refused,
    PrefixChanged: _prefix_changed,
    BudgetSettled: _budget_settled,
    NotesChanged: _notes_changed,
    SkillLoaded: _skill_loaded,
}
