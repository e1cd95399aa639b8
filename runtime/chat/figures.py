"""The figures of a chat: its status line, the bars of its budgets; pure."""

from __future__ import annotations

import attrs

from runtime.cli.advice import span
from runtime.cli.tree import short
from runtime.cli.visible import cells, one_line
from runtime.journal.state import RunState
from runtime.limits.limits import LIMIT_NAMES, amount_text, count_text

from .view import View

BAR = 12


@attrs.frozen
class Bar:
    """How much of a limit is used: `share` from 0 to 1, None where there is no limit."""

    name: str
    used: str
    of: str
    share: float | None

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.name:<15}{self.used}"
        full = round(min(1.0, self.share) * BAR)
        return f"{self.name:<15}{'█' * full}{'░' * (BAR - full)} {self.used} of {self.of}"


def bars(state: RunState, path: str, limits: dict[str, object], now: float) -> list[Bar]:
    """Every limit of an actor with what it and all below it have used; times in seconds."""
    actor = state.actors[path]
    below = state.subtree(path)
    tokens = sum(each.usage.total for each in below)
    costs = [each.cost_usd for each in below]
    cost = None if None in costs else sum(each for each in costs if each is not None)
    used: dict[str, float | None] = {
        "max_steps": actor.steps,
        "total_steps": sum(each.steps for each in below),
        "token_budget": tokens,
        "cost_budget": cost,
        "timeout": state.clock(actor, now),
        "max_tool_calls": actor.tool_calls,
    }
    found: list[Bar] = []
    for name in LIMIT_NAMES:
        if name not in used:
            continue
        spent, of = used[name], limits.get(name)
        bound = float(of) if isinstance(of, int | float) else None
        if bound is None and name in ("cost_budget", "max_tool_calls", "total_steps") and not spent:
            continue
        shown = "unknown" if spent is None else _figure(name, spent)
        share = None if bound is None else (spent or 0.0) / bound if bound else 1.0
        found.append(Bar(name, shown, amount_text(name, bound) if bound is not None else "", share))
    return found


def _figure(name: str, value: float) -> str:
    """A figure without its unit, where the limit beside it has one."""
    match name:
        case "timeout":
            return span(value)
        case "cost_budget":
            return amount_text(name, value)
        case _:
            return count_text(int(value))


def budget_lines(view: View, now: float) -> list[str]:
    """The bars of all actors at work, the root's always."""
    state = view.state
    found: list[str] = []
    for actor in state.actors.values():
        if actor.path != state.root and actor.status != "running":
            continue
        limits = state.limits if actor.path == state.root else actor.limits
        found.append(short(actor.path))
        found += [f"  {bar}" for bar in bars(state, actor.path, dict(limits), now)]
    return found or ["nothing has been spent yet"]


def status_line(view: View, *, doing: str, model: str, window: int | None, queued: int, width: int = 200) -> str:
    """One line for the foot of the screen: state, model, context, tokens, cost; in fewer words where it is narrow."""
    line = ""
    for brevity in range(3):
        line = (" " if brevity == 2 else "  ").join(filter(None, _parts(view, doing, model, window, queued, brevity)))
        if cells(line) <= width:
            break
    return line


def _parts(view: View, doing: str, model: str, window: int | None, queued: int, brevity: int) -> list[str]:
    usage, cost = view.usage, view.cost_usd
    mark = "~" if usage.estimated else ""
    cached = f" ({count_text(usage.cached_input)} cached)" if usage.cached_input and not brevity else ""
    spent = f"{mark}{count_text(usage.total)} {'tok' if brevity == 2 else 'tokens'}{cached}"
    price = "cost unknown" if cost is None else f"{mark}${cost:.3f}" if cost else "$0"
    name = one_line(model, 48) if brevity < 2 else one_line(model.rpartition("/")[2], 12)
    return [
        doing if brevity < 2 else " ".join(doing.split()[:2]),
        name,
        _context(view.context, window, brevity) if view.context else "",
        spent if usage.total else "no tokens",
        ("$?" if cost is None and brevity == 2 else price) if usage.total else "",
        f"{queued} queued" if queued else "",
    ]


def _context(tokens: int, window: int | None, brevity: int) -> str:
    share = f"{min(1.0, tokens / window):.0%}" if window else ""
    match brevity:
        case 0:
            return (
                f"context {count_text(tokens)} ({f'{share} of {count_text(window)}' if window else 'window unknown'})"
            )
        case 1:
            return f"context {share or count_text(tokens)}"
        case _:
            return f"{share or count_text(tokens)} ctx"


def doing(view: View, *, alive: bool, begun: bool) -> str:
    """The state of the conversation in a word or two."""
    state = view.state
    if not begun:
        return "○ ready"
    if state.finished is not None or not state.started:
        return "○ ready" if state.finished is not None else "● begins"
    if not alive:
        return "✗ interrupted"
    match state.phase:
        case "waiting":
            return "? waits for you"
        case "held":
            return "‖ held"
        case "ended":
            return "○ ready"
        case "running":
            at_work = sum(actor.status == "running" for actor in state.actors.values())
            return f"● working ({at_work} agents)" if at_work > 1 else "● working"
