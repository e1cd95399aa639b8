"""The log stream: kept events exactly once and in order, whatever the readers do; live ones cheap and bounded."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.events import Gap, ModelDelta, ModelFinished, QuestionAsked, Record, Snapshot, ToolOutput, Warned
from runtime.journal import MemoryJournal
from runtime.model import Delta
from runtime.watch import LogStream, Reader
from runtime.watch.reader import BREATH, PLENTY


def finished(actor: str, text: str) -> ModelFinished:
    return ModelFinished(
        actor=actor,
        turn=0,
        text=text,
        reasoning="",
        tool_calls=(),
        finish="stop",
        usage={},
        cost_usd=None,
        seconds=0.0,
    )


def make(items: int = 4096) -> tuple[MemoryJournal, LogStream]:
    journal = MemoryJournal(clock=lambda: 1.0)
    return journal, LogStream(journal, clock=lambda: 1.0, items=items)


async def drain(reader: Reader) -> list[Record]:
    """Everything a reader can be given without waiting."""
    found: list[Record] = []
    while True:
        with trio.move_on_after(0.001) as scope:
            found += await reader.batch()
        if scope.cancelled_caught:
            return found


def kept(records: list[Record]) -> list[int]:
    return [record.seq for record in records if record.event.kept]


async def test_a_late_reader_gets_the_journal_first_and_then_what_is_live(autojump_clock: MockClock) -> None:
    """A late reader gets the journal first and then what is live, without gap or duplicate."""
    journal, stream = make()
    for number in range(1200):
        journal.append(Warned(text=str(number)))
    journal.flush()
    async with stream.subscribe() as reader:
        journal.append(Warned(text="live"))
        journal.flush()
        assert list(range(1, 1202)) == kept(await drain(reader))


async def test_nothing_is_shown_before_it_is_durable(autojump_clock: MockClock) -> None:
    """An event that was appended is not shown before the barrier."""
    journal, stream = make()
    async with stream.subscribe() as reader:
        journal.append(Warned(text="x"))
        assert await drain(reader) == []
        await journal.barrier()
        assert kept(await drain(reader)) == [1]


async def test_a_reader_that_joins_in_a_turn_gets_the_turn_whole(autojump_clock: MockClock) -> None:
    """A reader that joins in a running turn gets it whole: one delta resets, others for each further kind follow."""
    _, stream = make()
    stream.publish_deltas("a", [Delta("reasoning", "hm"), Delta("text", "He"), Delta("text", "llo")])
    stream.publish_deltas("a", [Delta("text", " you")])
    async with stream.subscribe() as reader:
        stream.publish_deltas("a", [Delta("text", "!")])
        found = [(e.kind, e.text, e.reset) for r in await drain(reader) if isinstance(e := r.event, ModelDelta)]
    assert found == [("reasoning", "hm", True), ("text", "Hello you", False), ("text", "!", False)]


async def test_a_finished_turn_is_not_repeated(autojump_clock: MockClock) -> None:
    """A turn that is over is not given again as a running one."""
    journal, stream = make()
    stream.publish_deltas("a", [Delta("text", "x")])
    journal.append(finished("a", "x"))
    journal.flush()
    async with stream.subscribe() as reader:
        assert [record.seq for record in await drain(reader)] == [1]


async def test_deltas_of_one_wake_up_become_one_event_a_kind(autojump_clock: MockClock) -> None:
    """The deltas of one wake-up are joined where neighbours have the same kind and index."""
    _, stream = make()
    async with stream.subscribe() as reader:
        stream.publish_deltas(
            "a", [Delta("text", "a"), Delta("text", "b"), Delta("arguments", "{", 0), Delta("arguments", "[", 1)]
        )
        found = [(e.kind, e.index, e.text) for r in await drain(reader) if isinstance(e := r.event, ModelDelta)]
    assert found == [("text", 0, "ab"), ("arguments", 0, "{"), ("arguments", 1, "[")]


async def test_a_slow_reader_is_told_what_it_lost(autojump_clock: MockClock) -> None:
    """A slow reader gets every kept event, the number of lost live ones, a snapshot and the turn whole."""
    journal, stream = make(items=10)
    async with stream.subscribe() as reader:
        for number in range(50):
            stream.publish_live(ToolOutput(actor="a", call_id="c", text=str(number)))
            journal.append(Warned(text=str(number)))
            journal.flush()
        stream.publish_deltas("a", [Delta("text", "whole")])
        found = await drain(reader)
    assert list(range(1, 51)) == kept(found)
    tail = [record.event for record in found if not record.event.kept]
    assert isinstance(tail[0], Gap)
    assert tail[0].lost == 51
    assert isinstance(tail[1], Snapshot)
    assert tail[2:] == [ModelDelta(actor="a", kind="text", text="whole", reset=True)]


async def test_a_reader_may_begin_with_a_snapshot(autojump_clock: MockClock) -> None:
    """A reader that wants no history begins with a snapshot of now."""
    journal, stream = make()
    journal.append(Warned(text="old"))
    journal.flush()
    async with stream.subscribe(None) as reader:
        journal.append(Warned(text="new"))
        journal.flush()
        found = await drain(reader)
        journal.append(Warned(text="newer"))
        journal.flush()
        found += await drain(reader)
    assert isinstance(found[0].event, Snapshot)
    assert kept(found) == [3]


async def test_readers_end_when_the_stream_is_closed(autojump_clock: MockClock) -> None:
    """A closed stream gives what is left, then iteration ends."""
    journal, stream = make()
    async with stream.subscribe() as reader:
        journal.append(Warned(text="last"))
        journal.flush()
        stream.close()
        assert [record.seq async for record in reader] == [1]


async def test_a_reader_is_told_a_breath_after_the_first_that_is_new(autojump_clock: MockClock) -> None:
    """What comes one by one costs a reader one wake-up a breath, and none at the moment when somebody is at work."""
    journal, stream = make()
    taken: list[tuple[float, int]] = []
    async with stream.subscribe(breath=BREATH) as reader, trio.open_nursery() as nursery:

        async def read() -> None:
            begin = trio.current_time()
            while records := await reader.batch():
                taken.append((round(trio.current_time() - begin, 6), len(records)))

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(7):
            journal.append(Warned(text=str(number)))
            journal.flush()
            await trio.sleep(0.3 * BREATH)
        stream.close()
    assert taken == [(BREATH, 4), (2 * BREATH, 3)]


async def test_a_question_that_is_there_already_is_told_without_a_breath(autojump_clock: MockClock) -> None:
    """Somebody who is asked while the reader is busy with its last batch is not kept waiting."""
    journal, stream = make()
    async with stream.subscribe(breath=BREATH) as reader:
        begin = trio.current_time()
        for event in (Warned(text="x"), QuestionAsked(actor="a", id="q1", call_id="c1", text="Which?")):
            journal.append(event)
            journal.flush()
        assert len(await reader.batch()) == 2
        assert trio.current_time() == begin


async def test_without_a_breath_no_clock_is_needed(mock_clock: MockClock) -> None:
    """A reader that asks for no breath is told of everything while time stands still."""
    journal, stream = make()
    async with stream.subscribe() as reader:
        for number in range(3):
            journal.append(Warned(text=str(number)))
            journal.flush()
            assert kept(await reader.batch()) == [number + 1]


@pytest.mark.parametrize("urgent", ["plenty", "a question", "the end"])
async def test_a_reader_in_its_breath_is_not_kept_from_what_matters(autojump_clock: MockClock, urgent: str) -> None:
    """Plenty of records, somebody being asked, and the stream's end are told without a breath."""
    journal, stream = make()
    taken: list[tuple[float, int]] = []
    async with stream.subscribe(breath=BREATH) as reader, trio.open_nursery() as nursery:

        async def read() -> None:
            begin = trio.current_time()
            while records := await reader.batch():
                taken.append((trio.current_time() - begin, len(records)))

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        journal.append(Warned(text="first"))
        journal.flush()
        await trio.testing.wait_all_tasks_blocked()
        assert taken == []
        match urgent:
            case "plenty":
                for number in range(PLENTY):
                    journal.append(Warned(text=str(number)))
                journal.flush()
            case "a question":
                journal.append(QuestionAsked(actor="a", id="q1", call_id="c1", text="Which?"))
                journal.flush()
            case _:
                pass
        if urgent != "the end":
            await trio.testing.wait_all_tasks_blocked()
            assert taken == [(0, PLENTY + 1 if urgent == "plenty" else 2)]
        stream.close()
    assert sum(count for _, count in taken) == journal.durable_seq
    assert taken[-1][0] == 0


