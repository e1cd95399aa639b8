"""What a process does with the record another one left: nothing is paid, asked or done twice, and nothing invented."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.app import Resumption
from runtime.errors import JournalError, UsageError
from runtime.events import (
    ActorFinished,
    ApprovalDecided,
    ApprovalRequested,
    BudgetReserved,
    BudgetSettled,
    CancelRequested,
    Event,
    LoopBlocked,
    LoopNudged,
    LoopStopped,
    ModelFinished,
    ModelRequested,
    NoteAdded,
    PrefixChanged,
    Record,
    ToolFinished,
    ToolStarted,
    Warned,
)
from runtime.journal.memory import MemoryJournal
from runtime.journal.replay import replay
from runtime.limits.limits import Limits
from runtime.messages import ToolResults
from runtime.resume import limits_after
from runtime.tools import tool
from runtime.words import UNKNOWN

ONE_STAMP = """
    lead:
      - calls: [{name: stamp, arguments: {what: letter}}]
      - done
"""


def cut(records: Iterable[Record], last: Callable[[Event], bool], *more: Event) -> MemoryJournal:
    """What a process leaves that died right after the first such event, and what was recorded since."""
    found: list[Record] = []
    for record in records:
        found.append(record)
        if last(record.event):
            break
    else:
        raise AssertionError("no such event")
    for event in more:
        found.append(Record(len(found) + 1, 0.0, event))
    return MemoryJournal(found)


def of(journal: MemoryJournal, kind: type[Event], actor: str | None = None) -> list[Any]:
    events = [record.event for record in journal.records]
    return [event for event in events if isinstance(event, kind) and actor in (None, event.actor)]


def starts(name: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, ToolStarted) and event.name == name


@pytest.fixture
def whole(play: Any) -> Callable[[str], Any]:
    """The record of an undisturbed run of a script."""

    async def make(script: str) -> MemoryJournal:
        play.script, play.line = script, ""
        journal = MemoryJournal()
        assert await play.begin(journal) is not None
        return journal

    return make


# --- calls that may have taken effect ----------------------------------------------------------------------------


async def test_a_once_call_without_a_result_is_told_and_not_repeated(play: Any, whole: Any) -> None:
    """A call that was started and has no result: the model reads that it may have taken effect; nothing is repeated."""
    journal = cut((await whole(ONE_STAMP)).records, starts("stamp"))
    await play.go_on(journal)
    (finished,) = of(journal, ToolFinished)
    assert (UNKNOWN, "unknown", True) == (finished.result, finished.kind, finished.is_error)
    assert 1 == len(play.world.done)
    results = replay(journal.records).actors["lead"].history[2]
    assert isinstance(results, ToolResults)
    assert results.results[0].content == UNKNOWN


async def test_an_idempotent_call_is_made_again_under_the_same_id(play: Any, whole: Any) -> None:
    """A call that may run twice does, with the id it had."""
    journal = cut((await whole(ONE_STAMP.replace("stamp", "put"))).records, starts("put"))
    await play.go_on(journal)
    assert [("put", "letter", "a0t0c0")] * 2 == play.world.done
    assert ["ok"] == [event.kind for event in of(journal, ToolFinished)]


@pytest.mark.parametrize(
    ("found", "kind", "effects"),
    [
        ("it is stamped", "ok", 1),
        (True, "ok", 1),
        (False, "ok", 2),
        (None, "unknown", 1),
        (ValueError("broken"), "unknown", 1),
    ],
)
async def test_a_probe_tells_what_became_of_a_call(
    play: Any, whole: Any, found: object, kind: str, effects: int
) -> None:
    """A tool that brings a check: what took effect keeps its result, what did not is run, else nobody knows."""
    original = await whole(ONE_STAMP)

    async def check(arguments: Any) -> object:
        assert arguments == {"what": "letter"}
        if isinstance(found, Exception):
            raise found
        return found

    play.tools["stamp"] = attrs.evolve(play.tools["stamp"], check=check)
    journal = cut(original.records, starts("stamp"))
    await play.go_on(journal)
    (finished,) = of(journal, ToolFinished)
    assert (kind, effects) == (finished.kind, len(play.world.done))
    if isinstance(found, str):
        assert found == finished.result


@pytest.mark.parametrize(("answer", "effects"), [("allow", 2), ("deny", 1)])
async def test_a_human_may_say_what_becomes_of_a_call(play: Any, whole: Any, answer: str, effects: int) -> None:
    """With confirm_unknown a human is asked: yes runs the call again, no leaves it unknown with the human's words."""
    journal = cut((await whole(ONE_STAMP)).records, starts("stamp"))
    play.confirm_unknown, play.answer, play.why = True, answer, "I saw it on the letter"
    await play.go_on(journal)
    (asked,) = of(journal, ApprovalRequested)
    assert ("unclear", "stamp") == (asked.about, asked.name)
    (finished,) = of(journal, ToolFinished)
    assert effects == len(play.world.done)
    if answer == "deny":
        assert (f"{UNKNOWN}\nada says: I saw it on the letter", "unknown") == (finished.result, finished.kind)


