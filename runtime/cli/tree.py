"""The tree of actors in words: one row an actor for a terminal, one line a change where there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from runtime.events import (
    SENT_BACK,
    ActorContinued,
    ActorFinished,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetOverrun,
    BudgetRefused,
    ContextCompacted,
    HookFinished,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    McpLost,
    McpSwitched,
    MessageSent,
    ModelFinished,
    ModelRetried,
    NoteAdded,
    NotesChanged,
    PrefixChanged,
    QuestionAnswered,
    QuestionAsked,
    Record,
    SteerReceived,
    ToolFinished,
    ToolStarted,
    Warned,
)
from runtime.journal.budgets import Total, budgets, totals
from runtime.journal.state import ActorState, RunState
from runtime.known import OFFLINE
from runtime.limits.limits import count_text
from runtime.messages import JsonObject
from runtime.output.words import faults_told

from .advice import span
from .faults import count_of
from .tally import Tally
from .visible import one_line

MARKS = {"running": "●", "completed": "✓", "stopped": "■", "failed": "✗", "cancelled": "✗"}


@attrs.frozen
class Row:
    """One actor as a terminal shows it."""

    branch: str
    mark: str
    name: str
    doing: str
    facts: tuple[str, ...]


def rows(
    state: RunState,
    now: float,
    told: Mapping[str, Tally],
    speaking: Mapping[str, str],
    clocks: Mapping[str, float] | None = None,
) -> list[Row]:
    """The whole tree, parents before children, in the order they started; `clocks` are those of the live, by path."""
    found: list[Row] = []
    sums = totals(state)

    def add(path: str, lead: str, last: bool, top: bool) -> None:
        actor = state.actors[path]
        branch = "" if top else f"{lead}{'└' if last else '├'} "
        what = doing(state, actor, told.get(path), speaking.get(path, ""))
        if actor.status == "running" and actor.notes:
            what += f"   {todo(actor)}"
        seconds = (clocks or {}).get(path, state.clock(actor, now))
        facts = (*columns(actor, seconds), tightest(state, actor, sums))
        found.append(Row(branch, MARKS[actor.status], short(path), what, facts))
        below = "" if top else f"{lead}{' ' if last else '│'} "
        for index, child in enumerate(actor.children):
            add(child, below, index == len(actor.children) - 1, False)

    if state.root:
        add(state.root, "", True, True)
    return found


def doing(state: RunState, actor: ActorState, told: Tally | None = None, speaking: str = "") -> str:
    """What an actor does now, or has done, in a few words."""
    done = str(told) if told is not None else ""
    if actor.status != "running":
        how = "" if actor.status == "completed" else str((actor.report or {}).get("reason") or actor.status)
        return ": ".join(part for part in (how, done) if part)
    if actor.request is not None:
        if actor.request.purpose == "wrap_up":
            return "gives its best answer so far"
        return {"text": "writing", "arguments": "calling a tool"}.get(speaking, "thinking")
    if (retry := actor.retry) is not None:
        return f"waits to try again ({retry.attempt + 2} of {retry.limit})"
    open_calls = actor.open_calls
    if actor.between_steps and (held := actor.held or state.held):
        return f"held by {one_line(held.by or 'somebody', 40)}"
    asking = next((call for call in open_calls if call.approval or call.question), None)
    if asking is not None:
        return f"asks ({asking.approval or asking.question}): {call_text(asking.name, asking.arguments)}"
    if waits := [short(child) for child in actor.children if state.actors[child].status == "running"]:
        more = f" and {len(waits) - 3} more" if len(waits) > 3 else ""
        return f"waits for {', '.join(waits[:3])}{more}"
    if open_calls:
        more = f" and {actor.missing - 1} more" if actor.missing > 1 else ""
        return call_text(open_calls[0].name, open_calls[0].arguments) + more
    return "thinking"


def columns(actor: ActorState, seconds: float) -> tuple[str, ...]:
    """Steps, tokens, cost and the `seconds` of one actor; empty where there is nothing to say."""
    tokens = cost = ""
    if actor.model != OFFLINE:
        if actor.usage.total:
            tokens = f"{'~' if actor.usage.estimated else ''}{count_text(actor.usage.total)} tokens"
        if actor.cost_usd is None:
            cost = "cost unknown"
        elif actor.cost_usd:
            cost = f"${actor.cost_usd:.3f}"
    return count_of(actor.steps, "step"), tokens, cost, span(seconds)


def tightest(state: RunState, actor: ActorState, sums: Mapping[str, Total]) -> str:
    """The limit of its own that an actor at work has used most of: `▰▰▱▱▱ 38% steps`."""
    if actor.status != "running":
        return ""
    shares = [
        (each["used"] / each["of"], each["limit"])
        for each in budgets(state, actor, sums, {})
        if each["scope"] == actor.path and each["limit"] in _SPENT and each["used"] is not None and each["of"]
    ]
    if not shares:
        return ""
    share, name = max(shares)
    return f"{bar(share, 5)} {min(share, 1):4.0%} {_SPENT[name]}"


_SPENT = {
    "max_steps": "steps",
    "total_steps": "steps",
    "token_budget": "tokens",
    "cost_budget": "cost",
    "max_tool_calls": "calls",
}


def todo(actor: ActorState) -> str:
    """How far its list of what is to be done is, and what it says it does: `todo 1/3: read the parser`."""
    if not actor.notes:
        return ""
    done = sum(note.get("status") in ("done", "dropped") for note in actor.notes)
    doing = next(
        (f": {one_line(str(note.get('text')), 40)}" for note in actor.notes if note.get("status") == "doing"), ""
    )
    return f"todo {done}/{len(actor.notes)}{doing}"


def bar(share: float, width: int) -> str:
    """A bar of so many cells; anything used shows, and it is full only when all is."""
    full = min(width, int(share * width)) if share <= 0 or share >= 1 else min(max(1, round(share * width)), width - 1)
    return "▰" * full + "▱" * (width - full)


def facts(state: RunState, actor: ActorState, now: float) -> str:
    return "  ".join(part for part in columns(actor, state.clock(actor, now)) if part)


def changed_lines(state: RunState, record: Record) -> list[str]:
    """What a person without a live screen is told about one event; `state` has it folded in already."""
    event = record.event
    name = short(event.actor)
    match event:
        case ActorStarted():
            return [f"● {name}  {one_line(event.task, 70)}"]
        case ToolStarted() if (actor := state.actors.get(event.actor)) and (call := actor.calls.get(event.call_id)):
            return [f"  {name}  {call_text(call.name, call.arguments)}"]
        case ToolFinished() if event.is_error:
            return [f"  {name}  {one_line(event.name, 70)} {event.kind}: {one_line(event.result, 90)}"]
        case NotesChanged() if actor := state.actors.get(event.actor):
            return [f"  {name}  {todo(actor)}"] if actor.notes else []
        case ModelFinished() if event.text.strip() and event.tool_calls:
            return [f"  {name}  “{one_line(event.text, 90)}”"]
        case ActorFinished() if actor := state.actors.get(event.actor):
            reason = event.report.get("reason")
            how = f"{event.report['status']}{f': {reason}' if reason else ''}"
            return [f"{MARKS[actor.status]} {name}  {how}  {facts(state, actor, record.at)}"]
        case _:
            return alarming_lines(state, record)


def alarming_lines(state: RunState, record: Record) -> list[str]:
    """What stays on the screen even where the tree is redrawn: what a person should not miss."""
    event = record.event
    name = short(event.actor)
    match event:
        case ModelRetried():
            again = f"try {event.attempt + 2} of {event.limit} in {max(1.0, event.wait):.0f} s"
            return [f"… {one_line(event.message, 120)}; {again}"]
        case ApprovalRequested():
            return [f"? {name} asks ({event.id})  {call_text(event.name, event.arguments)}   {one_line(event.why, 90)}"]
        case ApprovalDecided():
            return [decided_line(state, event)]
        case QuestionAsked():
            return [f"? {name} asks you ({event.id})  {one_line(event.text, 120)}"]
        case QuestionAnswered():
            return [f"✓ {event.id} answered by {one_line(event.by or 'somebody', 40)}: {one_line(event.answer, 120)}"]
        case HookFinished(outcome="error"):
            return [
                f"! {name}   hook {one_line(event.hook, 70)} failed at {event.event}: {one_line(event.message, 120)}"
            ]
        case HookFinished(outcome="deny"):
            return [
                f"✗ {name}   hook {one_line(event.hook, 70)} refused at {event.event}: {one_line(event.message, 120)}"
            ]
        case HookFinished() if event.arguments is not None:
            return [f"! {name}   hook {one_line(event.hook, 70)} made it  {call_text('', event.arguments).strip()}"]
        case PrefixChanged():
            return [f"! {name}   has changed: {one_line(event.why, 160)}"]
        case ContextCompacted(history=None):
            return [f"  {name}   nothing to compact: {count_text(event.before)} tokens"]
        case ContextCompacted() if event.number:
            sizes = f"{count_text(event.before)} to {count_text(event.after)} tokens"
            return [f"  {name}   compacted {sizes}: {one_line(', '.join(event.steps), 120)}"]
        case McpLost():
            return [f"! server {one_line(event.server, 40)} is lost: {one_line(event.why, 120)}"]
        case McpSwitched():
            what = "enabled" if event.on else "disabled"
            return [f"! server {one_line(event.server, 40)} is {what} by {one_line(event.by or 'somebody', 40)}"]
        case SteerReceived() if not event.entered:
            return [f"> {event.by or 'somebody'} to {name}: {one_line(event.text, 90)}"]
        case MessageSent(kind="message"):
            return [f"> {name} to {short(event.to)}: {one_line(event.text, 90)}"]
        case ActorHeld():
            return [f"‖ {name or 'the run'} is held by {one_line(event.by or 'somebody', 40)}"]
        case ActorContinued():
            return [f"▸ {name or 'the run'} goes on, says {one_line(event.by or 'somebody', 40)}"]
        case LoopNudged() | LoopBlocked():
            what = "told the model" if isinstance(event, LoopNudged) else "refused from now on"
            return [f"! {name}   {one_line(event.why, 120)}: {what}"]
        case LoopStopped():
            to = f"; its partial work goes to {short(event.actor.rpartition('/')[0])}" if "/" in event.actor else ""
            return [f"■ {name}   stopped: loop ({one_line(event.why, 120)}){to}"]
        case BudgetRefused() if "/" in event.actor:
            return [f"■ {name}   {one_line(event.message, 120)}"]
        case BudgetOverrun():
            return [f"! {name}   overrun: {event.limit} of {event.scope} by {event.by:g}"]
        case Warned():
            return [f"! {one_line(event.text, 160)}"]
        case NoteAdded(why=why) if why == SENT_BACK:
            return [f"! {name}   its answer went back: {one_line(faults_told(event.text), 140)}"]
        case _:
            return []


def decided_line(state: RunState, event: ApprovalDecided) -> str:
    """`✗ a1 refused by you; writer-1 reads: "use docs/notes.md instead"`."""
    by = one_line(event.by or "somebody", 40)
    if event.decision == "allow":
        edited = " as edited" if event.arguments is not None else ""
        scope = {"run": " in this run", "workspace": " always here"}.get(event.scope, "")
        return f"✓ {event.id} allowed{edited}{scope} by {by}"
    request = state.requests.get(event.id)
    who = short(request.actor) if request is not None else "it"
    return f'✗ {event.id} refused by {by}; {who} reads: "{one_line(event.why or "no reason given", 120)}"'


def call_text(name: str, arguments: JsonObject | None, width: int = 80) -> str:
    """A call as a person reads it, in one line; control characters are shown, never obeyed."""
    shown = one_line(name, 70).replace("delegate_to_", "→ ", 1)
    if not arguments:
        return shown
    if len(arguments) == 1:
        value = next(iter(arguments.values()))
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    else:
        text = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    return f"{shown}  {one_line(text, width)}"


def short(path: str) -> str:
    return path.rpartition("/")[2]
