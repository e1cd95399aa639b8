"""A run's state as JSON for those who watch: what a page that joins late must show; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from runtime.events import ApprovalRequested, QuestionAsked, body_of
from runtime.messages import JsonObject
from runtime.record import usage_to_json

from .budgets import Total, budgets, totals
from .state import ActorState, CallState, Held, RunState


@attrs.frozen
class Vitals:
    """What only an actor's own process knows: its clock in seconds, whether it runs, and the limit it waits for."""

    elapsed: float
    runs: bool
    short_of: str = ""


def overview(state: RunState, vitals: Mapping[str, Vitals] | None = None) -> JsonObject:
    """Run, tree of actors, what they do, what waits for a human, and the latest alerts and warnings.

    `vitals` are those of the live actors, by path; without them clocks are as they were last recorded.
    """
    started = state.started
    alive = vitals or {}
    sums = totals(state)
    seconds = {path: each.elapsed for path, each in alive.items()}
    return {
        "seq": state.seq,
        "at": state.at,
        "phase": state.phase,
        "task": started.task if started is not None else "",
        "agent": started.agent if started is not None else "",
        "model": started.model if started is not None else "",
        "workspace": started.workspace if started is not None else "",
        "started_at": state.started_at,
        "limits": state.limits,
        "root": state.root,
        "steps": state.steps,
        "usage": usage_to_json(state.usage),
        "cost_usd": state.cost_usd,
        "held": _held(state.held),
        "actors": [
            {
                **actor_overview(actor, held=bool(state.held or actor.held)),
                "waits_for": waits_for(state, actor, alive.get(actor.path)),
                "total": _total(sums[actor.path]),
                "budgets": list(budgets(state, actor, sums, seconds)),
                **_clock(actor, alive.get(actor.path)),
            }
            for actor in state.actors.values()
        ],
        "approvals": [_asked(state, request) for request in state.pending_approvals],
        "questions": [_asked(state, question) for question in state.pending_questions],
        "alerts": [
            {"seq": seq, "at": at, "actor": alert.actor, "type": alert.type, **body_of(alert)}
            for seq, at, alert in state.alerts
        ],
        "warnings": state.warnings[-100:],
        "servers": state.servers,
        "changes": [{"actor": change.actor, "path": change.path} for change in state.changes[-100:]],
        "report": state.finished.report if state.finished is not None else None,
    }


def actor_overview(actor: ActorState, *, held: bool) -> JsonObject:
    """One actor by itself: who, how far, and what it does now; `held` says whether it may not take its next step."""
    return {
        "path": actor.path,
        "agent": actor.agent,
        "parent": actor.parent,
        "children": list(actor.children),
        "number": actor.number,
        "background": actor.background,
        "task": actor.task,
        "model": actor.model,
        "status": actor.status,
        "doing": doing(actor, held=held),
        "started_at": actor.started_at,
        "last_at": actor.last_at,
        "limits": actor.limits,
        "steps": actor.steps,
        "tool_calls": actor.tool_calls,
        "usage": usage_to_json(actor.usage),
        "cost_usd": actor.cost_usd,
        "held": _held(actor.held),
        "context": context(actor),
        "calls": [
            {
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments,
                "started": call.started > 0,
                "started_at": call.started_at or None,
                "waits_for": call.approval or call.question or None,
            }
            for call in actor.open_calls
        ],
        "notes": list(actor.notes),
        "skills": list(actor.skills),
        "last_text": actor.last_text[-2000:],
        "report": actor.report,
    }


def doing(actor: ActorState, *, held: bool = False) -> str:
    """One word for what an actor does: thinking, retrying, calling, held, idle, or its status when it has ended.

    `held`: the whole run is, or it itself.
    """
    if actor.status != "running":
        return actor.status
    if actor.request is not None:
        return "thinking"
    if actor.retry is not None:
        return "retrying"
    if held and actor.between_steps:
        return "held"
    return "calling" if actor.missing else "idle"


def waits_for(state: RunState, actor: ActorState, vitals: Vitals | None = None) -> list[JsonObject]:
    """What an actor waits for, by kind and id: humans, children, its model, another try, tools, a place in a budget."""
    if actor.status != "running":
        return []
    if actor.request is not None:
        return [{"kind": "model", "id": actor.request.model}]
    if (retry := actor.retry) is not None:
        return [{"kind": "retry", "id": f"{retry.attempt + 2} of {retry.limit}"}]
    if (held := actor.held or state.held) and actor.between_steps:
        return [{"kind": "hold", "id": held.by}]
    if vitals is not None and vitals.short_of:
        return [{"kind": "budget", "id": vitals.short_of}]
    if calls := actor.open_calls:
        return [_call_waits(state, actor, call) for call in calls]
    return [{"kind": "child", "id": child} for child in actor.children if state.actors[child].status == "running"]


def _call_waits(state: RunState, actor: ActorState, call: CallState) -> JsonObject:
    if call.approval in state.pending:
        return {"kind": "approval", "id": call.approval}
    if call.question in state.pending:
        return {"kind": "question", "id": call.question}
    child = state.child_of(actor.path, call.call_id)
    if child is not None and child.status == "running" and not child.background:
        return {"kind": "child", "id": child.path}
    return {"kind": "tool", "id": call.call_id}


def context(actor: ActorState) -> JsonObject:
    """How full the model's window is, as far as it is known."""
    tokens, window = actor.context, actor.window
    percent = round(100 * tokens / window) if tokens and window else None
    return {"tokens": tokens or None, "window": window, "percent": percent, "compactions": actor.compactions}


def _clock(actor: ActorState, vitals: Vitals | None) -> JsonObject:
    if vitals is None:
        return {"elapsed": actor.elapsed, "clock": "stands"}
    return {"elapsed": vitals.elapsed, "clock": "runs" if vitals.runs else "stands"}


def _total(total: Total) -> JsonObject:
    return {
        "steps": total.steps,
        "tool_calls": total.tool_calls,
        "usage": usage_to_json(total.usage),
        "cost_usd": total.cost_usd,
    }


def _held(held: Held | None) -> JsonObject | None:
    return None if held is None else {"by": held.by, "since": held.since}


def _asked(state: RunState, event: ApprovalRequested | QuestionAsked) -> dict[str, Any]:
    return {"actor": event.actor, "since": state.pending[event.id], **body_of(event)}