async def test_the_word_on_an_unclear_call_is_used_once(play: Any, whole: Any) -> None:
    """A yes that was given while no process ran counts at the next resume, and not for a further interruption."""
    play.confirm_unknown = True
    journal = cut((await whole(ONE_STAMP)).records, starts("stamp"))
    await play.go_on(journal)
    (asked,) = of(journal, ApprovalRequested)
    yes = ApprovalDecided(actor="lead", id=asked.id, decision="allow", by="bob")
    play.confirm_unknown = False
    waiting = cut(journal.records, lambda event: event == asked, yes)
    again = cut((await after(play, waiting)).records, second(starts("stamp")))
    assert [asked] == of(again, ApprovalRequested)
    play.world.done.clear()
    await play.go_on(again)
    (finished,) = of(again, ToolFinished)
    assert ("unknown", []) == (finished.kind, play.world.done)


async def after(play: Any, journal: MemoryJournal) -> MemoryJournal:
    assert await play.go_on(journal) is not None
    return journal


def second(matches: Callable[[Event], bool]) -> Callable[[Event], bool]:
    seen: list[Event] = []

    def last(event: Event) -> bool:
        if matches(event):
            seen.append(event)
        return len(seen) == 2

    return last


# --- approvals ---------------------------------------------------------------------------------------------------

TWO_CHARGES = """
    lead:
      - calls: [{name: delegate_to_worker, arguments: {task: one}}, {name: delegate_to_worker, arguments: {task: two}}]
      - done
    worker-1: [{calls: [{name: charge, arguments: {what: one}}]}, one]
    worker-2: [{calls: [{name: charge, arguments: {what: two}}]}, two]
"""


async def two_asked(play: Any) -> MemoryJournal:
    """A record in which two children wait for a human."""
    play.script = TWO_CHARGES
    journal = MemoryJournal()
    left = journal
    with trio.CancelScope() as scope:
        async with play.opened(journal) as live:
            while len(live.approvals.pending) < 2:
                await trio.testing.wait_all_tasks_blocked()
            await trio.testing.wait_all_tasks_blocked()
            journal.flush()
            left = journal.crash()
            scope.cancel()
    assert 2 == len(of(left, ApprovalRequested))
    return left


def decided(asked: ApprovalRequested, decision: str) -> ApprovalDecided:
    return ApprovalDecided(actor=asked.actor, id=asked.id, decision=decision, by="bob")


async def test_decisions_made_in_reverse_find_their_calls(play: Any) -> None:
    """Two calls wait; decided in reverse order while no process runs, each decision goes to its own call."""
    left = await two_asked(play)
    one, two = of(left, ApprovalRequested)
    for asked, word in ((two, "deny"), (one, "allow")):
        left.append(decided(asked, word))
    assert await play.go_on(left) is not None
    assert [one.arguments["what"]] == [what for _, what, _ in play.world.done]
    kinds = {event.call_id: event.kind for event in of(left, ToolFinished) if event.name == "charge"}
    assert {one.call_id: "ok", two.call_id: "refused"} == kinds


async def test_one_decision_lets_its_call_go_on_and_the_other_waits(play: Any) -> None:
    """Only one of two is decided: its call runs, the other question stays open under its id."""
    left = await two_asked(play)
    one, two = of(left, ApprovalRequested)
    left.append(decided(two, "allow"))
    async with play.opened(left, Resumption(replay(left.records), Limits())) as live:
        async with live.stream.subscribe(1) as reader:
            async for record in reader:
                if isinstance(record.event, ModelRequested) and record.event.turn == 1:
                    break
        assert [one] == list(live.approvals.pending)
        with pytest.raises(UsageError, match="a2 was decided before: allow, by bob"):
            await live.approvals.decide(two.id, "allow", "bob")
        await live.approvals.decide(one.id, "allow", "bob")
        await live.report()
    assert {"one", "two"} == {what for _, what, _ in play.world.done}
    assert 2 == len(play.world.done)


async def test_of_two_decisions_at_once_one_wins(play: Any) -> None:
    """Two people decide at the same moment: one is told that it is too late, and the call runs once or not at all."""
    play.script = ONE_STAMP.replace("stamp", "charge")
    journal = MemoryJournal()
    late: list[str] = []
    async with play.opened(journal) as live:
        async with live.stream.subscribe(1) as reader:
            async for record in reader:
                if isinstance(record.event, ApprovalRequested):
                    break

        async def decide(word: str) -> None:
            try:
                await live.approvals.decide("a1", word, "ada")
            except UsageError:
                late.append(word)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(decide, "allow")
            nursery.start_soon(decide, "deny")
        await live.report()
    (winner,) = of(journal, ApprovalDecided)
    assert {"allow", "deny"} == {winner.decision, *late}
    assert (1 if winner.decision == "allow" else 0) == len(play.world.done)


