"""The last words of a run: the answer for standard output, the closing line for standard error."""

from __future__ import annotations

from runtime.limits.limits import count_text
from runtime.messages import Usage
from runtime.models import OFFLINE
from runtime.report import Report


def answer(report: Report) -> str:
    """What goes to standard output; a partial answer says that it is one."""
    text = report.text.rstrip()
    if report.status == "completed":
        return text
    if not text:
        return ""
    return f"Partial answer ({report.status}{f' by {report.reason}' if report.reason else ''}):\n{text}"


def line(report: Report, run: str, model: str, seconds: float) -> str:
    """How the run ended, what it took, and what to type next."""
    facts = [f"{report.steps} step{'s' if report.steps != 1 else ''}", *spent(report.usage, report.cost_usd, model)]
    facts.append(f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min")
    body = f"   {', '.join(facts)}   run {run}"
    match report.status:
        case "completed":
            return f"completed{body}   elenco show {run}"
        case "stopped":
            head = f"■ {report.detail}\n" if report.detail else ""
            return f"{head}stopped: {report.reason}{body}   go on: {go_on(report, run)}"
        case "failed":
            return f"error: {report.detail}\nfailed{body}   elenco show {run}"
        case "cancelled":
            return f"cancelled{body}   elenco show {run}"


def go_on(report: Report, run: str) -> str:
    """The command that lets a stopped run go on."""
    more = {
        "max_steps": " --max-steps +20",
        "total_steps": " --total-steps +50",
        "token_budget": " --token-budget +100000",
        "cost_budget": " --cost-budget +0.50",
        "deadline": " --timeout +600",
        "max_tool_calls": " --max-tool-calls +50",
    }.get(report.reason or "", "")
    return f"elenco resume {run}{more}"


def spent(usage: Usage, cost_usd: float | None, model: str) -> list[str]:
    """Tokens and cost for a person; unknown is said, never shown as nothing."""
    if model == OFFLINE and not usage.total:
        return ["no tokens (offline)"]
    mark = "~" if usage.estimated else ""
    cached = f" ({count_text(usage.cached_input)} cached)" if usage.cached_input else ""
    tokens = f"{mark}{count_text(usage.total)} tokens{cached}"
    if cost_usd is None:
        return [tokens, f"cost unknown (no price for {model})"]
    return [tokens, f"{mark}${cost_usd:.3f}" if cost_usd else "$0"]


def waiting_line(run: str, waiting: tuple[str, ...]) -> str:
    """What a run without anybody to ask leaves on the screen."""
    first = waiting[0] if waiting else "ID"
    return (
        f"waiting: {', '.join(waiting)}   elenco approve {run} {first} | elenco deny {run} {first}   "
        f"then elenco resume {run}"
    )
