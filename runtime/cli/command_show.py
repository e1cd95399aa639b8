"""`elenco show`: a run as a page to read, as Markdown, or as data."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator

from runtime.errors import UsageError
from runtime.journal.folder import RunFolder, find_run, open_state
from runtime.journal.overview import overview
from runtime.journal.read import RunReader, load
from runtime.journal.state import ActorState, RunState
from runtime.messages import AssistantMessage, Message, ToolResults, UserMessage
from runtime.watch.lines import line

from .tree import MARKS, call_text, facts, short

SHOWN_LINES = 3


def run(arguments: argparse.Namespace) -> int:
    """Print a run. Raises UsageError for an unknown one, JournalError for a damaged one."""
    folder = find_run(open_state(arguments.state), arguments.run)
    if arguments.format == "jsonl":
        _records(folder)
        return 0
    state = load(folder)
    if state.started is None:
        raise UsageError(f"run {folder.id} has no event on record")
    if arguments.format == "json":
        print(json.dumps(overview(state), ensure_ascii=False, indent=2, default=list))
    else:
        full = arguments.format == "md"
        print("\n".join(_page(state, folder.id, full)))
    return 0


def _records(folder: RunFolder) -> None:
    with RunReader(folder) as reader:
        for record in reader.records():
            sys.stdout.buffer.write(line(record, folder.id))
    sys.stdout.buffer.flush()


def _page(state: RunState, run: str, full: bool) -> Iterator[str]:
    assert state.started is not None
    yield f"# run {run}: {' '.join(state.started.task.split())[:100]}"
    yield ""
    report = state.finished.report if state.finished is not None else None
    status = (
        f"{report['status']}{': ' + str(report['reason']) if report.get('reason') else ''}" if report else state.phase
    )
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.started_at))
    yield f"{status}   agent {state.started.agent}   model {state.started.model}   started {started}"
    yield f"workspace {state.started.workspace}"
    if report and report.get("detail"):
        yield str(report["detail"])
    for actor in state.actors.values():
        yield ""
        yield f"## {MARKS[actor.status]} {actor.path}   {facts(actor, state.at)}"
        yield from _talk(actor, full)
    for _, _, alert in state.alerts:
        yield f"! {short(alert.actor)}: {alert.why}"
    if state.pending_approvals:
        yield ""
        for request in state.pending_approvals:
            yield f"? {request.actor} asks ({request.id})  {call_text(request.name, request.arguments)}   {request.why}"
    if report:
        yield ""
        yield "## Answer" if report["status"] == "completed" else "## Partial answer"
        yield str(report["text"]).rstrip() or "(none)"


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
                yield f"- {call_text(call.name, call.arguments)}"
        case ToolResults():
            for result in message.results:
                mark = "" if result.kind == "ok" else f" {result.kind}"
                yield f"  {result.name}{mark}: {_cut(result.content, full)}"


def _cut(text: str, full: bool) -> str:
    lines = text.strip().split("\n")
    if full or len(lines) <= SHOWN_LINES:
        return "\n  ".join(lines)
    return "\n  ".join([*lines[:SHOWN_LINES], f"… {len(lines) - SHOWN_LINES} more lines (--format md)"])
