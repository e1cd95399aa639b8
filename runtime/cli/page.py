"""A run as a page to read: how it ended, what each actor said, called and got, the answer; pure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from runtime.handover.brief import listed
from runtime.handover.sources import source_from_json
from runtime.journal.state import ActorState, RunState
from runtime.limits.limits import count_text
from runtime.messages import AssistantMessage, JsonObject, Message, ToolResults, UserMessage

from .advice import go_on
from .context_page import cached_share
from .tree import MARKS, call_text, facts, short
from .visible import one_line, visible

SHOWN_LINES = 3


def page(state: RunState, run: str, *, full: bool, owned: bool) -> Iterator[str]:
    """The lines of the page; `full` leaves nothing out, `owned` says that a process works on the run.

    Nothing in it is obeyed by a terminal.
    """
    started = state.started
    assert started is not None
    report = state.finished.report if state.finished is not None else None
    yield f"# run {run}: {one_line(started.task, 100)}"
    yield ""
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.started_at))
    status = _status(state, report, owned)
    yield f"{status}   agent {started.agent}   model {one_line(started.model, 80)}   started {at}"
    yield f"workspace {visible(started.workspace)}"
    if (cached := cached_share(state.usage)) is not None:
        yield f"{cached} % of {count_text(state.usage.input)} input tokens came from the provider's cache"
    if report and report.get("detail"):
        yield visible(str(report["detail"]))
    for actor in state.actors.values():
        yield ""
        yield f"## {MARKS[actor.status]} {actor.path}   {facts(state, actor, state.at)}"
        yield from _talk(actor, full)
    for _, _, alert in state.alerts:
        yield f"! {short(alert.actor)}: {visible(alert.why)}"
    for text in state.warnings:
        yield f"! {_cut(text, full)}"
    for request in state.pending_approvals:
        what = f"{call_text(request.name, request.arguments)}   {one_line(request.why, 90)}"
        yield f"? {request.actor} asks ({request.id})  {what}"
    for question in state.pending_questions:
        yield f"? {question.actor} asks you ({question.id})  {visible(question.text)}"
    if report:
        yield ""
        yield "## Answer" if report["status"] == "completed" else "## Partial answer"
        yield visible(str(report["text"]).rstrip()) or "(none)"
        if sources := report.get("sources"):
            yield ""
            shown = listed((str(source_from_json(each)) for each in sources), cut=bool(report.get("sources_cut")))
            yield f"Really read: {shown}"
        if report.get("output") is not None:
            yield ""
            yield "## Output"
            yield visible(json.dumps(report["output"], ensure_ascii=False, indent=2))
    if not owned and (report is None or report["status"] != "completed"):
        yield ""
        yield f"go on: {go_on(run, report.get('reason') if report else None)}"


def _status(state: RunState, report: JsonObject | None, owned: bool) -> str:
    if report is None:
        copy = f"forked from {state.forked.of} at event {state.forked.at}" if state.forked is not None else ""
        dead = (copy or "interrupted") if state.cancel is None else "cancelled"
        return state.phase if owned or (state.phase == "waiting" and state.cancel is None) else dead
    return f"{report['status']}: {report['reason']}" if report.get("reason") else str(report["status"])


def _talk(actor: ActorState, full: bool) -> Iterator[str]:
    for message in actor.history:
        yield from _message(message, full)


def _message(message: Message, full: bool) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"> {message.kind}: {_cut(message.text, full)}"
        case AssistantMessage():
            if message.text.strip():
                yield _cut(message.text, full)
            for call in message.calls:
                yield f"- {call_text(call.name, call.arguments, 2000 if full else 80)}"
        case ToolResults():
            for result in message.results:
                mark = "" if result.kind == "ok" else f" {result.kind}"
                yield f"  {one_line(result.name, 70)}{mark}: {_cut(result.content, full)}"


def _cut(text: str, full: bool) -> str:
    lines = visible(text.strip()).split("\n")
    if full or len(lines) <= SHOWN_LINES:
        return "\n  ".join(lines)
    return "\n  ".join([*lines[:SHOWN_LINES], f"… {len(lines) - SHOWN_LINES} more lines (--format md)"])