async def test_the_ring_is_bounded_by_text_too(autojump_clock: MockClock) -> None:
    """A few huge outputs do not stay in memory for a reader that does not read."""
    journal = MemoryJournal(clock=lambda: 1.0)
    stream = LogStream(journal, clock=lambda: 1.0, weight=1000)
    async with stream.subscribe() as reader:
        for _ in range(20):
            stream.publish_live(ToolOutput(actor="a", call_id="c", text="x" * 400))
            assert sum(len(e.text) for r in stream.since(stream.base) if isinstance(e := r.event, ToolOutput)) <= 1000
        assert isinstance((await drain(reader))[0].event, Gap)


async def test_what_every_reader_has_taken_is_not_kept(autojump_clock: MockClock) -> None:
    """The ring holds what the slowest reader has not taken yet, and nothing for readers that are gone."""
    _, stream = make()
    async with stream.subscribe() as fast:
        async with stream.subscribe() as slow:
            for number in range(5):
                stream.publish_live(ToolOutput(actor="a", call_id="c", text=str(number)))
                assert len(await drain(fast)) == 1
            assert len(stream.since(stream.base)) == 5
            assert len(await drain(slow)) == 5
            assert stream.since(stream.base) == []
            stream.publish_live(ToolOutput(actor="a", call_id="c", text="last"))
            await drain(fast)
        assert stream.since(stream.base) == []


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.integers(1, 4)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("deltas"), st.integers(1, 5)),
        st.tuples(st.just("finish"), st.integers(0, 1)),
        st.tuples(st.just("read"), st.integers(0, 2)),
        st.tuples(st.just("read on"), st.integers(0, 8)),
        st.tuples(st.just("drain"), st.integers(0, 2)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(actions=ACTIONS, items=st.integers(1, 8))
def test_kept_events_come_once_and_in_order_whatever_happens(actions: list[tuple[str, int]], items: int) -> None:
    """Kept events come exactly once and in order, `n` rises, and the text of a turn adds up, in any interleaving."""

    async def play() -> None:
        journal, stream = make(items)
        got: list[list[Record]] = [[], [], []]
        said = ""
        async with stream.subscribe() as one, stream.subscribe() as two:
            async with stream.subscribe() as three:
                readers = (one, two, three)
                for action, number in actions:
                    match action:
                        case "keep":
                            for _ in range(number):
                                journal.append(Warned(text=""))
                        case "flush":
                            journal.flush()
                        case "deltas":
                            said += "x" * number
                            stream.publish_deltas("a", [Delta("text", "x")] * number)
                        case "finish":
                            journal.append(finished("a", said))
                            journal.flush()
                            said = ""
                        case "read":
                            with trio.move_on_after(0.001):
                                got[number] += await readers[number].batch()
                        case "read on":  # up to a place of its own, as all watchers of one moment are told the same
                            reader, stop = readers[number % 3], stream.base + number
                            if (found := reader.take(min(stop, stream.end))) is not None:
                                got[number % 3] += found
                                stream.let_go()
                        case _:
                            got[number] += await drain(readers[number])
                journal.flush()
                for number, reader in enumerate(readers):
                    got[number] += await drain(reader)
        for found in got:
            assert list(range(1, journal.last_seq + 1)) == kept(found)
            places = [(record.seq, record.n) for record in found]
            assert places == sorted(set(places))
            shown = ""
            for record in found:
                match record.event:
                    case ModelDelta(text=text, reset=reset):
                        shown = text if reset else shown + text
                    case ModelFinished():
                        shown = ""
                    case _:
                        pass
            assert shown == said

    trio.run(play, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("from_seq", [0, 1, 3, 5, 6, 99])
async def test_reading_begins_where_the_reader_says(autojump_clock: MockClock, from_seq: int) -> None:
    """A reader that reconnects names the first event it wants."""
    journal, stream = make()
    for _ in range(5):
        journal.append(Warned(text=""))
    journal.flush()
    async with stream.subscribe(from_seq) as reader:
        journal.append(Warned(text=""))
        journal.flush()
        assert list(range(min(max(from_seq, 1), 6), 7)) == kept(await drain(reader))
