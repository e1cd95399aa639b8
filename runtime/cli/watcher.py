"""What one process shows of its own run: the record folded as it becomes durable, and lines not yet written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs

from runtime.events import (
    ApprovalDecided,
    ApprovalRequested,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelWithdrawn,
    QuestionAnswered,
    QuestionAsked,
    Record,
    ToolFinished,
)
from runtime.journal.replay import fold
from runtime.journal.state import ActorState, RunState

from .card import card, question_card
from .tally import Tally
from .tree import alarming_lines, changed_lines, doing, short
from .visible import visible

KEPT_SAID = 4000
"""Characters of what is said that are kept to be shown."""
Detail: TypeAlias = Literal["none", "questions", "alarms", "changes"]


@attrs.define(eq=False)
class Watcher:
    """`detail` says what becomes a line: nothing, what is asked, what a person must not miss, or every change.

    With `asks`, somebody sits at this terminal and answers: questions are shown in full. With `thinking`, so is what
    the root's model has thought. `take` is called by the journal and must not block; `failure` is the newest model
    call that was given up, `said` the last of what the root says in its turn.
    """

    detail: Detail
    asks: bool = False
    thinking: bool = False
    state: RunState = attrs.Factory(lambda: RunState(histories=False))
    lines: list[str] = attrs.Factory(list[str])
    told: dict[str, Tally] = attrs.Factory(dict[str, Tally])
    speaking: dict[str, str] = attrs.Factory(dict[str, str])
    failure: ModelFailed | None = None
    said: str = ""
    _requested: dict[str, int] = attrs.Factory(dict[str, int])

    def take(self, records: Sequence[Record]) -> None:
        """Kept events, in order."""
        for record in records:
            match record.event:
                case ToolFinished() as event:
                    self._count(event)
                case ModelFailed() as event:
                    self.failure = event
                case ModelRequested() as event:
                    self.speaking.pop(event.actor, None)
                    self._requested[event.actor] = record.seq
                    self._unsay(event.actor)
                case ModelWithdrawn() as event:
                    self._unsay(event.actor)
                case ModelFinished(tool_calls=calls) as event if calls:
                    self._unsay(event.actor)
                case _:
                    pass
            self.state = fold(self.state, record)
            self.lines += self._thought(record) + self._lines(record)

    def _thought(self, record: Record) -> list[str]:
        event = record.event
        if self.thinking and isinstance(event, ModelFinished) and event.actor == self.state.root:
            return thought_lines(event.reasoning)
        return []

    def _lines(self, record: Record) -> list[str]:
        if self.asks and isinstance(record.event, ApprovalRequested):
            return card(record.event).split("\n")
        if self.asks and isinstance(record.event, QuestionAsked):
            return question_card(record.event).split("\n")
        match self.detail:
            case "none":
                return []
            case "questions":
                asked = isinstance(record.event, ApprovalDecided | QuestionAnswered)
                return alarming_lines(self.state, record) if asked else []
            case "alarms":
                return alarming_lines(self.state, record)
            case "changes":
                return changed_lines(self.state, record)

    def hear(self, record: Record) -> None:
        """A live event: what a model is saying."""
        event = record.event
        if isinstance(event, ModelDelta) and record.seq >= self._requested.get(event.actor, 0):
            self.speaking[event.actor] = event.kind
            if event.kind == "text" and event.actor == self.state.root:
                self.said = ("" if event.reset else self.said[-KEPT_SAID:]) + event.text

    def _unsay(self, actor: str) -> None:
        if actor == self.state.root:
            self.said = ""

    def flush(self) -> list[str]:
        """The lines collected since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def still(self, now: float) -> str:
        """What goes on while nothing changes."""
        working = [actor for actor in self.state.actors.values() if actor.status == "running"]
        busy = [actor for actor in working if actor.request is not None or not self._waits_for_child(actor)]
        more = f" and {len(busy) - 2} more" if len(busy) > 2 else ""
        return f"… {', '.join(self._busy(actor, now) for actor in busy[:2]) or 'working'}{more}"

    def _busy(self, actor: ActorState, now: float) -> str:
        name = short(actor.path)
        if actor.request is None:
            return f"{name}: {doing(self.state, actor)}"
        if actor.path in self.speaking:
            return f"{name}: {doing(self.state, actor, speaking=self.speaking[actor.path])}"
        return f"{name} waits for the model, {max(0.0, now - actor.last_at):.0f} s"

    def _waits_for_child(self, actor: ActorState) -> bool:
        return any(self.state.actors[child].status == "running" for child in actor.children)

    def _count(self, event: ToolFinished) -> None:
        actor = self.state.actors.get(event.actor)
        call = actor.calls.get(event.call_id) if actor is not None else None
        tally = self.told.setdefault(event.actor, Tally())
        tally.count(event.name, call.arguments if call is not None else None, event.is_error)


def thought_lines(thought: str) -> list[str]:
    """What a model thought, as lines that are not its answer."""
    return [f"· {line}" for line in visible(thought).strip().split("\n")] if thought.strip() else []
