"""What a chat shows of its runs: events folded into entries of a log, live text, and figures; pure.

A conversation is a chain of runs; each has its own state, the log goes on. Live text is kept as its end only: the whole
comes with `model.finished`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import attrs

from runtime.cli.card import brief
from runtime.cli.closing import before_answer, line
from runtime.cli.tally import Tally
from runtime.cli.tree import alarming_lines, changed_lines, short
from runtime.cli.visible import one_line
from runtime.events import (
    ActorFinished,
    ActorStarted,
    ApprovalRequested,
    FileChanged,
    Gap,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    Record,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolOutput,
    ToolRequested,
    ToolStarted,
)
from runtime.journal.replay import fold
from runtime.journal.state import ActorState, RunState
from runtime.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResults,
    Usage,
    UserMessage,
)
from runtime.record import messages_from_json, report_from_json

LIVE = 6000
"""Characters of a text under way that are kept: more do not fit on a screen."""
OUTPUT = 4000


@attrs.frozen
class Said:
    """A human's words to the agent."""

    text: str


@attrs.frozen
class Thought:
    """What the model thought before it spoke."""

    text: str


@attrs.frozen
class Spoke:
    """A reply of the model, or its words beside calls."""

    text: str


@attrs.frozen
class Called:
    """A tool call. `kind` is waiting, running, or that of its result; `output` is the end of what it prints."""

    call_id: str
    name: str
    arguments: JsonObject | None
    kind: str = "waiting"
    result: str = ""
    output: str = ""
    seconds: float = 0.0
    diffs: tuple[str, ...] = ()


@attrs.frozen
class Told:
    """A line of the runtime: what a person should not miss, or how a turn ended."""

    text: str
    kind: Literal["alarm", "end", "note"] = "alarm"


Entry: TypeAlias = Said | Thought | Spoke | Called | Told


@attrs.define(eq=False)
class Tail:
    """The end of a growing text, in constant time for each piece."""

    longest: int
    pieces: list[str] = attrs.Factory(list[str])
    size: int = 0
    total: int = 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.size += len(text)
        self.total += len(text)
        if self.size > 2 * self.longest:
            self.pieces = [str(self)]
            self.size = len(self.pieces[0])

    def clear(self) -> None:
        self.pieces.clear()
        self.size = self.total = 0

    def __str__(self) -> str:
        return "".join(self.pieces)[-self.longest :]


@attrs.define(eq=False)
class Log:
    """The entries of one actor, and the places of those that have changed since somebody has looked."""

    entries: list[Entry] = attrs.Factory(list[Entry])
    changed: set[int] = attrs.Factory(set[int])
    calls: dict[str, int] = attrs.Factory(dict[str, int])

    def add(self, entry: Entry) -> None:
        self.changed.add(len(self.entries))
        self.entries.append(entry)

    def set(self, place: int, entry: Entry) -> None:
        self.entries[place] = entry
        self.changed.add(place)

    def flush(self) -> list[int]:
        found = sorted(self.changed)
        self.changed.clear()
        return found


