"""Two runs side by side: what they were given, what each actor did with it, where they part, how they end; pure.

Actors are matched by their path. Their tool calls are lined up by order and canonical arguments, as the loop guard
compares them, so that a call one of them made in between moves nothing else out of line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

import attrs

from runtime.limits.loops.canonical import canonical
from runtime.messages import JsonObject
from runtime.record import usage_to_json
from runtime.tools.diff import unified

from .portrait import Call, Part, Portrait

LONGEST = 4000
"""Characters of a result that are shown on each side."""
MOST_CALLS = 500
"""Calls of one actor that are lined up; further ones are paired by their order alone."""

Pair: TypeAlias = tuple[int | None, int | None]
"""A place in the first list and one in the second; None where a side has nothing to put beside the other."""


def compare(one: Portrait, two: Portrait) -> JsonObject:
    """What a page shows of two runs."""
    return {
        "runs": [_run(one), _run(two)],
        "given": [
            {"what": what, "values": [first, second], "same": first == second}
            for (what, first), (_, second) in zip(_given(one), _given(two), strict=True)
        ],
        "actors": [_actor(path, one, two) for path in dict.fromkeys((*one.parts, *two.parts))],
        "answers": {"same": one.answer == two.answer, "diff": text_diff("answer", one.answer, two.answer)},
    }


def line_up(one: Sequence[Any], two: Sequence[Any]) -> list[Pair]:
    """Pair equal items in their order; between them, what is left on both sides in its order. Each place comes once."""
    pairs: list[Pair] = []
    matcher = SequenceMatcher(None, one[:MOST_CALLS], two[:MOST_CALLS], autojunk=False)
    for tag, from_one, to_one, from_two, to_two in matcher.get_opcodes():
        if tag == "equal":
            pairs += zip(range(from_one, to_one), range(from_two, to_two), strict=True)
        else:
            pairs += [(place, None) for place in range(from_one, to_one)]
            pairs += [(None, place) for place in range(from_two, to_two)]
    for place in range(MOST_CALLS, max(len(one), len(two))):
        pairs.append((place if place < len(one) else None, place if place < len(two) else None))
    return pairs


def text_diff(name: str, one: str, two: str) -> str:
    """What changed from one text to the other, as a unified diff; "" where nothing did."""
    return "" if one == two else unified(name, one.encode(errors="replace"), two.encode(errors="replace"))


def _run(found: Portrait) -> JsonObject:
    state, report = found.state, found.report
    return {
        "id": found.id,
        "task": state.started.task if state.started is not None else "",
        "agent": state.started.agent if state.started is not None else "",
        "model": state.started.model if state.started is not None else "",
        "phase": state.phase,
        "status": report.get("status", ""),
        "reason": report.get("reason") or "",
        "detail": report.get("detail", ""),
        "answer": found.answer,
        "seconds": found.seconds,
        "started_at": state.started_at,
        "steps": state.steps,
        "usage": usage_to_json(state.usage),
        "cost_usd": state.cost_usd,
        "calls": sum(len(part.calls) for part in found.parts.values()),
        "alerts": sum(len(part.alerts) for part in found.parts.values()),
        "origin": found.origin,
    }


def _given(found: Portrait) -> Iterator[tuple[str, Any]]:
    started = found.state.started
    yield "task", started.task if started is not None else ""
    yield "agent", started.agent if started is not None else ""
    yield "model", started.model if started is not None else ""
    yield "workspace", started.workspace if started is not None else ""
    yield "limits", found.state.limits
    yield (
        "rules",
        {
            key: started.options[key]
            for key in ("allow", "ask", "deny", "yes", "mode", "sandbox", "network")
            if started is not None and started.options.get(key)
        },
    )


def _actor(path: str, one: Portrait, two: Portrait) -> JsonObject:
    parts = [one.parts.get(path), two.parts.get(path)]
    first, second = parts
    return {
        "path": path,
        "sides": [None if part is None else _side(found, part) for found, part in zip((one, two), parts, strict=True)],
        "same_prompt": first is not None and second is not None and first.prompt == second.prompt,
        "prompt_diff": text_diff("prompt", _prompt(first), _prompt(second)) if first and second else "",
        "calls": list(_calls(first, second)),
    }


def _prompt(part: Part) -> str:
    return "\n\n".join(part.prompt)


def _side(found: Portrait, part: Part) -> JsonObject:
    actor = found.actor(part.path)
    return {
        "agent": part.agent,
        "model": actor.model,
        "status": actor.status,
        "reason": (actor.report or {}).get("reason") or "",
        "limits": actor.limits,
        "tools": list(part.tools),
        "steps": actor.steps,
        "usage": usage_to_json(actor.usage),
        "cost_usd": actor.cost_usd,
        "began_at": part.began_at,
        "seconds": (part.ended_at if part.ended_at is not None else found.seconds) - part.began_at,
        "turns": [attrs.asdict(turn) for turn in part.turns],
        "alerts": part.alerts,
    }


def _calls(one: Part | None, two: Part | None) -> Iterator[JsonObject]:
    first = list(one.calls.values()) if one is not None else []
    second = list(two.calls.values()) if two is not None else []
    for left, right in line_up([_key(call) for call in first], [_key(call) for call in second]):
        mine = first[left] if left is not None else None
        other = second[right] if right is not None else None
        same_call = same_result = False
        if mine is not None and other is not None:
            same_call = _key(mine) == _key(other)
            same_result = (mine.kind, mine.result) == (other.kind, other.result)
        yield {"sides": [_shown(mine), _shown(other)], "same_call": same_call, "same_result": same_result}


def _key(call: Call) -> tuple[str, str]:
    return call.name, canonical(call.arguments) if call.arguments is not None else ""


def _shown(call: Call | None) -> JsonObject | None:
    if call is None:
        return None
    return {**attrs.asdict(call), "result": call.result[:LONGEST], "cut": max(0, len(call.result) - LONGEST)}
