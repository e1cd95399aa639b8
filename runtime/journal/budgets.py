"""What bounds each actor of a recorded run, and how much of it is used: its own limits, then those above it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from runtime.limits.limits import LimitName
from runtime.messages import JsonObject, Usage

from .state import ActorState, RunState

_OWN = frozenset({"max_steps", "max_children"})
"""Limits of one actor alone, which those below it do not inherit."""


@attrs.frozen
class Total:
    """What an actor and all below it have used; `actors` counts those below. Unknown cost is None."""

    steps: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    actors: int = 0


def totals(state: RunState) -> dict[str, Total]:
    """The total of every actor, by path."""
    found: dict[str, Total] = {}
    for actor in reversed(state.actors.values()):  # children began after their parents
        total = Total(actor.steps, actor.tool_calls, actor.usage, actor.cost_usd)
        for child in actor.children:
            total = _sum(total, found[child])
        found[actor.path] = total
    return found


def budgets(
    state: RunState, actor: ActorState, totals: Mapping[str, Total], seconds: Mapping[str, float]
) -> Iterator[JsonObject]:
    """Every limit that bounds an actor and counts something; `seconds` is what each actor's clock shows."""
    scope: ActorState | None = actor
    while scope is not None:
        sources = scope.limits.get("sources", {})
        for name, of in scope.limits.items():
            if scope is not actor and name in _OWN:
                continue
            used = _used(state, name, scope, totals[scope.path], seconds)
            if used is not _STATE:
                source = sources.get(name, "")
                yield {"limit": name, "scope": scope.path, "used": used, "of": of, "source": source}
        scope = state.actors.get(scope.parent) if scope.parent is not None else None


def used_beyond(
    state: RunState, actor: ActorState, limits: Mapping[LimitName, float]
) -> Iterator[tuple[LimitName, float]]:
    """Those of the limits of which an actor has used more already, with how much."""
    total = totals(state)[actor.path]
    for name, of in limits.items():
        used = _used(state, name, actor, total, {})
        if isinstance(used, int | float) and used > of:
            yield name, used


_STATE = object()
"""What depth and concurrency are: no sums."""


def _used(state: RunState, name: str, scope: ActorState, total: Total, seconds: Mapping[str, float]) -> object:
    match name:
        case "max_steps":
            return scope.steps
        case "total_steps":
            return total.steps
        case "token_budget":
            return total.usage.total
        case "input_budget":
            return total.usage.input
        case "output_budget":
            return total.usage.output
        case "cost_budget":
            return total.cost_usd
        case "timeout":
            return round(seconds.get(scope.path, scope.elapsed), 1)
        case "max_tool_calls":
            return total.tool_calls
        case "max_children":
            return sum(state.actors[child].status == "running" for child in scope.children)
        case "max_total_children":
            return total.actors
        case _:
            return _STATE


def _sum(total: Total, child: Total) -> Total:
    cost = None if total.cost_usd is None or child.cost_usd is None else total.cost_usd + child.cost_usd
    return Total(
        total.steps + child.steps,
        total.tool_calls + child.tool_calls,
        total.usage + child.usage,
        cost,
        total.actors + child.actors + 1,
    )
