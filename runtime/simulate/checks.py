"""What must hold when a life of the process is over, and when the run has ended. Each raises AssertionError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from runtime.agent import Agent
from runtime.conversation import checked
from runtime.events import (
    ActorFinished,
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetRefused,
    Event,
    MessageReceived,
    ModelFinished,
    ModelRequested,
    NoteAdded,
    QuestionAsked,
    Record,
    RunFinished,
    RunResumed,
    RunWaiting,
    SteerReceived,
    ToolFinished,
)
from runtime.journal.state import ActorState, RunState
from runtime.limits.budget import Spent
from runtime.messages import AssistantMessage, ToolResults, UserMessage
from runtime.resume import NOT_TAKEN_UP
from runtime.run import Run

from .audit import Audit
from .hands import Hands
from .people import People
from .store import Store
from .world import World

MOST_EQUAL_CALLS = 9
"""The loop guard stops the seventh equal call without news; two more may be refused on the way."""
BLINK = 0.2


def after_life(
    run: Run, agents: Mapping[str, Agent], spent: Mapping[str, Spent], store: Store, state: RunState, people: People
) -> None:
    """The process has come to an end of its own: the record gives back all that the actors and the ledger knew."""
    assert store.durable == store.records, "something was never committed"
    seqs = [record.seq for record in store.records]
    shown = len(people.seqs) if run.suspending else len(seqs)  # a decision may come when all readers are gone
    assert people.seqs == seqs[:shown], f"the stream has a gap or a duplicate: {people.seqs} of {len(seqs)}"
    pending = sorted(run.waits_for)
    assert pending == sorted(state.pending), f"open questions: {pending} live, {sorted(state.pending)} on record"
    for path, agent in agents.items():
        _same_history(agent, state.actors[path])
    for path, amount in spent.items():
        _same_spending(amount, path, state)
    if run.suspending:
        assert run.live, "suspended with nobody alive"
        assert any(isinstance(record.event, RunWaiting) for record in store.records), "suspended without a word"
        return
    assert not run.live, f"still alive: {list(run.live)}"
    assert not run.waiting, "a run that has ended does not wait"
    assert not run.gate.ledger.waiting, "somebody still waits for the budget"
    for path in agents:
        assert not run.gate.ledger.is_open(path), f"{path} has ended and is still in the ledger"


def _same_history(agent: Agent, state: ActorState) -> None:
    conversation = agent.history.conversation
    live, replayed = conversation.messages, tuple(state.history)
    if conversation.open_calls and not state.judged and isinstance(replayed[-1], ToolResults):
        replayed = replayed[:-1]  # taken up with all its results, and not looked at by the guard before it ended again
    for place, (mine, recorded) in enumerate(zip(live, replayed, strict=False)):
        assert mine == recorded, f"message {place} of {agent.path} is\n  {mine}\nand on record\n  {recorded}"
    assert len(live) == len(replayed), f"{agent.path} has {len(live)} messages, {len(replayed)} on record"
    checked(live)
    if state.report is not None:
        assert not conversation.open_calls, f"{agent.path} ended with calls that have no result"
    assert [queued.text for queued in conversation.queued] == [steer.text for steer in state.steers.values()]


def _same_spending(amount: Spent, path: str, state: RunState) -> None:
    subtree = state.subtree(path)
    usage = sum((actor.usage for actor in subtree[1:]), subtree[0].usage)
    assert amount.usage == usage, f"{path} has used {amount.usage}, on record {usage}"
    assert amount.steps == subtree[0].steps, f"{path}: {amount.steps} steps, {subtree[0].steps} on record"
    for name in ("steps", "tool_calls"):
        live = amount.total_steps if name == "steps" else amount.tool_calls
        recorded = sum(getattr(actor, name) for actor in subtree)
        assert live == recorded, f"{path} and below: {live} {name}, {recorded} on record"
    assert amount.children == len(subtree) - 1, f"{path}: {amount.children} children, {len(subtree) - 1} on record"
    costs = [actor.cost_usd for actor in subtree]
    if amount.cost_usd is None or None in costs:
        assert amount.cost_usd is None
        assert None in costs
    else:
        assert abs(amount.cost_usd - sum(cost for cost in costs if cost is not None)) < 1e-9
    report = subtree[0].report
    assert report is None or report["steps"] == amount.steps


def at_the_end(world: World, records: Sequence[Record], state: RunState, hands: Hands, told: Mapping[str, str]) -> None:
    """The run has ended: limits held, nothing is open, nothing ran twice, nobody's words were lost."""
    audit = Audit(honest=world.honest)
    audit.read(records)
    audit.close()
    assert state.phase == "ended"
    assert not state.pending, f"still asked: {list(state.pending)}"
    allowed = _told_to_repeat(records)
    twice = {key: count for key, count in hands.done.items() if count > 1 + allowed[key]}
    assert not twice, f"took effect more than once: {twice}"
    events = [record.event for record in records]
    for actor in state.actors.values():
        checked(actor.history)
        assert not actor.calls, f"{actor.path} ended with calls that have no result"
        _ended_for_a_reason(world, actor)
        _not_in_circles(world, actor, events)
    _words_were_heard(events, state, told)
    _reports_arrived_once(events, state)
    _last_turns_were_kept(world, events)
    _in_time(world, records)


def _told_to_repeat(records: Sequence[Record]) -> Counter[str]:
    """How often a human said of a call that may have taken effect: run it again. By call, and by its key."""
    asked: dict[str, ApprovalRequested] = {}
    told: Counter[str] = Counter()
    for record in records:
        match record.event:
            case ApprovalRequested(about="unclear") as event:
                asked[event.id] = event
            case ApprovalDecided(decision="allow", id=id) if id in asked:
                told[asked[id].call_id] += 1
                told[asked[id].arguments["key"]] += 1
                told[asked[id].arguments["key"] + "-edited"] += 1
            case _:
                pass
    return told


