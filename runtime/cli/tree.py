"""The tree of actors in words: one row an actor for a terminal, one line a change where there is none."""

from __future__ import annotations

import json

import attrs

from runtime.events import (
    ActorFinished,
    ActorStarted,
    ApprovalRequested,
    BudgetOverrun,
    BudgetRefused,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    ModelFinished,
    ModelRetried,
    Record,
    ToolFinished,
    ToolStarted,
    Warned,
)
from runtime.journal.state import ActorState, RunState
from runtime.limits.limits import count_text
from runtime.messages import JsonObject

MARKS = {"running": "●", "completed": "✓", "stopped": "■", "failed": "✗", "cancelled": "✗"}


@attrs.frozen
class Row:
    """One actor as a terminal shows it."""

    branch: str
    mark: str
    name: str
    doing: str
    facts: str


def rows(state: RunState, now: float) -> list[Row]:
    """The whole tree, parents before children, in the order they started."""
    found: list[Row] = []

    def add(path: str, lead: str, last: bool, top: bool) -> None:
        actor = state.actors[path]
        branch = "" if top else f"{lead}{'└' if last else '├'} "
        found.append(Row(branch, MARKS[actor.status], short(path), doing(state, actor), facts(actor, now)))
        below = "" if top else f"{lead}{' ' if last else '│'} "
        for index, child in enumerate(actor.children):
            add(child, below, index == len(actor.children) - 1, False)

    if state.root:
        add(state.root, "", True, True)
    return found


def doing(state: RunState, actor: ActorState) -> str:
    """What an actor does now, in a few words."""
    if actor.status != "running":
        report = actor.report or {}
        return str(report.get("reason") or "") or ("" if actor.status == "completed" else actor.status)
    if actor.held:
        return "held"
    if actor.request is not None:
        return "thinking" if actor.turn == 0 or actor.missing == 0 else "reading results"
    waits = [child for child in actor.children if state.actors[child].status == "running"]
    open_calls = actor.open_calls
    asking = [call for call in open_calls if call.approval or call.question]
    if asking:
        return f"asks ({asking[0].approval or asking[0].question}): {call_text(asking[0].name, asking[0].arguments)}"
    if waits:
        return f"waits for {', '.join(short(child) for child in waits[:3])}"
    for call in open_calls:
        more = f" and {actor.missing - 1} more" if actor.missing > 1 else ""
        return call_text(call.name, call.arguments) + more
    return "thinking"


def facts(actor: ActorState, now: float) -> str:
    """Steps, tokens, cost and time of one actor."""
    found = [f"{actor.steps} step{'s' if actor.steps != 1 else ''}"]
    if actor.usage.total:
        found.append(f"{'~' if actor.usage.estimated else ''}{count_text(actor.usage.total)} tokens")
    if actor.cost_usd:
        found.append(f"${actor.cost_usd:.3f}")
    ended = actor.last_at if actor.status != "running" else now
    found.append(f"{max(0.0, ended - actor.started_at):.1f} s")
    return "  ".join(found)


def changed_lines(state: RunState, record: Record) -> list[str]:
    """What a person without a live screen is told about one event; `state` has it folded in already."""
    event = record.event
    name = short(event.actor)
    match event:
        case ActorStarted():
            return [f"● {name}  {_one_line(event.task, 70)}"]
        case ToolStarted() if (actor := state.actors.get(event.actor)) and (call := actor.calls.get(event.call_id)):
            return [f"  {name}  {call_text(call.name, call.arguments)}"]
        case ToolFinished() if event.is_error:
            return [f"  {name}  {event.name} {event.kind}: {_one_line(event.result, 90)}"]
        case ModelFinished() if event.text.strip() and event.tool_calls:
            return [f"  {name}  “{_one_line(event.text, 90)}”"]
        case ModelRetried():
            return [f"… {event.message}; try {event.attempt + 2} of {event.limit} in {event.wait:.0f} s"]
        case ApprovalRequested():
            return [f"? {name} asks ({event.id})  {call_text(event.name, event.arguments)}   {event.why}"]
        case LoopNudged() | LoopBlocked():
            what = "told the model" if isinstance(event, LoopNudged) else "refused from now on"
            return [f"! {name}  {event.why}: {what}"]
        case LoopStopped():
            return [f"■ {name}  stopped: loop ({event.why})"]
        case BudgetRefused():
            return [f"■ {name}  {event.message}"]
        case BudgetOverrun():
            return [f"! {name}  overrun: {event.limit} of {event.scope} by {event.by:g}"]
        case Warned():
            return [f"! {event.text}"]
        case ActorFinished() if actor := state.actors.get(event.actor):
            reason = event.report.get("reason")
            how = f"{event.report['status']}{f': {reason}' if reason else ''}"
            return [f"{MARKS[actor.status]} {name}  {how}  {facts(actor, record.at)}"]
        case _:
            return []


def call_text(name: str, arguments: JsonObject | None) -> str:
    """A call as a person reads it, in one line; control characters are shown, never obeyed."""
    if not arguments:
        return name
    if len(arguments) == 1:
        value = next(iter(arguments.values()))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    else:
        text = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{name.replace('delegate_to_', '→ ')}  {_one_line(text, 80)}"


def short(path: str) -> str:
    return path.rpartition("/")[2]


def _one_line(text: str, width: int) -> str:
    flat = " ".join(text.split())
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in flat)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
