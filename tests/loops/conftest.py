"""Replaying recorded and made-up runs against a guard, and scoring what it said in time."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from runtime.limits.loops import CallSeen, Flags, Guard, GuardSettings, StepSeen, Verdict, rank

CASES = Path(__file__).parent.parent / "cases" / "loops"
REFUSED = "[refused] This call was repeated without progress and did not run."
NEVER = 10**9


@attrs.define
class Score:
    """What a guard did with one run."""

    name: str
    loop: bool
    in_time: bool = False
    stopped: bool = False
    wasted: int = 0
    worst: int = 0
    too_early: bool = False
    nudged_wrongly: bool = False

    @property
    def right(self) -> bool:
        if self.loop:
            return self.in_time and self.stopped and not self.too_early
        return self.worst < 2


def seen(step: dict[str, Any], tools: dict[str, Any]) -> StepSeen:
    """A recorded step as the guard takes it."""
    calls = tuple(
        CallSeen(
            call["name"],
            call["arguments"],
            call["result"],
            call["is_error"],
            call["seconds"],
            Flags(**{flag: tools[call["name"]][flag] for flag in ("read_only", "mutates", "poll")}),
        )
        for call in step["calls"]
    )
    return StepSeen(step.get("text") or "", calls, step["at"], step.get("event"))


def _same(call: dict[str, Any]) -> str:
    return call["name"] + json.dumps(call["arguments"], sort_keys=True)


def replay_run(trace: dict[str, Any], veto: bool = False, settings: GuardSettings | None = None) -> Score:
    """Feed a run to one guard an agent and compare its verdicts with the run's bounds.

    With `veto`, a call equal to a blocked one gets a refusal as its result, as it would in a real run.
    """
    loop = trace["label"] == "loop"
    score = Score(trace["name"], loop)
    starts, by, hard = (trace.get(key, NEVER) for key in ("loop_starts_at", "stop_no_later_than", "hard_stop_no_later_than"))
    guards: dict[str, Guard] = {}
    refused: set[str] = set()
    first: int | None = None
    count = 0
    for place, recorded in enumerate(trace["steps"]):
        step = recorded
        if veto and any(_same(call) in refused for call in step["calls"]):
            calls = [
                {**c, "result": REFUSED, "is_error": True, "seconds": 0.0} if _same(c) in refused else c
                for c in step["calls"]
            ]
            step = {**step, "calls": calls}
        agent = step.get("agent", "root")
        if agent not in guards:
            guards[agent] = Guard(settings)
        level = rank(guards[agent].observe(seen(step, trace["tools"])))
        before, count = count, count + len(step["calls"])
        at = place if trace.get("unit") == "step" else count - 1
        score.worst = max(score.worst, level)
        if level and loop and at < starts:
            score.too_early |= level > 1
        elif level and first is None:
            first = at
        score.nudged_wrongly |= level == 1 and not loop and not trace["nudge_ok"]
        if loop and level != 2:
            score.wasted += int(at >= starts) if trace.get("unit") == "step" else max(0, count - max(before, starts))
        if level == 2 and veto:
            refused |= {_same(call) for call in recorded["calls"]}
        if level == 3:
            score.stopped = starts <= at <= hard
            break
    score.in_time = first is not None and first <= by
    return score


@pytest.fixture(scope="session")
def replay() -> Callable[..., Score]:
    return replay_run


@pytest.fixture(scope="session")
def traces() -> list[dict[str, Any]]:
    """The recorded runs: three of each of fifty kinds."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))]