def _ended_for_a_reason(world: World, actor: ActorState) -> None:
    report = actor.report
    assert report is not None
    detail = report["detail"]
    if report["status"] == "failed":
        known = ("it did not work", "empty answer", "a fault of its own", "crashed")
        assert any(each in detail for each in known), f"{actor.path} failed: {detail}"
    if world.patient:
        assert report["reason"] != "deadline", f"{actor.path} was stopped by the clock while people were waited for"


def _not_in_circles(world: World, actor: ActorState, events: Sequence[Event]) -> None:
    """The same call to a tool that always answers the same, over and over, is stopped in every actor.

    Somebody who speaks, or wants more of a run that had ended, begins the count anew; a history does not always show
    the latter.
    """
    definition = next(each for each in world.agents if each.name == actor.agent)
    if definition.loops == "off":
        return
    equal = 0
    for message in actor.history:
        match message:
            case AssistantMessage(calls=(call,)) if call.name == "wall" and call.arguments == {"at": 1}:
                equal += 1
            case AssistantMessage() | UserMessage(kind="steer"):
                equal = 0
            case UserMessage(text=text) if text.startswith("There is room to go on"):
                equal = 0
            case _:
                pass
        told = f"{actor.path} made the same call {equal} times in a row"
        assert equal <= MOST_EQUAL_CALLS or _equal_since_wanted(actor.path, events) <= MOST_EQUAL_CALLS, told


def _equal_since_wanted(path: str, events: Sequence[Event]) -> int:
    """The longest row of that call between two moments at which more was wanted of the run."""
    longest = equal = 0
    ended = False
    for event in events:
        match event:
            case RunFinished():
                ended = True
            case RunResumed() if ended:
                ended, equal = False, 0
            case SteerReceived(actor=of, entered=True) if of == path:
                equal = 0
            case ModelFinished(actor=of, purpose="turn", tool_calls=calls) if of == path:
                asked = [(call["name"], call["arguments"]) for call in calls]
                equal = equal + 1 if asked == [("wall", {"at": 1})] else 0
                longest = max(longest, equal)
            case _:
                pass
    return longest


def _words_were_heard(events: Sequence[Event], state: RunState, told: Mapping[str, str]) -> None:
    entered = {event.id for event in events if isinstance(event, SteerReceived) and event.entered}
    for id, path in told.items():
        status = state.actors[path].status
        report = state.actors[path].report or {}
        excused = status in ("cancelled", "failed") or report.get("reason") == "context_window"
        assert id in entered or excused, f"{path} {status} and never heard {id}"


def _reports_arrived_once(events: Sequence[Event], state: RunState) -> None:
    """The report of a background child reaches its parent once: as a message, or as the result of one call."""
    done = {event.call_id for event in events if isinstance(event, ToolFinished) and event.kind != "interrupted"}
    arrived: Counter[str] = Counter()
    places: set[tuple[str, str]] = set()
    for event in events:
        if isinstance(event, MessageReceived) and (not event.call_id or event.call_id in done):
            place = (event.sender, event.call_id)
            arrived[event.sender] += not event.call_id or place not in places
            places.add(place)
    for actor in state.actors.values():
        if not actor.background or actor.parent is None:
            continue
        if actor.report is not None and actor.report["detail"] == NOT_TAKEN_UP:
            continue  # the call that began it was interrupted before it could go on
        count, parent = arrived[actor.path], state.actors[actor.parent]
        assert count <= 1, f"the report of {actor.path} arrived {count} times"
        assert count or parent.status != "completed", f"{parent.path} completed without the report of {actor.path}"
    starts = {event.call_id for event in events if isinstance(event, ToolFinished) and "has started." in event.result}
    known = {actor.call_id for actor in state.actors.values()}
    assert starts <= known, f"told to have started, and never seen: {starts - known}"


def _last_turns_were_kept(world: World, events: Sequence[Event]) -> None:
    """An actor that a limit ends has its last turn, but for what nobody could foresee: words, or a wrong count."""
    if not world.honest:
        return
    excused: set[str] = set()
    asked: set[str] = set()
    wrapping: set[str] = set()
    for event in events:
        match event:
            case RunResumed():
                excused |= asked
                wrapping.clear()
            case ModelRequested(purpose="turn"):
                asked.add(event.actor)
                excused.discard(event.actor)
                wrapping.discard(event.actor)
            case NoteAdded(why="wrap_up"):
                wrapping.add(event.actor)
            case NoteAdded() | ModelRequested(purpose="wrap_up"):
                wrapping.discard(event.actor)  # the hold is for one attempt
            case BudgetRefused() if event.actor in wrapping & asked - excused:
                raise AssertionError(f"no last turn for {event.actor}: {event.message}")
            case _:
                pass


def _in_time(world: World, records: Sequence[Record]) -> None:
    """Where nobody is waited for and the process lives on, no actor outlives a deadline of its own or above it."""
    waits = ApprovalRequested | QuestionAsked | ActorHeld | RunResumed
    if not world.undisturbed or any(isinstance(record.event, waits) for record in records):
        return
    ends: dict[str, float] = {}
    for record in records:
        match record.event:
            case ActorStarted() as event:
                timeout = event.limits.get("timeout")
                end = record.at + timeout if timeout is not None else float("inf")
                ends[event.actor] = min(end, ends.get(event.parent or "", float("inf")))
            case ActorFinished(actor=path):
                late = record.at - ends[path]
                assert late < BLINK, f"{path} ended {late:.1f} s after its deadline"
            case _:
                pass