@attrs.define(eq=False)
class View:
    """Everything the chat shows. `take` is given each record once, in order; `begin` names the run they are of.

    `log` is the conversation with the root, `logs` hold the other actors'. `spent` is what earlier runs of this sitting
    have used, with its cost (None once a price was unknown).
    """

    run: str = ""
    state: RunState = attrs.Factory(lambda: RunState(histories=False))
    log: Log = attrs.Factory(Log)
    logs: dict[str, Log] = attrs.Factory(dict[str, Log])
    text: Tail = attrs.Factory(lambda: Tail(LIVE))
    reasoning: Tail = attrs.Factory(lambda: Tail(LIVE))
    thought: str = ""
    speaking: dict[str, str] = attrs.Factory(dict[str, str])
    told: dict[str, Tally] = attrs.Factory(dict[str, Tally])
    outputs: dict[str, Tail] = attrs.Factory(dict[str, Tail])
    deltas: int = 0
    context: int = 0
    answer: str = ""
    spent: Usage = Usage()
    spent_usd: float | None = 0.0
    failure: ModelFailed | None = None
    _requested: dict[str, int] = attrs.Factory(dict[str, int])

    def begin(self, run: str) -> None:
        """The records that follow are of another run: a turn of the same conversation."""
        self.spent, self.spent_usd = self.usage, self.cost_usd
        self.run, self.state = run, RunState(histories=False)
        self.failure = None
        for each in (self._requested, self.told, self.outputs):
            each.clear()
        self._silence()

    def take(self, record: Record) -> None:
        """One event, kept or live."""
        event = record.event
        if not event.kept:
            self._hear(record)
            return
        if record.seq <= self.state.seq:
            return
        self.state = fold(self.state, record)
        self._show(record)

    @property
    def usage(self) -> Usage:
        return self.spent + self.state.usage

    @property
    def cost_usd(self) -> float | None:
        now = self.state.cost_usd
        return None if now is None or self.spent_usd is None else self.spent_usd + now

    @property
    def root(self) -> ActorState | None:
        return self.state.actors.get(self.state.root)

    def log_of(self, actor: str) -> Log:
        """An actor's own log; the root's is the conversation."""
        if actor in ("", self.state.root):
            return self.log
        return self.logs.setdefault(actor, Log())

    # --- live ------------------------------------------------------------------------------------------------------

    def _hear(self, record: Record) -> None:
        event = record.event
        match event:
            case ModelDelta():
                self.deltas += 1
                if record.seq < self._requested.get(event.actor, 0):
                    return
                self.speaking[event.actor] = event.kind
                if event.actor == self.state.root:
                    self._piece(event)
            case ToolOutput():
                tail = self.outputs.setdefault(event.call_id, Tail(OUTPUT))
                tail.add(event.text)
                log = self.log_of(event.actor)
                place = log.calls.get(event.call_id)
                if place is not None and isinstance(call := log.entries[place], Called):
                    log.set(place, attrs.evolve(call, output=str(tail)))
            case Gap():
                self._silence()  # the turns under way come again, whole
            case _:
                pass

    def _piece(self, event: ModelDelta) -> None:
        if event.reset:
            self._silence()
        match event.kind:
            case "text":
                self.text.add(event.text)
            case "reasoning":
                self.reasoning.add(event.text)
            case _:
                pass

    def _silence(self) -> None:
        self.text.clear()
        self.reasoning.clear()

    # --- kept ------------------------------------------------------------------------------------------------------

    def _show(self, record: Record) -> None:
        event = record.event
        log = self.log_of(event.actor)
        is_root = log is self.log
        match event:
            case RunStarted():
                if (not self.log.entries and event.continues is None) or self.log.entries:
                    self.log.add(Said(event.task))
            case ActorStarted(parent=None):
                if not self.log.entries:
                    self._recall(messages_from_json(event.history))
                    self.log.add(Said(event.task))
            case ActorStarted():
                log.add(Said(event.task))
                self._lines(record)
            case ModelRequested():
                self._requested[event.actor] = record.seq
                self.speaking.pop(event.actor, None)
                if is_root:
                    self._silence()
                    self.thought = ""
            case ModelFinished():
                if event.purpose != "summary":
                    self._spoke(log, event.reasoning, event.text)
                if is_root and event.purpose != "summary":
                    self._silence()
                    self.thought = event.reasoning
                    self.answer = event.text or self.answer
                    self.context = int(event.usage.get("input", 0)) + int(event.usage.get("output", 0))
            case ModelWithdrawn() | ModelFailed() | ModelRetried():
                if is_root:
                    self._silence()
                if isinstance(event, ModelFailed):
                    self.failure = event
                self._lines(record)
            case ToolRequested():
                log.calls[event.call_id] = len(log.entries)
                log.add(Called(event.call_id, event.name, event.arguments))
            case ToolStarted() | ToolFinished() | FileChanged():
                self._call(log, event)
            case ActorFinished():
                if not is_root:
                    self._lines(record)
            case ApprovalRequested():
                what = one_line(f"{event.name}  {brief(event.arguments)}", 100)
                self.log.add(Told(f"? {short(event.actor)} asks ({event.id})  {what}"))
            case RunFinished():
                self._ended(event)
            case _:
                self._lines(record)

    def _lines(self, record: Record) -> None:
        """What a person should not miss, whoever it is about; a child's beginning and end are told as well."""
        found = alarming_lines(self.state, record)
        if isinstance(record.event, ActorStarted | ActorFinished):
            found = changed_lines(self.state, record)
        for text in found:
            self.log.add(Told(text))

    def _spoke(self, log: Log, reasoning: str, text: str) -> None:
        if reasoning.strip():
            log.add(Thought(reasoning))
        if text.strip():
            log.add(Spoke(text))

    def _call(self, log: Log, event: ToolStarted | ToolFinished | FileChanged) -> None:
        place = log.calls.get(event.call_id)
        call = log.entries[place] if place is not None else None
        if place is None or not isinstance(call, Called):
            return
        match event:
            case ToolStarted():
                call = attrs.evolve(call, kind="running")
            case FileChanged():
                call = attrs.evolve(call, diffs=(*call.diffs, event.diff))
            case ToolFinished():
                self.outputs.pop(event.call_id, None)
                self._count(event, call)
                call = attrs.evolve(call, kind=event.kind, result=event.result, output="", seconds=event.seconds)
        log.set(place, call)

    def _count(self, event: ToolFinished, call: Called) -> None:
        self.told.setdefault(event.actor, Tally()).count(event.name, call.arguments, event.is_error)

    def _ended(self, event: RunFinished) -> None:
        report = report_from_json(event.report)
        self._silence()
        if above := before_answer(report, self.state):
            self.log.add(Told(above))
        if report.text.strip() and report.text.strip() != self.answer.strip():
            self.log.add(Spoke(report.text))
            self.answer = report.text
        model = self.state.started.model if self.state.started is not None else ""
        self.log.add(Told(line(report, self.run, model, self.state, self.state.seconds, self.failure), "end"))

    def _recall(self, history: Iterable[Message]) -> None:
        """What was said before, as the run that goes on with it begins."""
        for message in history:
            match message:
                case UserMessage(kind="task" | "steer"):
                    self.log.add(Said(message.text))
                case UserMessage():
                    pass
                case AssistantMessage():
                    self._recall_reply(message)
                case ToolResults():
                    for result in message.results:
                        place = self.log.calls.get(result.call_id)
                        if place is not None and isinstance(call := self.log.entries[place], Called):
                            self.log.set(place, attrs.evolve(call, kind=result.kind, result=result.content))

    def _recall_reply(self, message: AssistantMessage) -> None:
        for part in message.parts:
            match part:
                case Reasoning() if part.text.strip():
                    self.log.add(Thought(part.text))
                case Text() if part.text.strip():
                    self.log.add(Spoke(part.text))
                    self.answer = part.text
                case ToolCall():
                    self.log.calls[part.id] = len(self.log.entries)
                    self.log.add(Called(part.id, part.name, part.arguments))
                case _:
                    pass


def last_thought(history: Iterable[Message]) -> str:
    """What the model thought before its last reply, nothing where it did not."""
    thought = ""
    for message in history:
        if isinstance(message, AssistantMessage):
            thought = "\n".join(part.text for part in message.parts if isinstance(part, Reasoning))
    return thought
