"""A run's state as JSON for those who watch: what a page that joins late must show; pure."""

from __future__ import annotations

from typing import Any

from runtime.events import ApprovalRequested, QuestionAsked, body_of
from runtime.messages import JsonObject
from runtime.record import usage_to_json

from .state import ActorState, RunState


def overview(state: RunState) -> JsonObject:
    """Run, tree of actors, what they do, what waits for a human, and the latest alerts and warnings."""
    started = state.started
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
        "actors": [actor_overview(actor) for actor in state.actors.values()],
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


def actor_overview(actor: ActorState) -> JsonObject:
    """One actor: who, how far, and what it does now (`doing`: thinking, calling, idle, held or its end)."""
    return {
        "path": actor.path,
        "agent": actor.agent,
        "parent": actor.parent,
        "task": actor.task,
        "model": actor.model,
        "status": actor.status,
        "doing": doing(actor),
        "started_at": actor.started_at,
        "last_at": actor.last_at,
        "limits": actor.limits,
        "steps": actor.steps,
        "tool_calls": actor.tool_calls,
        "usage": usage_to_json(actor.usage),
        "cost_usd": actor.cost_usd,
        "context": {"used": actor.context, "window": actor.window, "compactions": actor.compactions},
        "calls": [
            {
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments,
                "started": call.started > 0,
                "waits_for": call.approval or call.question or None,
            }
            for call in actor.open_calls
        ],
        "notes": list(actor.notes),
        "skills": list(actor.skills),
        "last_text": actor.last_text[-2000:],
        "report": actor.report,
    }


def doing(actor: ActorState) -> str:
    """One word for what an actor does."""
    if actor.status != "running":
        return actor.status
    if actor.request is not None:
        return "thinking"
    if actor.missing:
        return "calling"
    return "held" if actor.held else "idle"


def _asked(state: RunState, event: ApprovalRequested | QuestionAsked) -> dict[str, Any]:
    return {"actor": event.actor, "since": state.pending[event.id], **body_of(event)}
