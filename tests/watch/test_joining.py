"""Joined live events: fewer of them, and everything a reader could tell is the same."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.events import Event, ModelDelta, Record, ToolOutput, Warned
from runtime.journal import MemoryJournal
from runtime.model import Delta, DeltaKind
from runtime.watch import LogStream, Reader
from runtime.watch.joining import Turn

ACTORS = st.sampled_from(["a", "b"])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        ModelDelta,
        actor=ACTORS,
        kind=st.sampled_from(["text", "arguments"]),
        text=st.text("xyz", max_size=3),
        index=st.integers(0, 1),
    ),
    st.builds(ToolOutput, actor=ACTORS, call_id=st.sampled_from(["c1", "c2"]), text=st.text("xyz", max_size=3)),
    st.builds(Warned, text=st.text("w", max_size=2)),
)
TAKES = st.tuples(st.integers(0, 1), st.integers(0, 9))
"""Which of two readers takes what is new, and how far from the ring's beginning it goes."""


def publish(stream: LogStream, journal: MemoryJournal, event: Event) -> None:
    match event:
        case ModelDelta(actor=actor, text=text, index=index):
            kind: DeltaKind = "arguments" if event.kind == "arguments" else "text"
            stream.publish_deltas(actor, [Delta(kind, text, index)])
        case ToolOutput():
            stream.publish_live(event)
        case _:
            journal.append(event)
            journal.flush()


async def take(reader: Reader) -> list[Record]:
    with trio.move_on_after(0.001):
        return await reader.batch()
    return []


def heard(events: Sequence[Event]) -> dict[str, list[object]]:
    """What a reader knows of each actor after all: its runs of pieces with what is kept between them."""
    found: dict[str, list[object]] = {"a": [], "b": []}
    for event in events:
        match event:
            case ModelDelta():
                _say(found[event.actor], ("delta", event.kind, event.index), event.text)
            case ToolOutput():
                _say(found[event.actor], ("output", event.call_id), event.text)
            case kept:
                for each in found.values():
                    each.append(kept)
    return found


def _say(said: list[object], key: tuple[object, ...], text: str) -> None:
    last = said[-1] if said else None
    if isinstance(last, list) and last[0] == key:
        last[1] += text
    else:
        said.append([key, text])


@settings(max_examples=150, deadline=None)
@given(actions=st.lists(st.one_of(EVENTS, EVENTS, TAKES), max_size=40))
def test_joined_events_say_the_same(actions: list[Event | tuple[int, int]]) -> None:
    """Whenever readers take them, an actor's pieces add up in their order between the same kept events."""

    async def play() -> None:
        journal = MemoryJournal(clock=lambda: 1.0)
        stream = LogStream(journal, clock=lambda: 1.0)
        got: tuple[list[Record], list[Record]] = ([], [])
        async with stream.subscribe() as one, stream.subscribe() as two:
            readers = (one, two)
            for reader in readers:
                await take(reader)
            for action in actions:
                if isinstance(action, Event):
                    publish(stream, journal, action)
                else:
                    number, far = action
                    got[number].extend(readers[number].take(min(stream.base + far, stream.end)) or ())
                    stream.let_go()
            for number, reader in enumerate(readers):
                got[number].extend(await take(reader))
        said = [each for each in actions if isinstance(each, Event)]
        for found in got:
            assert heard(said) == heard([record.event for record in found])
            places = [(record.seq, record.n) for record in found]
            assert places == sorted(set(places))

    trio.run(play, clock=MockClock(autojump_threshold=0))


async def test_many_pieces_become_one(autojump_clock: MockClock) -> None:
    """Pieces of two models that speak at once become one event for each of them, of a bounded number of pieces."""
    journal = MemoryJournal(clock=lambda: 1.0)
    stream = LogStream(journal, clock=lambda: 1.0)
    async with stream.subscribe() as reader:
        await take(reader)
        for number in range(1500):
            for actor in "ab":
                stream.publish_deltas(actor, [Delta("text", f"{number} ")])
        found = [record.event for record in await take(reader)]
    said = [("a", 0, 1000), ("b", 0, 999), ("b", 999, 1500), ("a", 1000, 1500)]
    assert [
        ModelDelta(actor=actor, kind="text", text="".join(f"{number} " for number in range(*part)))
        for actor, *part in said
    ] == found


@given(st.lists(st.lists(st.builds(Delta, st.sampled_from(["text", "arguments"]), st.text("xyz"), st.integers(0, 40)))))
def test_a_turn_under_way_is_what_its_pieces_say(wakes: list[list[Delta]]) -> None:
    """However the pieces came, each kind and index has its whole text, in the order in which they began."""
    turn = Turn()
    model: dict[tuple[DeltaKind, int], str] = {}
    for deltas in wakes:
        turn.add(deltas)
        for delta in deltas:
            model[delta.kind, delta.index] = model.get((delta.kind, delta.index), "") + delta.text
        assert turn.whole() == [Delta(kind, text, index) for (kind, index), text in model.items()]
