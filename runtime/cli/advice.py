"""What to type next about a run, and how long ago it was, in a few words."""

from __future__ import annotations

from runtime.journal.elsewhere import in_state
from runtime.known import OFFLINE

from .visible import one_line

_MORE = {
    "max_steps": " --max-steps +20",
    "total_steps": " --total-steps +50",
    "token_budget": " --token-budget +100000",
    "cost_budget": " --cost-budget +0.50",
    "deadline": " --timeout +600",
    "max_tool_calls": " --max-tool-calls +50",
    "context_window": " --model PROVIDER/MODEL",
}


def go_on(run: str, reason: str | None) -> str:
    """The command that lets a stopped run go on."""
    return f"elenco resume {run}{_MORE.get(reason or '', '')}{in_state()}"


def decide_command(run: str, id: str) -> str:
    """How to decide what waits for a human."""
    if id.startswith("q"):
        return f'elenco answer {run} {id}{in_state()} "…"'
    return f"elenco approve {run} {id}{in_state()} | elenco deny {run} {id}{in_state()}"


def next_command(run: str, status: str, reason: str | None) -> str:
    """What a person may want to do with a run in that state."""
    match status:
        case "running" | "held":
            return f"elenco tail {run} --follow{in_state()}"
        case "waiting" | "interrupted" | "forked" | "stopped":
            return go_on(run, reason)
        case _:
            return f"elenco show {run}{in_state()}"


def ago(seconds: float, now: float) -> str:
    """How long ago a moment was, for a person."""
    passed = max(0.0, now - seconds)
    if passed < 60:
        return "now"
    if passed < 3600:
        return f"{passed / 60:.0f} min ago"
    if passed < 86_400:
        return f"{passed / 3600:.0f} h ago"
    return "yesterday" if passed < 172_800 else f"{passed / 86_400:.0f} days ago"


def span(seconds: float) -> str:
    """A stretch of time: 0.4 s, 38 s, 2:05 min, 1:02:05 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02} h"


def who_answers(agent: str, model: str, *, asked: bool) -> str:
    """The first line of a run: which model will answer, and for the offline one why."""
    if model != OFFLINE:
        return f"{agent} asks {one_line(model, 120)}"
    why = "as asked" if asked else "no model configured"
    return f"{OFFLINE}: {why}, so only quotes (elenco doctor tells how to connect one)"
