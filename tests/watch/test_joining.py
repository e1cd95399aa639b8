"""Joined live events: fewer of them, and everything a reader could tell is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.events import Event, ModelDelta, Record, ToolOutput, Warned
from runtime.watch.joining import joined

ACTORS = st.sampled_from(["a", "b"])
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        ModelDelta,
        actor=ACTORS,
        kind=st.sampled_from(["text", "arguments"]),
        text=st.text("xyz", max_size=3),
        index=st.integers(0, 1),
        reset=st.sampled_from([False, False, False, True]),
    ),
    st.builds(ToolOutput, actor=ACTORS, call_id=st.sampled_from(["c1", "c2"]), text=st.text("xyz", max_size=3)),
    st.builds(Warned, text=st.text("w", max_size=2)),
)


def heard(records: list[Record]) -> dict[str, list[object]]:
    """What a reader knows of each actor after all: its runs of pieces with what is kept between them."""
    found: dict[str, list[object]] = {"a": [], "b": []}
    for record in records:
        match record.event:
            case ModelDelta() as event:
                key = ("delta", event.kind, event.index)
                _say(found[event.actor], key, event.text, new=event.reset)
            case ToolOutput() as event:
                _say(found[event.actor], ("output", event.call_id), event.text, new=False)
            case kept:
                for each in found.values():
                    each.append((record.seq, kept))
    return found


def _say(said: list[object], key: tuple[object, ...], text: str, *, new: bool) -> None:
    last = said[-1] if said else None
    if not new and isinstance(last, list) and last[0] == key:
        last[1] += text
    else:
        said.append([key, text])


@given(st.lists(EVENTS, max_size=30))
def test_joined_events_say_the_same(events: list[Event]) -> None:
    """Each actor's pieces add up in their order between the same kept events, and these are untouched."""
    records = [Record(number, 0.0, event, number) for number, event in enumerate(events, 1)]
    found = joined(records)
    assert heard(records) == heard(found)
    assert [each for each in records if each.event.kept] == [each for each in found if each.event.kept]
    assert sorted(each.n for each in found) == [each.n for each in found]


def test_many_pieces_become_one() -> None:
    """Pieces of two models that speak at once become one event for each of them."""
    events = [ModelDelta(actor=actor, kind="text", text=f"{number} ") for number in range(100) for actor in "ab"]
    found = joined([Record(7, 0.0, event, number) for number, event in enumerate(events)])
    text = "".join(f"{number} " for number in range(100))
    assert [ModelDelta(actor=actor, kind="text", text=text) for actor in "ab"] == [each.event for each in found]
