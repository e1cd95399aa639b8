"""The fold of a run's record: the history it gives is the one the agents had, at every event."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.conversation import Conversation, checked
from runtime.events import (
    ActorContinued,
    ActorFinished,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetReserved,
    BudgetSettled,
    CancelRequested,
    ContextCompacted,
    Event,
    LimitsChanged,
    LoopNudged,
    MessageReceived,
    MessageSent,
    ModelFinished,
    ModelRequested,
    ModelWithdrawn,
    NoteAdded,
    PermissionDecided,
    Record,
    RunFinished,
    RunResumed,
    RunStarted,
    RunWaiting,
    SteerReceived,
    ToolFinished,
    ToolOutput,
    ToolRequested,
    ToolStarted,
    Unknown,
)
from runtime.journal import RunState, fold
from runtime.journal.overview import overview
from runtime.journal.replay import replay
from runtime.journal.rows import encode_json
from runtime.journal.state import PastCall, PastNote, PastStep
from runtime.messages import (
    AssistantMessage,
    Reasoning,
    ResultKind,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
)
from runtime.record import calls_to_json, messages_to_json, parts_to_json, report_to_json, usage_to_json
from runtime.report import Report

USAGE = Usage(10, 2)
KINDS: tuple[ResultKind, ...] = ("ok", "error", "interrupted")


def started(path: str, parent: str | None = None, call_id: str | None = None) -> ActorStarted:
    return ActorStarted(
        actor=path,
        agent=path.rpartition("/")[2].partition("-")[0],
        number=0,
        parent=parent,
        task=f"task of {path}",
        model="m/x",
        limits={"max_steps": 9},
        prompt=("prompt",),
        tools=(),
        call_id=call_id,
    )


def replied(path: str, turn: int, message: AssistantMessage, purpose: str = "turn") -> ModelFinished:
    return ModelFinished(
        actor=path,
        turn=turn,
        text=message.text,
        reasoning=message.reasoning,
        tool_calls=calls_to_json(message),
        finish=message.finish,
        usage=usage_to_json(message.usage or USAGE),
        cost_usd=0.25,
        seconds=1.0,
        model=message.model,
        wire=message.wire,
        purpose=purpose,
        parts=parts_to_json(message),
    )


def result(path: str, call_id: str, text: str, kind: ResultKind = "ok") -> ToolFinished:
    return ToolFinished(
        actor=path, call_id=call_id, name="shell", result=text, is_error=kind != "ok", seconds=0.5, kind=kind
    )


def calling(*ids: str, text: str = "") -> AssistantMessage:
    said = (Text(text),) if text else ()
    calls = (ToolCall(id, "shell", {"command": id}) for id in ids)
    return AssistantMessage((*said, *calls), "tool_calls", USAGE, "m/x", "w")


def numbered(events: list[Event]) -> list[Record]:
    return [Record(seq, 100.0 + seq, event) for seq, event in enumerate(events, 1)]


class Player:
    """A naive agent that keeps its Conversation itself and writes down what it does."""

    def __init__(self, path: str, draw: st.DrawFn) -> None:
        self.path = path
        self.draw = draw
        self.events: list[Event] = [started(path)]
        self.conversation = Conversation().add(UserMessage(f"task of {path}"))
        self.histories = [self.conversation.messages]
        self.turn = 0
        self.steps = 0
        self.steered = 0

    def add(self, event: Event) -> None:
        """Write an event down, with the history as it is after it."""
        self.events.append(event)
        self.histories.append(self.conversation.messages)

    def play(self) -> None:
        for _ in range(self.draw(st.integers(0, 4))):
            for _ in range(self.draw(st.integers(0, 2))):
                self.between()
            self.step()

    def between(self) -> None:
        path = self.path
        match self.draw(st.sampled_from(["steer", "note", "message", "compact", "hold", "unknown", "withdrawn"])):
            case "steer":
                self.steered += 1
                id, text = f"s{self.steered}", self.draw(st.text(max_size=5))
                self.add(SteerReceived(actor=path, id=id, text=text))
                self.conversation = self.conversation.add(UserMessage(text, "steer"))
                self.add(SteerReceived(actor=path, id=id, text=text, entered=True))
            case "note":
                self.conversation = self.conversation.add(UserMessage("go on", "note"))
                self.add(NoteAdded(actor=path, text="go on", why="length"))
            case "message":
                self.conversation = self.conversation.add(UserMessage("Message from b:\nhello", "note"))
                self.add(MessageReceived(actor=path, id="m1", sender="b", text="hello"))
            case "compact":
                shorter = (self.conversation.messages[0], UserMessage("summary", "note"))
                self.conversation = self.conversation.replaced(shorter)
                self.add(ContextCompacted(actor=path, before=9, after=2, history=messages_to_json(shorter)))
            case "hold":
                self.add(ActorHeld(actor=path))
                self.add(ActorContinued(actor=path))
            case "unknown":
                self.add(Unknown(actor=path, name="newer", body={"x": 1}))
            case _:
                self.add(ModelRequested(actor=path, turn=self.turn, model="m/x"))
                self.add(ModelWithdrawn(actor=path, turn=self.turn, why="cut"))

    def step(self) -> None:
        draw, path = self.draw, self.path
        ids = [f"t{self.turn}c{number}" for number in range(draw(st.integers(0, 3)))]
        self.add(BudgetReserved(actor=path, id=self.turn, input=10, output_cap=5))
        self.add(ModelRequested(actor=path, turn=self.turn, model="m/x"))
        self.add(BudgetSettled(actor=path, id=self.turn, usage=usage_to_json(USAGE), cost_usd=0.25))
        self.steps += 1
        message = attrs.evolve(calling(*ids, text="said"), finish="tool_calls" if ids else "pause")
        message = attrs.evolve(message, parts=(Reasoning("hm", {"sig": "x"}), *message.parts))
        self.conversation = self.conversation.add(message)
        self.add(replied(path, self.turn, message))
        self.turn += 1
        for id in ids:
            self.add(ToolRequested(actor=path, call_id=id, name="shell", arguments={}))
        results: dict[str, ToolResult] = {}
        for id in draw(st.permutations(ids)):
            if draw(st.booleans()):
                self.add(PermissionDecided(actor=path, call_id=id, verdict="allow", rule="", by=""))
                self.add(ToolStarted(actor=path, call_id=id, name="shell"))
            kind = draw(st.sampled_from(KINDS))
            results[id] = ToolResult(id, "shell", f"result of {id}", kind)
            if len(results) == len(ids):
                self.conversation = self.conversation.settle(results, "")
            self.add(result(path, id, f"result of {id}", kind))
        if draw(st.booleans()) and ids:
            *others, last = (results[id] for id in ids)
            last = attrs.evolve(last, content=f"{last.content}\n\nstop that")
            messages = (*self.conversation.messages[:-1], ToolResults((*others, last)))
            self.conversation = self.conversation.replaced(messages)
            self.add(LoopNudged(actor=path, why="again", call_id=last.call_id, note="stop that"))


@st.composite
def played(draw: st.DrawFn) -> list[Player]:
    players = [Player(path, draw) for path in ("a", "b")]
    for player in players:
        player.play()
    return players


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_the_history_is_the_agents_own_at_every_event(data: st.DataObject) -> None:
    """However two agents' events interleave, each history is the agent's own after every event, and always valid."""
    players = data.draw(played())
    places = {player.path: 0 for player in players}
    by_path = {player.path: player for player in players}
    order = [player.path for player in players for _ in player.events]
    state = RunState()
    for seq, path in enumerate(data.draw(st.permutations(order)), 1):
        player = by_path[path]
        state = fold(state, Record(seq, float(seq), player.events[places[path]]))
        expected = player.histories[places[path]]
        places[path] += 1
        assert tuple(state.actors[path].history) == expected
        assert state.seq == seq
        checked(state.actors[path].history)
    for player in players:
        actor = state.actors[player.path]
        assert (actor.turn, actor.steps) == (player.turn, player.steps)
        assert actor.usage == sum([USAGE] * player.steps, Usage())
        assert actor.cost_usd == 0.25 * player.steps
        assert actor.open_calls == ()
        assert actor.reservations == {}
        replies = [step for step in actor.past if isinstance(step, PastStep)]
        assert len(replies) == player.turn
    encode_json(overview(state))


def test_a_cut_record_shows_what_is_open() -> None:
    """After a crash the state tells finished, started and untouched calls apart, and the unsettled reservation."""
    state = replay(
        numbered(
            [
                RunStarted(task="t", agent="a", model="m", limits={}),
                started("a"),
                replied("a", 0, calling("c0", "c1", "c2")),
                ToolStarted(actor="a", call_id="c0", name="shell"),
                ToolStarted(actor="a", call_id="c1", name="shell"),
                result("a", "c1", "done"),
                BudgetReserved(actor="a", id=7, input=5, output_cap=5),
            ]
        )
    )
    actor = state.actors["a"]
    assert [call.call_id for call in actor.open_calls] == ["c0", "c2"]
    assert [call.call_id for call in actor.unclear_calls] == ["c0"]
    assert actor.calls["c1"].finished == result("a", "c1", "done")
    assert list(actor.reservations) == [7]
    assert isinstance(actor.history[-1], AssistantMessage)
    assert state.phase == "running"


def test_children_are_found_by_the_call_that_began_them() -> None:
    """A delegated child is found again by its parent's call; one whose call has ended runs in the background."""
    events: list[Event] = [
        started("a"),
        replied("a", 0, calling("c0", "c1")),
        started("a/b-1", "a", "c0"),
        started("a/b-2", "a", "c1"),
    ]
    state = replay(numbered(events))
    root, child = state.child_of(None, None), state.child_of("a", "c1")
    assert root is not None
    assert root.path == "a"
    assert child is not None
    assert child.path == "a/b-2"
    assert state.child_of("a", "c9") is None
    assert state.background_of("a") == ()
    assert [actor.path for actor in state.subtree("a")] == ["a", "a/b-1", "a/b-2"]
    state = replay(numbered([*events, result("a", "c0", "started b-1"), result("a", "c1", "started b-2")]))
    assert [actor.path for actor in state.background_of("a")] == ["a/b-1", "a/b-2"]


