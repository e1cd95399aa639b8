"""What a command becomes on the record of a run that no process works on; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from runtime.choice import chosen
from runtime.errors import UsageError, did_you_mean
from runtime.events import (
    ActorContinued,
    ActorHeld,
    ApprovalDecided,
    CancelRequested,
    CompactionRequested,
    Event,
    LimitsChanged,
    McpSwitched,
    QuestionAnswered,
    SteerReceived,
)
from runtime.journal.budgets import used_beyond
from runtime.journal.elsewhere import in_state
from runtime.journal.state import ActorState, RunState
from runtime.limits.limits import LIMIT_NAMES, LimitName, Limits, amount_text, changed

from .commands import Answer, Approve, Cancel, ChangeLimits, Command, Compact, Continue, Deny, Hold, Say, SwitchServer


def events_for(state: RunState, command: Command, run: str, new_id: Callable[[], str]) -> list[Event]:
    """The events that record a command; the first decision on anything has won.

    Nothing for one that only a live run can carry out. Raises UsageError where it makes no sense or comes too late.
    """
    if state.finished is not None:
        more = f"; elenco resume {run}{in_state()} takes limits" if isinstance(command, ChangeLimits) else ""
        raise UsageError(f"too late: run {run} has ended{more}")
    if state.cancel is not None and not isinstance(command, Cancel | ChangeLimits):
        by = state.cancel.by or "somebody"
        raise UsageError(
            f"too late: run {run} was cancelled, by {by}; elenco resume {run}{in_state()} ends it with its report"
        )
    match command:
        case Approve() | Deny():
            return [_decision(state, command)]
        case Answer():
            return [_answer(state, command)]
        case Say():
            to = _running(state, command.actor, run).path
            steer = SteerReceived(actor=to, id=new_id(), text=command.text, by=command.by, interrupt=command.interrupt)
            return [steer]
        case Cancel():
            actor = _running(state, command.actor, run)
            if (cancel := actor.cancel) is not None:
                raise UsageError(f"{actor.path} is cancelled already, by {cancel.by or 'somebody'}")
            return [CancelRequested(actor=actor.path, by=command.by)]
        case Compact():
            return [CompactionRequested(actor=_running(state, command.actor, run).path, by=command.by or "you")]
        case ChangeLimits():
            actor = _running(state, command.actor, run)
            now = Limits.from_json(actor.limits)
            check_expected(now, command.expect, actor.path)
            limits = changed(now, command.limits, command.by or "you")
            _check_used(state, actor, now, limits, command.limits)
            return [LimitsChanged(actor=actor.path, limits=limits.as_json(), by=command.by)]
        case Hold():
            one = None if command.actor is None else _running(state, command.actor, run)
            held = state.held if one is None else one.held
            if held is not None:
                whom = "the run" if one is None else one.path
                raise UsageError(f"{whom} is held already, by {held.by or 'somebody'}")
            return [ActorHeld(actor="" if one is None else one.path, by=command.by)]
        case Continue():
            return _releases(state, command, run)
        case SwitchServer():
            if command.server not in state.servers:
                known = ", ".join(state.servers) or "none"
                raise UsageError(
                    f"run {run} has used no MCP server '{command.server}'"
                    f"{did_you_mean(command.server, state.servers)}; it has used: {known}"
                )
            return [McpSwitched(server=command.server, on=command.on, by=command.by)]
        case _:
            return []


def check_expected(now: Limits, expected: Mapping[str, Any] | None, path: str) -> None:
    """Raises UsageError where a limit has another value by now than the sender believes."""
    values = now.as_json()
    for name, value in (expected or {}).items():
        if values.get(name) != value:
            raise UsageError(f"{name} of {path} is {values.get(name, 'not set')} by now, not {value}")


def _check_used(state: RunState, actor: ActorState, now: Limits, new: Limits, changes: Iterable[str]) -> None:
    """Raises UsageError for a limit under what is used of it already, unless it was lower still."""
    named: dict[LimitName, float] = {
        name: of for name in LIMIT_NAMES if name in changes and (of := new.get(name)) is not None
    }
    for name, used in used_beyond(state, actor, named):
        if (old := now.get(name)) is None or named[name] < old:
            spent = amount_text(name, used)
            raise UsageError(f"{name} of {actor.path} cannot go below {spent}: so much is used already")


def _decision(state: RunState, command: Approve | Deny) -> ApprovalDecided:
    id = command.id
    if (decided := state.decisions.get(id)) is not None:
        raise UsageError(f"{id} was decided before: {decided.decision}, by {decided.by or 'somebody'}")
    if id not in state.pending or id not in state.requests:
        raise UsageError(_nothing(id, "decision", [request.id for request in state.pending_approvals]))
    made = ApprovalDecided(actor=state.requests[id].actor, id=id, decision="deny", by=command.by)
    match command:
        case Approve():
            return attrs.evolve(made, decision="allow", scope=command.scope, arguments=command.arguments)
        case Deny():
            return attrs.evolve(made, why=command.why)


def _answer(state: RunState, command: Answer) -> QuestionAnswered:
    id = command.id
    if (answered := state.answers.get(id)) is not None:
        raise UsageError(f"{id} was answered before, by {answered.by or 'somebody'}")
    if id not in state.pending or id not in state.questions:
        raise UsageError(_nothing(id, "answer", [question.id for question in state.pending_questions]))
    if not command.text.strip():
        raise UsageError(f"the answer to {id} is empty")
    asked = state.questions[id]
    return QuestionAnswered(actor=asked.actor, id=id, answer=chosen(command.text, asked.options), by=command.by)


def _releases(state: RunState, command: Continue, run: str) -> list[Event]:
    if command.actor is not None:
        actor = _running(state, command.actor, run)
        if actor.held is None:
            raise UsageError(f"{actor.path} is not held{'; the whole run is' if state.held else ''}")
        return [ActorContinued(actor=actor.path, by=command.by)]
    paths = ["", *state.actors] if state.held else list(state.actors)
    held = [path for path in paths if not path or state.actors[path].held]
    if not held:
        raise UsageError("the run is not held")
    return [ActorContinued(actor=path, by=command.by) for path in held]


def _running(state: RunState, actor: str | None, run: str) -> ActorState:
    path = actor or state.root
    found = state.actors.get(path)
    if found is None:
        known = ", ".join(state.actors) or "none yet"
        raise UsageError(f"run {run} has no actor '{path}'{did_you_mean(path, state.actors)}; it has {known}")
    if found.status != "running":
        raise UsageError(f"too late: {path} is {found.status}")
    return found


def _nothing(id: str, what: str, open_ids: list[str]) -> str:
    return f"{id} waits for no {what}; open: {', '.join(open_ids) or 'none'}"
