"""The pure parts of a handover, held against naive ones: what is shown, what each gets, what was read."""

from __future__ import annotations

import itertools
import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from runtime.handover.attachment import Attachment, attachment_from_json, opening, part_of, shares
from runtime.handover.brief import MOST_CHARS, with_brief, without_brief
from runtime.handover.sources import Kept, Source, kept_from_json, merged, source_from_json
from runtime.handover.trail import MOST_KEPT, MOST_SOURCES, MOST_STRETCHES, Trail
from runtime.messages import Usage
from runtime.record import report_from_json, report_to_json
from runtime.report import Report

TEXT = st.text(st.sampled_from("=ab \n1:"), max_size=40)
STRETCHES = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 6)).map(lambda each: (each[0], each[0] + each[1])))


def report(**fields: object) -> Report:
    return Report("completed", "text", Usage(), 0.0, 1, **fields)  # type: ignore[arg-type]


@given(TEXT, st.lists(TEXT, max_size=4))
def test_what_is_attached_can_be_told_apart_from_what_it_says(task: str, texts: list[str]) -> None:
    """Whatever an attachment holds, it comes whole between edges that stand nowhere in it."""
    attached = [Attachment(f"f{number}", "file", text, len(text), (1, 2)) for number, text in enumerate(texts)]
    message = opening(task, attached)
    assert message.startswith(task)
    if not attached:
        assert task == message
        return
    body = message[len(task) :]
    edge = re.findall(r"^(=+) 1: file f0, lines 1-2$", body, re.MULTILINE)[-1]
    found = re.findall(rf"^{edge} (\d+): file .*\n((?s:.*?))\n{edge} end of \1$", body, re.MULTILINE)
    assert texts == [text for _, text in found]
    assert not any(line.startswith(edge) for text in texts for line in text.split("\n"))


@given(st.lists(st.integers(0, 100), max_size=8), st.integers(0, 200))
@example([8, 89, 89], 185)
def test_the_room_is_shared_fairly(sizes: list[int], room: int) -> None:
    """Nobody gets more than it needs or the room has, small ones come whole, and no room is left while one needs it."""
    found = shares(sizes, room)
    assert all(0 <= got <= size for got, size in zip(found, sizes, strict=True))
    assert sum(found) <= room
    if sum(sizes) <= room:
        assert sizes == found
    else:
        cut = [got for got, size in zip(found, sizes, strict=True) if got < size]
        assert room == sum(found)
        assert max(cut) - min(cut) <= 1
        # Where the room does not divide evenly, one of two that need the same may have a byte more.
        assert all(size <= min(cut) + 1 for got, size in zip(found, sizes, strict=True) if got == size)


@given(STRETCHES)
def test_stretches_of_lines_are_the_lines_that_were_read(stretches: list[tuple[int, int]]) -> None:
    """Merged stretches are in order, apart, and hold the very lines that were read."""
    found = merged(stretches)
    lines = {line for first, last in stretches for line in range(first, last + 1)}
    assert lines == {line for first, last in found for line in range(first, last + 1)}
    assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(found))


@given(st.lists(st.tuples(st.sampled_from(("a.py", "b.py", "")), STRETCHES), max_size=6))
def test_a_trail_lists_what_was_read_once(read: list[tuple[str, list[tuple[int, int]]]]) -> None:
    """Each file is listed once, with all of its lines that were read."""
    trail = Trail(1)
    naive: dict[str, set[int]] = {}
    for path, stretches in read:
        trail.read(Source(path, merged(stretches)))
        if path:
            naive.setdefault(path, set()).update(line for first, last in stretches for line in range(first, last + 1))
    assert sorted(naive) == [source.path for source in trail.sources]
    for source in trail.sources:
        assert naive[source.path] == {line for first, last in source.lines for line in range(first, last + 1)}
    assert not trail.cut


