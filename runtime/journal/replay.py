"""The fold of a run's record into its state: pure, one event at a time, the same for watching and for resuming."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import attrs

from runtime.events import (
    SENT_BACK,
    SUMMARISED,
    ActorContinued,
    ActorFinished,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetRefused,
    BudgetReserved,
    BudgetSettled,
    CancelRequested,
    CompactionRequested,
    ContextCompacted,
    Event,
    FileChanged,
    FileChanging,
    HookFinished,
    HookStarted,
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
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    NoteAdded,
    NotesChanged,
    PermissionDecided,
    PrefixChanged,
    QuestionAnswered,
    QuestionAsked,
    Record,
    RunFinished,
    RunForked,
    RunImported,
    RunResumed,
    RunStarted,
    RunWaiting,
    SkillLoaded,
    SteerReceived,
    ToolFinished,
    ToolRetried,
    ToolStarted,
    Warned,
)
from runtime.handover.attachment import attachment_from_json, opening
from runtime.messages import Message, ToolResults, UserMessage
from runtime.record import (
    message_of,
    messages_from_json,
    reply_of,
    result_of,
    usage_from_json,
)

from .state import ActorState, ActorStatus, Alert, CallState, Held, PastCall, PastNote, PastStep, RunState

KEPT_ALERTS = 100
STARTING = "start_"
"""How the tools begin that start a child and do not wait for it."""


def replay(records: Iterable[Record], *, histories: bool = True) -> RunState:
    """The state after all the records."""
    state = RunState(histories=histories)
    for record in records:
        state = fold(state, record)
    return state


def fold(state: RunState, record: Record) -> RunState:
    """The state after one more record; the state given is used up. Live-only and unknown events change nothing.

    Its cost does not grow with the run.
    """
    event = record.event
    if event.kept:
        if state.waiting or isinstance(event, RunResumed):
            _clocks_stood(state, record.at - state.at)
        state.seq, state.at = record.seq, record.at
        step = _RUN_STEPS.get(type(event))
        if step is not None:
            step(state, event, record)
        elif (inner := _ACTOR_STEPS.get(type(event))) is not None:
            actor = state.actors.get(event.actor)
            if actor is not None:
                actor.last_at = record.at
                inner(state, actor, event, record)
    return state


# --- the run -----------------------------------------------------------------------------------------------------


def _run_started(state: RunState, event: RunStarted, record: Record) -> None:
    state.started, state.started_at, state.limits = event, record.at, event.limits


def _run_waiting(state: RunState, event: RunWaiting, record: Record) -> None:
    state.waiting = True


def _clocks_stood(state: RunState, seconds: float) -> None:
    """Nobody worked since the record before: all waited for a human, or there was no process."""
    for actor in state.actors.values():
        if actor.status == "running":
            actor.stood += seconds


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
    if (actor := state.actors.get(event.actor)) is not None and actor.parent == event.to:
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


# --- one actor ---------------------------------------------------------------------------------------------------


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


_RunStep: TypeAlias = Callable[[RunState, Any, Record], None]
_ActorStep: TypeAlias = Callable[[RunState, ActorState, Any, Record], None]

_RUN_STEPS: dict[type[Event], _RunStep] = {
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

_ACTOR_STEPS: dict[type[Event], _ActorStep] = {
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
