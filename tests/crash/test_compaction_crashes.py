"""The process dies just before, in or just after a compaction; the next one ends the run as if nothing had been."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from runtime.conversation import checked
from runtime.events import ContextCompacted, Event, ModelFinished, ModelRequested, ToolFinished
from runtime.journal.memory import MemoryJournal
from runtime.journal.replay import replay
from runtime.messages import UserMessage

FULL = bool(os.environ.get("ELENCO_FULL"))
ROUNDS = 14


def pages() -> str:
    """A play whose history outgrows its window: long looks, and an effect in every round."""
    turns = [
        f"  - calls: [{{name: look, arguments: {{at: {'x' * 500}{number}}}}}, "
        f"{{name: stamp, arguments: {{what: form{number}}}}}]\n"
        for number in range(ROUNDS)
    ]
    return f"lead:\n{''.join(turns)}  - all is done\nsummary: [{{repeat: 9, text: '## Goal: look and stamp'}}]\n"


def summaries(events: list[Event]) -> list[int]:
    return [at for at, event in enumerate(events) if isinstance(event, ModelRequested) and event.purpose == "summary"]


def check(play: Any, journal: MemoryJournal, told: list[str]) -> None:
    """Effects once, pairs whole, compactions in their order, the first task and what a person said still there."""
    events = [record.event for record in journal.records]
    stamped = [what for _, what, _ in play.world.done]
    assert sorted(stamped) == sorted(f"form{number}" for number in range(ROUNDS))
    finished = [event.call_id for event in events if isinstance(event, ToolFinished)]
    assert len(finished) == len(set(finished)) == 2 * ROUNDS
    lead = replay(journal.records).actors["lead"]
    checked(lead.history)
    assert [event.number for event in events if isinstance(event, ContextCompacted)] == list(
        range(1, lead.compactions + 1)
    )
    words = [message.text for message in lead.history if isinstance(message, UserMessage) and message.kind != "note"]
    assert words == told
    assert not lead.reservations


async def test_a_window_that_holds_no_two_rounds_ends_the_run_and_says_so(play: Any, dying: Callable[..., Any]) -> None:
    """Where prompt and tools take two thirds of the window, compacting cannot help: the run stops before a request."""
    play.window, play.script = 3_000, pages()
    whole = dying(play.world)
    expected = await play.begin(whole)
    assert (expected.status, expected.reason) == ("stopped", "context_window")
    assert "of 3,000 tokens are taken" in expected.detail
    asked = [record.event for record in whole.records if isinstance(record.event, ModelRequested)]
    assert all(each.estimate <= 3_000 for each in asked if each.purpose == "turn")
    stamped = [what for _, what, _ in play.world.done]
    assert stamped == [f"form{number}" for number in range(len(stamped))]


@pytest.mark.parametrize("window", [4_000] if not FULL else [4_000, 5_000, 6_000])
async def test_a_process_that_dies_around_a_compaction_is_followed_by_one_that_ends_well(
    play: Any, dying: Callable[..., Any], window: int
) -> None:
    """Whichever append around a compaction was the last: no effect twice, no compaction lost or made twice over."""
    play.window, play.script = window, pages()
    whole = dying(play.world)
    expected = await play.begin(whole)
    events = [record.event for record in whole.records]
    compactions = [at for at, event in enumerate(events) if isinstance(event, ContextCompacted)]
    assert (expected.status, expected.text) == ("completed", "all is done"), expected
    assert len(compactions) >= 2
    assert summaries(events)
    told = ["do it", "be quick"]
    check(play, whole, told)
    around = (
        range(summaries(events)[0] - 3, compactions[1] + 4)
        if FULL
        else (
            *range(summaries(events)[0] - 1, next(at for at in compactions if at > summaries(events)[0]) + 3),
            compactions[1],
        )
    )
    for place in around:
        for found in ("all", "durable"):
            play.world.done.clear()
            journal = dying(play.world, place)
            if await play.begin(journal) is not None:
                continue
            left = journal.crash(journal.last_seq - journal.durable_seq if found == "all" else 0)
            report = await play.go_on(left)
            assert report is not None, (place, found)
            assert (report.status, report.text) == ("completed", "all is done")
            check(play, left, told)
            paid = [event for record in left.records if isinstance(event := record.event, ModelFinished)]
            assert sum(event.purpose == "turn" for event in paid) == ROUNDS + 1