def test_requests_wait_until_they_are_decided_once() -> None:
    """A request is pending until the first decision; a later one changes nothing; the end of its call takes it away."""
    ask = ApprovalRequested(actor="a", id="a1", call_id="c0", name="shell", arguments={}, why="")
    other = ApprovalRequested(actor="a", id="a2", call_id="c1", name="shell", arguments={}, why="")
    begin: list[Event] = [started("a"), replied("a", 0, calling("c0", "c1")), ask, other, RunWaiting(on=("a1", "a2"))]
    state = replay(numbered(begin))
    assert (state.phase, state.pending_approvals) == ("waiting", (ask, other))
    first = ApprovalDecided(id="a1", decision="deny", by="ada")
    state = replay(numbered([*begin, first, ApprovalDecided(id="a1", decision="allow", by="bob")]))
    assert (state.phase, state.pending_approvals) == ("running", (other,))
    assert state.decisions == {"a1": first}
    state = replay(numbered([*begin, result("a", "c1", "", "interrupted")]))
    assert state.pending_approvals == (ask,)


def test_phases_of_a_run() -> None:
    """A run is held, cancelled, resumed and ended as its events say."""
    begin: list[Event] = [RunStarted(task="t", agent="a", model="m", limits={"max_steps": 5}), started("a")]

    def phase(*events: Event) -> RunState:
        return replay(numbered([*begin, *events]))

    assert phase(ActorHeld(actor="a")).phase == "held"
    assert phase(ActorHeld(), ActorContinued()).phase == "running"
    cancel = CancelRequested(actor="a", by="ada")
    assert phase(cancel).cancel == cancel
    assert phase(cancel, RunResumed()).cancel == cancel
    assert phase(LimitsChanged(limits={"max_steps": 9})).limits == {"max_steps": 9}
    assert phase(LimitsChanged(actor="a", limits={"max_steps": 9})).actors["a"].limits == {"max_steps": 9}
    report = report_to_json(Report("stopped", "x", Usage(), None, 1, "loop"))
    ended = phase(ActorFinished(actor="a", report=report), RunFinished(report=report))
    assert (ended.phase, ended.actors["a"].status) == ("ended", "stopped")
    again = phase(cancel, ActorFinished(actor="a", report=report), RunFinished(report=report), RunResumed())
    assert (again.phase, again.cancel, again.actors["a"].report) == ("running", None, None)