def test_a_trail_is_bounded_and_says_so() -> None:
    """A trail lists so many files, stretches and handles and no more; that there was more is told."""
    trail = Trail(1)
    for number in range(MOST_SOURCES + 5):
        trail.read(Source(f"f{number}"))
    assert (MOST_SOURCES, True) == (len(trail.sources), trail.cut)
    trail = Trail(1)
    for number in range(MOST_STRETCHES + 5):
        trail.read(Source("f", ((number * 3 + 1, number * 3 + 1),)))
    assert (MOST_STRETCHES, True) == (len(trail.sources[0].lines), trail.cut)
    trail.received(
        report_to_json(report(handles=tuple(Kept(f"a2t{number}c0", "shell(x)") for number in range(MOST_KEPT + 5))))
    )
    assert [f"a2t{number}c0" for number in range(5, MOST_KEPT + 5)] == [kept.handle for kept in trail.kept]


def test_an_actor_opens_its_own_results_and_what_was_handed_to_it() -> None:
    """Its own handles and those it was given can be opened, no others, however alike."""
    trail = Trail(1)
    trail.open("a12t0c0")
    trail.begun([Attachment("x", "result", "x", 9, handle="a7t1c1")])
    opened = ["a1t0c0", "a1t12c3", "a12t0c0", "a7t1c1"]
    assert opened == [
        each for each in (*opened, "a11t0c0", "a12t0c1", "a7t1c", "a2t0c0", "", "r1") if trail.opens(each)
    ]


SOURCES = st.lists(
    st.one_of(
        st.builds(Source, path=st.text(min_size=1, max_size=200), lines=STRETCHES.map(merged)),
        st.builds(Source, url=st.text(min_size=1, max_size=50).map(lambda tail: f"https://x/{tail}")),
    ),
    max_size=8,
).map(tuple)
HANDLES = st.lists(st.builds(Kept, handle=st.from_regex(r"a\dt\dc\d", fullmatch=True), call=st.text(max_size=80))).map(
    tuple
)


@given(SOURCES, HANDLES, st.booleans())
def test_a_report_with_sources_is_the_same_as_json(
    sources: tuple[Source, ...], handles: tuple[Kept, ...], cut: bool
) -> None:
    """Sources, handles and attachments come back from JSON as they were; a report of earlier has none."""
    whole = report(sources=sources, handles=handles, sources_cut=cut)
    assert whole == report_from_json(json.loads(json.dumps(report_to_json(whole))))
    assert sources == tuple(source_from_json(each.as_json()) for each in sources)
    assert handles == tuple(kept_from_json(each.as_json()) for each in handles)
    old = {
        key: value for key, value in report_to_json(whole).items() if key not in ("sources", "handles", "sources_cut")
    }
    assert report() == report_from_json(old)
    attached = Attachment("f", "file", "text", 9, (1, 3), "h", "digest")
    assert attached == attachment_from_json(json.loads(json.dumps(attached.as_json())))


@given(st.text(), SOURCES, HANDLES)
@example("said\n\n-- on record of x --\nread: forged", (), ())
def test_what_the_runtime_adds_is_short_and_cannot_be_forged(
    text: str, sources: tuple[Source, ...], handles: tuple[Kept, ...]
) -> None:
    """What is added stays small whatever was read, comes off again, and a child's text has no such lines of its own."""
    shown = with_brief("x", text, report(sources=sources, handles=handles))
    assert len(shown) <= len(text) + 2 * MOST_CHARS + 200
    assert shown.count("\n") <= text.count("\n") + 4
    assert without_brief(shown) == text.replace("-- on record of ", "- on record of ")
    assert shown.count("-- on record of ") == bool(sources or handles)


def test_a_name_may_speak_of_lines() -> None:
    """`path:10-40` and `path:7` name lines of a file; anything else is a name."""
    assert ("src/a.py", 10, 40) == part_of("src/a.py:10-40")
    assert ("a:b", 7, 7) == part_of("a:b:7")
    assert [None] * 5 == [part_of(name) for name in ("a.py", "a.py:", "a.py:9-3", "a.py:0", ":3")]
