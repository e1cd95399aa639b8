"""`elenco debug guard`: one step a line in, one verdict word a line out (ok, nudge, block, stop)."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO, cast, get_args

from runtime.limits.loops import CallSeen, Event, Flags, Guard, StepSeen, rank
from runtime.limits.loops.canonical import is_list
from runtime.limits.loops.steps import UNDECLARED

WORDS = ("ok", "nudge", "block", "stop")
_EVENTS = get_args(Event)


class _Unusable(ValueError):
    """The line is no step."""


def guard(lines: Iterable[str], out: TextIO) -> int:
    """Answer each step with a verdict word, flushed at once. State is kept per `agent`.

    Returns 0 at the end of the input; 2 after one clear line on standard error for a line that is no step.
    """
    guards: dict[str, Guard] = {}
    tools: dict[str, Flags] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            agent, step = _step(line, tools)
        except _Unusable as error:
            print(f"line {number}: {error}", file=sys.stderr)
            return 2
        if agent not in guards:
            guards[agent] = Guard()
        out.write(WORDS[rank(guards[agent].observe(step))] + "\n")
        out.flush()
    return 0


def _step(line: str, tools: dict[str, Flags]) -> tuple[str, StepSeen]:
    try:
        parsed: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"not JSON: {error}") from None
    given = _mapping(parsed, "a step")
    for name, flags in _mapping(_given(given, "tools", {}), "tools").items():
        declared = _mapping(flags, f"tools.{name}")
        tools[name] = Flags(*(declared.get(flag) is True for flag in ("read_only", "mutates", "poll", "delegates")))
    event = given.get("event")
    if event is not None and event not in _EVENTS:
        raise _Unusable(f"event: expected one of {', '.join(_EVENTS)}, got {event!r}")
    if not is_list(calls := _given(given, "calls", [])):
        raise _Unusable("calls: expected a list")
    seen = [_call(call, place, tools) for place, call in enumerate(calls)]
    text = _text(_given(given, "text", ""), "text")
    return str(given.get("agent") or "root"), StepSeen(text, tuple(seen), _number(_given(given, "at", 0), "at"), event)


def _call(value: Any, place: int, tools: Mapping[str, Flags]) -> CallSeen:
    call = _mapping(value, f"calls[{place}]")
    if not isinstance(call.get("name"), str):
        raise _Unusable(f"calls[{place}].name: expected a text")
    name = cast("str", call["name"])
    return CallSeen(
        name,
        _mapping(_given(call, "arguments", {}), f"calls[{place}].arguments"),
        _text(_given(call, "result", ""), f"calls[{place}].result"),
        call.get("is_error") is True,
        _number(_given(call, "seconds", 0), f"calls[{place}].seconds"),
        tools.get(name, UNDECLARED),
    )


def _given(mapping: Mapping[str, Any], key: str, default: Any) -> Any:
    value = mapping.get(key)
    return default if value is None else value


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Unusable(f"{what}: expected an object, got {type(value).__name__}")
    return cast("dict[str, Any]", value)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise _Unusable(f"{what}: expected a text, got {type(value).__name__}")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Unusable(f"{what}: expected a number, got {value!r}")
    return float(value)


if __name__ == "__main__":
    sys.exit(guard(sys.stdin, sys.stdout))
