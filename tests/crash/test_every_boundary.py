"""The process dies at every append of a run that has everything in it; each time the next one brings it to its end."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from runtime.conversation import checked
from runtime.events import ApprovalDecided, MessageReceived, ModelFinished, SteerReceived, ToolFinished, ToolStarted
from runtime.journal.memory import MemoryJournal
from runtime.journal.replay import replay
from runtime.messages import ToolResults, UserMessage

FULL = bool(os.environ.get("ELENCO_FULL"))
ONCE = {"charge", "stamp"}


def check(play: Any, journal: MemoryJournal) -> None:
    """What holds for every run that has ended, however often its process died."""
    state = replay(journal.records)
    events = [record.event for record in journal.records]
    assert [record.seq for record in journal.records] == list(range(1, len(events) + 1))
    finished = {event.call_id: event for event in events if isinstance(event, ToolFinished)}
    assert len(finished) == sum(isinstance(event, ToolFinished) for event in events)
    for name, what, call_id in play.world.done:
        if name in ONCE:
            assert 1 == play.world.times(call_id), (name, what, call_id)
        assert any(isinstance(event, ToolStarted) and event.call_id == call_id for event in events)
    for event in finished.values():
        if event.kind == "ok" and event.name in {"charge", "stamp", "put"}:
            assert play.world.times(event.call_id), event
    for actor in state.actors.values():
        checked(actor.history)
        assert actor.status != "running"
        assert not actor.open_calls
        assert not actor.reservations
    replies = Counter((event.actor, event.turn) for event in events if isinstance(event, ModelFinished))
    assert set(replies.values()) == {1}
    received = Counter(event.id for event in events if isinstance(event, MessageReceived))
    assert dict(received) in ({"r3": 1}, {"r3": 2})  # Twice where the call that took it had to be made again.
    lead = state.actors["lead"].history
    results = [each.content for message in lead if isinstance(message, ToolResults) for each in message.results]
    words = [message.text for message in lead if isinstance(message, UserMessage)]
    assert 1 == sum("it is built" in text for text in (*results, *words))
    entered = Counter(event.id for event in events if isinstance(event, SteerReceived) and event.entered)
    assert list(entered.values()) == [1]
    decided = Counter(event.id for event in events if isinstance(event, ApprovalDecided))
    assert set(decided.values()) == {1}


def outcome(report: Any) -> tuple[Any, ...]:
    return (report.status, report.text, report.reason)


async def whole(play: Any, dying: Callable[..., Any]) -> tuple[Any, int]:
    """How it ends when nothing happens, and how many appends that takes."""
    journal = dying(play.world)
    report = await play.begin(journal)
    check(play, journal)
    play.world.done.clear()
    return report, journal.last_seq


async def test_the_play_ends_well(play: Any, dying: Callable[..., Any]) -> None:
    """Undisturbed, the play is completed, and every effect happened."""
    journal = dying(play.world)
    report = await play.begin(journal)
    assert outcome(report) == ("completed", "all is done", None)
    assert Counter(name for name, _, _ in play.world.done) == {"stamp": 3, "charge": 2, "put": 2}
    check(play, journal)


def survivors(place: int) -> list[str]:
    """How much of what was not durable yet is found: nothing, all, or some of it."""
    return ["all", "durable", "some"] if FULL else ["all", "durable"] if place % 3 == 0 else ["all"]


async def test_a_process_that_dies_at_any_append_is_followed_by_one_that_ends_well(
    play: Any, dying: Callable[..., Any], autojump_clock: Any
) -> None:
    """Whichever append was the last, and whatever of it is found: the outcome is that of an undisturbed run."""
    expected, appends = await whole(play, dying)
    chance = random.Random(7)
    for place in range(2, appends + 1):
        for found in survivors(place):
            play.world.done.clear()
            journal = dying(play.world, place)
            if await play.begin(journal) is not None:
                continue  # This time it took fewer appends.
            lost = journal.last_seq - journal.durable_seq
            left = journal.crash({"durable": 0, "all": lost, "some": chance.randint(0, lost)}[found])
            if left.last_seq == 0:
                continue
            report = await play.go_on(left)
            assert report is not None, place
            assert outcome(report) == outcome(expected), place
            check(play, left)


async def test_a_process_that_dies_at_any_barrier_is_followed_by_one_that_ends_well(
    play: Any, dying: Callable[..., Any], autojump_clock: Any
) -> None:
    """Whichever commit failed: nothing that was to come after it has happened, and the next process ends the run."""
    expected, _ = await whole(play, dying)
    for place in range(2, 40, 1 if FULL else 3):
        play.world.done.clear()
        journal = dying(play.world, None, place)
        if await play.begin(journal) is not None:
            break
        left = journal.crash()
        report = await play.go_on(left)
        assert report is not None, place
        assert outcome(report) == outcome(expected), place
        check(play, left)


@pytest.mark.parametrize("seed", range(40 if FULL else 6))
async def test_a_run_whose_processes_die_again_and_again_ends_well(
    play: Any, dying: Callable[..., Any], seed: int, autojump_clock: Any
) -> None:
    """However many processes die one after the other, the last one brings the run to the same end."""
    chance = random.Random(seed)
    journal = dying(play.world, chance.randint(2, 60))
    report = await play.begin(journal)
    deaths = 0
    while report is None:
        deaths += 1
        left = journal.crash(chance.randint(0, journal.last_seq - journal.durable_seq))
        further = chance.randint(2, 40) if deaths < 8 else None
        journal = dying(play.world, further, found=left.records) if left.last_seq else dying(play.world, further)
        report = await (play.go_on(journal) if left.last_seq else play.begin(journal))
    assert outcome(report) == ("completed", "all is done", None)
    check(play, journal)