async def test_a_commit_that_fails_while_all_wait_for_a_human_ends_the_run(play: Any) -> None:
    """Nobody works, and the record cannot be written any more: the run ends with the error, it does not wait on."""
    play.script = ONE_STAMP.replace("stamp", "charge")
    journal = MemoryJournal()

    async def waiting() -> None:
        async with play.opened(journal) as live:
            while not live.approvals.pending:
                await trio.testing.wait_all_tasks_blocked()
            journal.fail("broken disk")
            await live.report()

    with trio.fail_after(5), pytest.raises(JournalError, match="broken disk"):
        await waiting()


# --- what is kept ------------------------------------------------------------------------------------------------


async def test_the_guard_stops_a_loop_at_the_same_call_as_without_a_crash(play: Any, whole: Any) -> None:
    """The guard goes on counting where it stood: a process that dies in a loop does not make the loop longer."""
    script = "lead: [{repeat: 40, calls: [{name: look, arguments: {at: door}}]}]"
    original = await whole(script)
    expected = len(of(original, ToolFinished))
    words = [(event.type, event.why) for event in of(original, LoopNudged) + of(original, LoopBlocked)]
    assert of(original, LoopStopped)
    for place in range(4, original.last_seq, 3):
        journal = MemoryJournal(original.records[:place])
        report = await play.go_on(journal)
        assert ("stopped", "loop") == (report.status, report.reason), place
        assert expected == len(of(journal, ToolFinished)), place
        assert words == [(event.type, event.why) for event in of(journal, LoopNudged) + of(journal, LoopBlocked)], place


async def test_a_reply_is_paid_for_once_and_what_nobody_settled_in_full(play: Any, whole: Any) -> None:
    """The record of a resumed run sums up to what was spent; a call under way at the crash is charged as reserved."""
    original = await whole(ONE_STAMP)
    undisturbed = replay(original.records).usage
    journal = cut(original.records, lambda event: isinstance(event, ToolStarted))
    report = await play.go_on(journal)
    assert undisturbed.output == report.usage.output == replay(journal.records).usage.output
    reserved = next(event for event in of(original, BudgetReserved))
    journal = cut(original.records, lambda event: isinstance(event, ModelRequested))
    report = await play.go_on(journal)
    settled = of(journal, BudgetSettled)[0]
    assert (reserved.input, reserved.output_cap) == (settled.usage["input"], settled.usage["output"])
    assert undisturbed.output + reserved.output_cap == report.usage.output == replay(journal.records).usage.output
    assert 2 == report.steps == replay(journal.records).steps


async def test_the_clock_goes_on_from_what_it_showed(play: Any, autojump_clock: MockClock) -> None:
    """Time an earlier process worked counts: a timeout is not made longer by a crash."""
    play.limits, play.line = Limits(timeout=120), ""
    play.script = "lead: [{repeat: 2, stall: 50, calls: [{name: look, arguments: {at: x}}]}, {stall: 50, text: done}]"
    journal = MemoryJournal()
    report = await play.begin(journal)
    assert ("stopped", "deadline") == (report.status, report.reason)
    journal = cut(journal.records, lambda event: isinstance(event, ModelRequested) and event.turn == 1)
    report = await play.go_on(journal)
    assert ("stopped", "deadline") == (report.status, report.reason)


LAST_TURN = """
    lead: [{calls: [{name: delegate_to_helper, arguments: {task: x}}]}, done]
    helper: [{calls: [{name: stamp, arguments: {what: form}}]}, my best]
"""


async def test_a_last_turn_is_taken_once(play: Any, whole: Any) -> None:
    """Died while the last turn was asked for, or just after it was given: it is neither lost nor asked for again."""
    original = await whole(LAST_TURN)
    helper = "lead/helper-1"
    (report,) = [event.report for event in of(original, ActorFinished, helper)]
    assert ("stopped", "max_steps") == (report["status"], report["reason"])
    moments: list[Callable[[Event], bool]] = [
        lambda event: isinstance(event, NoteAdded) and event.actor == helper,
        lambda event: isinstance(event, ModelFinished) and event.purpose == "wrap_up",
        lambda event: isinstance(event, ActorFinished) and event.actor == helper,
    ]
    for last in moments:
        journal = cut(original.records, last)
        assert (await play.go_on(journal)).text == "done"
        (again,) = [event.report for event in of(journal, ActorFinished, helper)]
        assert {**report, "usage": 0} == {**again, "usage": 0}
        assert 2 == len(of(journal, ModelFinished, helper))
        assert 1 == len(of(journal, NoteAdded, helper))


