"""One run as another is held against: who took part, what each did when, how it ended; folded from its record, pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from runtime.events import (
    ActorFinished,
    ActorStarted,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    PrefixChanged,
    Record,
    RunForked,
    RunImported,
    RunStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from runtime.journal.replay import fold
from runtime.journal.state import ActorState, RunState
from runtime.messages import JsonObject


@attrs.define
class Call:
    """One tool call; times are seconds since the run began, None where it never came to that."""

    call_id: str
    name: str
    arguments: JsonObject | None
    seq: int
    asked_at: float
    started_at: float | None = None
    ended_at: float | None = None
    kind: str = ""
    result: str = ""
    verdict: str = ""


@attrs.define
class Turn:
    """One model call, from its request to its reply or its failure."""

    seq: int
    began_at: float
    ended_at: float | None = None
    finish: str = ""


@attrs.define
class Part:
    """One actor's part in a run."""

    path: str
    agent: str
    definition: str
    prompt: tuple[str, ...]
    tools: tuple[str, ...]
    began_at: float
    ended_at: float | None = None
    turns: list[Turn] = attrs.Factory(list[Turn])
    calls: dict[str, Call] = attrs.Factory(dict[str, Call])
    alerts: list[JsonObject] = attrs.Factory(list[JsonObject])
    """Loop alerts: seq, at, type, why, times."""


@attrs.define
class Portrait:
    """A run. `state` has its numbers, `parts` its actors in the order they began; last heard after `seconds`."""

    id: str
    state: RunState
    parts: dict[str, Part] = attrs.Factory(dict[str, Part])
    seconds: float = 0.0
    origin: str = ""

    @property
    def answer(self) -> str:
        return str(self.report.get("text", ""))

    @property
    def report(self) -> JsonObject:
        return self.state.finished.report if self.state.finished is not None else {}

    def actor(self, path: str) -> ActorState:
        return self.state.actors[path]


def portrait(run_id: str, records: Iterable[Record]) -> Portrait:
    """Fold a whole record, in order."""
    found = Portrait(run_id, RunState(histories=False))
    begun: float | None = None
    for record in records:
        found.state = fold(found.state, record)
        begun = record.at if begun is None else begun
        found.seconds = max(found.seconds, record.at - begun)
        _take(found, record, record.at - begun)
    return found


def _take(found: Portrait, record: Record, at: float) -> None:
    event = record.event
    if isinstance(event, RunForked | RunImported):
        found.origin = event.of
    if isinstance(event, ActorStarted):
        names = tuple(str(tool.get("name", "")) for tool in event.tools)
        found.parts[event.actor] = Part(event.actor, event.agent, event.definition, event.prompt, names, at)
        return
    part = found.parts.get(event.actor)
    if part is None or isinstance(event, RunStarted):
        return
    match event:
        case ModelRequested():
            part.turns.append(Turn(record.seq, at))
        case ModelFinished(finish=finish):
            _end_turn(part, at, finish)
        case ModelRetried():
            _end_turn(part, at, "retried")
        case ToolRequested():
            part.calls[event.call_id] = Call(event.call_id, event.name, event.arguments, record.seq, at)
        case ToolStarted() if event.call_id in part.calls:
            part.calls[event.call_id].started_at = at
        case ToolFinished() if event.call_id in part.calls:
            call = part.calls[event.call_id]
            call.ended_at, call.kind, call.result = at, event.kind, event.result
        case PrefixChanged() if event.prompt is not None:
            part.prompt = event.prompt
        case LoopNudged() | LoopBlocked() | LoopStopped():
            part.alerts.append(
                {"seq": record.seq, "at": at, "type": event.type, "why": event.why, "times": event.times}
            )
        case ActorFinished():
            part.ended_at = at
        case _:
            pass


def _end_turn(part: Part, at: float, finish: str) -> None:
    if part.turns and part.turns[-1].ended_at is None:
        part.turns[-1].ended_at, part.turns[-1].finish = at, finish
