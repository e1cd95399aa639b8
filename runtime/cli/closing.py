"""The last words of a run: the answer for standard output, the closing line for standard error."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from runtime.events import ApprovalRequested, ModelFailed, QuestionAsked
from runtime.journal.elsewhere import in_state
from runtime.journal.state import RunState
from runtime.known import OFFLINE
from runtime.limits.limits import amount_text, count_text
from runtime.messages import Usage
from runtime.report import Report

from .advice import decide_command, go_on, next_command, span
from .faults import count_of
from .visible import one_line, visible

_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_PASSES = ("connect", "rate_limit", "overloaded", "truncated", "provider")
"""What a server may get over: the run goes on where it stood once it has."""


def answer(report: Report) -> str:
    """What goes to standard output; a partial answer says that it is one, and so does a missing one."""
    text = visible(report.text.rstrip())
    if report.status == "completed":
        return text
    by = f" by {report.reason}" if report.reason else ""
    if not text.strip():
        return f"No answer ({report.status}{by})." if report.status == "stopped" else ""
    return f"Partial answer ({report.status}{by}):\n{text}"


def output(report: Report, indent: int | None = None) -> str:
    """The report's value as JSON, nothing where it has none: a terminal obeys nothing in it."""
    if report.output is None and report.status != "completed":
        return ""
    text = json.dumps(report.output, ensure_ascii=False, indent=indent)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def before_answer(report: Report, state: RunState) -> str:
    """What ended a run that was stopped, to stand above its partial answer."""
    if report.status != "stopped" or not report.detail or report.reason == "loop":
        return ""  # The guard has said why, at the moment it happened.
    if (counted := _spent_of(report, state)) and "no last answer" not in report.detail:
        return f"■ {counted}"
    detail = one_line(report.detail, 200)
    return f"■ {detail}" if detail.startswith(f"{report.reason}:") else f"■ {report.reason}: {detail}"


def _spent_of(report: Report, state: RunState) -> str:
    """What the run has used of the limit that stopped it, the last answer included; nothing where that is not known."""
    limit, root = state.limits.get(str(report.reason)), state.actors.get(state.root)
    if limit is None or root is None:
        return ""
    match report.reason:
        case "max_steps" | "total_steps":
            used: float = root.steps if report.reason == "max_steps" else state.steps
            text = f"{used:,} of {limit:,}"
        case "token_budget":
            used, text = report.usage.total, f"{report.usage.total:,} of {limit:,}"
        case "cost_budget" if report.cost_usd is not None:
            used = report.cost_usd
            text = f"{amount_text('cost_budget', used)} of {amount_text('cost_budget', limit)}"
        case _:
            return ""
    source = state.limits.get("sources", {}).get(report.reason, "")
    said = f" ({source})" if source else ""
    kept = "; the last one was kept for this answer" if "steps" in report.reason and report.text.strip() else ""
    full = "" if "steps" in report.reason or used >= limit else "; one more step did not fit"
    return f"{report.reason}: {text} used{said}{kept}{full}"


def line(
    report: Report, run: str, model: str, state: RunState, seconds: float, failure: ModelFailed | None = None
) -> str:
    """How the run ended, what the whole tree took, and what to type next."""
    steps = state.steps
    body = ", ".join([count_of(steps, "step"), *spent(report.usage, report.cost_usd, model)])
    time = span(seconds)
    offline = bool(state.actors) and all(actor.model == OFFLINE for actor in state.actors.values())
    facts = f"{count_of(steps, 'step')}, {time}, no tokens (offline)" if offline else f"{body}, {time}"
    match report.status:
        case "completed":
            return f"completed   {facts}   run {run}   elenco show {run}{in_state()}"
        case "stopped":
            return f"stopped: {report.reason}   {facts}   go on: {go_on(run, report.reason)}"
        case "failed":
            what = f"error: {visible(report.detail or 'it gave no reason')}"
            if failure is not None and failure.kind == "auth":
                cure = "set another, then" if "refused the key" in failure.message else "then"
                return f"{what}\n       {cure}: elenco resume {run}{in_state()}"
            passes = failure is not None and (failure.kind in _PASSES or (failure.status or 0) >= 500)
            then = go_on(run, None) if passes else next_command(run, "failed", None)
            return f"{what}\nfailed   {facts}   run {run}   {'go on: ' if passes else ''}{then}"
        case "cancelled":
            return f"cancelled   {facts}   run {run}   go on: {go_on(run, None)}"


def spent(usage: Usage, cost_usd: float | None, model: str) -> list[str]:
    """Tokens and cost for a person; unknown is said, never shown as nothing."""
    if not usage.total:
        return ["no tokens"]
    mark = "~" if usage.estimated else ""
    cached = f" ({count_text(usage.cached_input)} cached)" if usage.cached_input else ""
    tokens = f"{mark}{count_text(usage.total)} tokens{cached}"
    if cost_usd is None:
        return [tokens, f"cost unknown (no price for {one_line(model, 80)})"]
    return [tokens, f"{mark}${cost_usd:.3f}" if cost_usd else "$0"]


def waiting_line(run: str, waiting: Sequence[ApprovalRequested | QuestionAsked]) -> str:
    """What a run without anybody to ask leaves on the screen."""
    if not waiting:
        return f"waiting   elenco resume {run}{in_state()}"
    asked = ", ".join(f"{each.id} ({each.actor.rpartition('/')[2]}, {_about(each)})" for each in waiting)
    return f"waiting: {asked}   {decide_command(run, waiting[0].id)}   then elenco resume {run}{in_state()}"


def _about(each: ApprovalRequested | QuestionAsked) -> str:
    return one_line(each.name, 70) if isinstance(each, ApprovalRequested) else f'"{one_line(each.text, 70)}"'
