"""What the worlds of many seeds have seen: so that we know that the adversary reaches the corners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from runtime.events import (
    ActorFinished,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetOverrun,
    BudgetRefused,
    CancelRequested,
    ContextCompacted,
    Event,
    LimitsChanged,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    MessageReceived,
    ModelFailed,
    ModelFinished,
    ModelRetried,
    ModelWithdrawn,
    QuestionAsked,
    Record,
    RunResumed,
    RunWaiting,
    SteerReceived,
    ToolFinished,
    ToolRetried,
)

_COUNTED: dict[type[Event], str] = {
    ActorStarted: "actors",
    ApprovalRequested: "questions",
    QuestionAsked: "questions of agents",
    ApprovalDecided: "decisions",
    BudgetRefused: "refusals",
    BudgetOverrun: "overruns",
    CancelRequested: "cancels",
    ActorHeld: "holds",
    LimitsChanged: "limits changed",
    LoopNudged: "nudges",
    LoopBlocked: "blocks",
    LoopStopped: "guard stops",
    MessageReceived: "background reports",
    ModelFailed: "model failures",
    ModelRetried: "retries",
    ModelWithdrawn: "withdrawn turns",
    RunResumed: "resumes",
    RunWaiting: "waits for people",
    ToolRetried: "tool retries",
}

_REPLIES = {"turn": "turns", "wrap_up": "wrap-ups", "summary": "summaries"}


@attrs.define
class Tally:
    """Counts by what they count; `steps` are the scheduler's."""

    seeds: int = 0
    steps: int = 0
    seen: Counter[str] = attrs.Factory(Counter[str])

    def note(self, what: str) -> None:
        self.seen[what] += 1

    def read(self, records: Iterable[Record]) -> None:
        """Count what a record tells."""
        seen = self.seen
        for record in records:
            event = record.event
            if (name := _COUNTED.get(type(event))) is not None:
                seen[name] += 1
            match event:
                case ModelFinished(purpose=purpose):
                    seen[_REPLIES[purpose]] += 1
                case ContextCompacted(number=number):
                    seen["compactions" if number else "squeezes"] += 1
                case ToolFinished(kind=kind):
                    seen[f"results {kind}"] += 1
                case SteerReceived(entered=True):
                    seen["steers entered"] += 1
                case ActorFinished(report=report):
                    seen[f"{report['status']} {report['reason'] or ''}".strip()] += 1
                case _:
                    pass

    def __str__(self) -> str:
        lines = [f"{count:9,} {name}" for name, count in sorted(self.seen.items())]
        return "\n".join([f"{self.seeds:9,} seeds", f"{self.steps:9,} steps of the scheduler", *lines])