def test_messages_are_delivered_once() -> None:
    """A message that was sent and not received is still to be delivered."""
    sent = MessageSent(actor="a", id="m1", to="b", text="hello")
    received = MessageReceived(actor="b", id="m1", sender="a", text="hello")
    events: list[Event] = [started("a"), started("b", "a"), sent]
    assert replay(numbered(events)).undelivered == {"m1": sent}
    assert replay(numbered([*events, received])).undelivered == {}


def test_the_guard_learns_its_past() -> None:
    """What the loop guard saw comes back in order and survives compaction."""
    events: list[Event] = [
        started("a"),
        replied("a", 0, calling("c0", text="look")),
        result("a", "c0", "same", "error"),
        ContextCompacted(actor="a", before=9, after=1, history=messages_to_json([UserMessage("sum", "note")])),
        NoteAdded(actor="a", text="go on", why="length"),
        SteerReceived(actor="a", id="s", text="hey", entered=True),
    ]
    call = PastCall("shell", {"command": "c0"}, "same", True, 0.5)
    assert replay(numbered(events)).actors["a"].past == [
        PastStep("look", (call,), 103.0),
        PastNote("compaction"),
        PastNote("continuation"),
        PastNote("user_message"),
    ]


def test_watching_needs_no_histories() -> None:
    """Without histories everything else is the same, and no message is kept."""
    events: list[Event] = [started("a"), replied("a", 0, calling("c0")), result("a", "c0", "x")]
    state = replay(numbered(events), histories=False)
    assert state.actors["a"].history == []
    assert state.actors["a"].past == []
    assert overview(state) == overview(replay(numbered(events)))