async def test_a_run_that_was_wrapping_up_goes_on_with_more_room(play: Any, whole: Any) -> None:
    """Died in its last turn and resumed with more steps, an agent goes on with its work."""
    play.limits = Limits(max_steps=2)
    original = await whole("lead: [{calls: [{name: put, arguments: {what: x}}]}, {text: so far, calls: []}, all of it]")
    journal = cut(original.records, lambda event: isinstance(event, NoteAdded))
    report = await play.go_on(journal, max_steps="+5")
    assert ("completed", "so far") == (report.status, report.text)
    journal = cut(original.records, lambda event: isinstance(event, ActorFinished))
    report = await play.go_on(journal, max_steps="+5")
    assert ("completed", "all of it") == (report.status, report.text)


async def test_an_agent_goes_on_as_it_began_unless_told_otherwise(play: Any, whole: Any) -> None:
    """Prompt and tools are those on record; a changed file is told, and taken when the resume says so, for good."""
    original = await whole(ONE_STAMP)
    begun = replay(original.records).actors["lead"]
    play.voice = "You are somebody else."
    requests: list[Any] = []
    play.listen = requests.append
    journal = cut(original.records, starts("stamp"))
    await play.go_on(journal)
    assert begun.prompt == requests[-1].system
    (warned,) = of(journal, Warned)
    assert "goes on as it began: prompt of" in warned.text
    journal = cut(original.records, starts("stamp"))
    play.refresh = True
    await play.go_on(journal)
    (changed,) = of(journal, PrefixChanged)
    assert "You are somebody else." == changed.prompt[0] == requests[-1].system[0]
    play.refresh = False
    again = cut(journal.records, lambda event: isinstance(event, PrefixChanged))
    await play.go_on(again)
    assert [] == of(again, Warned)
    assert "You are somebody else." == requests[-1].system[0]


async def test_tools_on_record_are_offered_as_they_were(play: Any, whole: Any) -> None:
    """A tool that has another description now is offered under the one the run began with."""
    original = await whole(ONE_STAMP)

    @tool(effects="once")
    async def stamp(what: str, colour: str = "red") -> str:
        """Stamp in a colour."""
        return f"{colour} {what}"

    play.tools["stamp"] = stamp
    requests: list[Any] = []
    play.listen = requests.append
    journal = cut(original.records, starts("stamp"))
    await play.go_on(journal)
    (offered,) = [each for each in requests[-1].tools if each.name == "stamp"]
    assert "Stamp something, once." == offered.description
    assert "tools of" in of(journal, Warned)[0].text


# --- cancel, and others ------------------------------------------------------------------------------------------


async def test_a_cancel_that_was_recorded_meanwhile_is_carried_out(play: Any, whole: Any) -> None:
    """A cancel of the run, or of one actor, recorded while no process ran: the next process carries it out."""
    original = await whole(ONE_STAMP)
    journal = cut(original.records, starts("stamp"), CancelRequested(actor="lead", by="bob"))
    report = await play.go_on(journal)
    assert ("cancelled", "cancelled by bob") == (report.status, report.detail)
    original = await whole(TWO_CHARGES)
    cancelled = CancelRequested(actor="lead/worker-1", by="bob")
    journal = cut(original.records, lambda event: isinstance(event, ApprovalRequested), cancelled)
    assert (await play.go_on(journal)).status == "completed"
    (finished,) = of(journal, ActorFinished, "lead/worker-1")
    assert "cancelled" == finished.report["status"]


async def test_a_cancelled_run_can_go_on(play: Any, whole: Any) -> None:
    """A run that was cancelled and is resumed goes on; the old cancel does not end it again, nor after a crash."""
    original = await whole(ONE_STAMP)
    journal = cut(original.records, starts("stamp"), CancelRequested(actor="lead", by="bob"))
    assert (await play.go_on(journal)).status == "cancelled"
    ended = journal.records
    journal = MemoryJournal(ended)
    assert (await play.go_on(journal)).text == "done"
    for place in range(len(ended) + 1, journal.last_seq):
        again = MemoryJournal(journal.records[:place])
        assert (await play.go_on(again)).text == "done", place


async def test_a_record_that_went_on_meanwhile_is_not_taken_over(play: Any, whole: Any) -> None:
    """A process that looked at the record before another one went on with it must not go on from what it saw."""
    journal = cut((await whole(ONE_STAMP)).records, starts("stamp"))
    state = replay(journal.records)
    await play.go_on(journal)
    before = list(play.world.done)
    with pytest.raises(JournalError, match="has gone on in another process"):
        async with play.opened(journal, Resumption(state, limits_after(state, {}))):
            pass
    assert before == play.world.done