def live() -> Iterator[Record]:
    yield Record(5, 1.0, ToolOutput(actor="a", call_id="c", text="x"), 1)
    yield Record(5, 1.0, ToolOutput(actor="z", call_id="c", text="x"), 2)


def test_what_is_not_kept_changes_nothing() -> None:
    """Live events, and events of actors nobody knows, change nothing."""
    state = replay(numbered([started("a")]))
    for record in live():
        state = fold(state, record)
    assert state == replay(numbered([started("a")]))
    fold(state, Record(2, 1.0, result("ghost", "c", "x")))
    assert list(state.actors) == ["a"]


def test_clocks_stand_while_all_wait_and_while_there_is_no_process() -> None:
    """What an actor's clock shows is the time in which somebody worked, whatever stands between two processes."""
    report = report_to_json(Report("completed", "x", Usage(), None, 1))
    ask = ApprovalRequested(actor="a/b", id="a1", call_id="c0", name="shell", arguments={}, why="")
    asked = ModelRequested(actor="a/b", turn=0, model="m")

    def clocks(now: float, *events: tuple[float, Event]) -> list[float]:
        begun: list[tuple[float, Event]] = [
            (0, RunStarted(task="t", agent="a", model="m", limits={})),
            (0, started("a")),
            (2, started("a/b", "a", "c9")),
        ]
        state = replay([Record(seq, at, event) for seq, (at, event) in enumerate([*begun, *events], 1)])
        return [state.clock(actor, now) for actor in state.actors.values()]

    assert clocks(5) == [5, 3]
    waits: list[tuple[float, Event]] = [(3, ask), (4, RunWaiting(on=("a1",)))]
    assert clocks(900, *waits) == [4, 2]
    goes_on = [*waits, (904.0, ApprovalDecided(id="a1", decision="allow", by="ada"))]
    assert clocks(905, *goes_on) == [5, 3]
    assert clocks(2001, *goes_on, (2000, RunResumed())) == [5, 3]
    assert clocks(901, (3, asked), (900, RunResumed())) == [4, 2]
    told = attrs.evolve(asked, elapsed=7.0)
    assert clocks(901, (3, asked), (900, told)) == [901, 8]
    ended: list[tuple[float, Event]] = [
        (5, ActorFinished(actor="a/b", report=report, elapsed=2.5)),
        (6, ActorFinished(actor="a", report=report)),
        (6, RunFinished(report=report)),
    ]
    assert clocks(900, *ended) == [6, 2.5]
    assert clocks(901, *ended, (900, RunResumed())) == [7, 2.5]
