"""Server-sent events: every rule of the standard, at every cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.sse import Event, EventStream

RULES: list[tuple[bytes, list[Event]]] = [
    (b"data: a\n\n", [("", "a")]),
    (b"data: a\r\n\r\n", [("", "a")]),
    (b"data: a\r\r", [("", "a")]),
    (b"data: a\r\n\ndata: b\n\r\r\n", [("", "a"), ("", "b")]),
    (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
    (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    (b"data:a\n\ndata:  b\n\n", [("", "a"), ("", " b")]),
    (b": comment\n:\ndata: a\n: between\ndata: b\n\n", [("", "a\nb")]),
    (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), ("", "b")]),
    (b"event: x\n\ndata: b\n\n", [("", "b")]),
    (b"id: 1\ndata: a\n\n\n\nid: 2\n\nretry: 5\n\n", [("", "a")]),
    (b"data\n\ndata:\n\ndata: \n\n", []),
    (b"data\ndata\n\n", []),
    (b"plain text\nunknown: field\ndata: a\n\n", [("", "a")]),
    (b" data: a\n\n", []),
    ("data: a\u2028b\u2029c\x85d\x0be\x0cf\n\n".encode(), [("", "a\u2028b\u2029c\x85d\x0be\x0cf")]),
    (b"data: \xff\xfe\n\n", [("", "\ufffd\ufffd")]),
    (b'error: {"code":400}\n\ndata: [DONE]\n\n', [("error", '{"code":400}'), ("", "[DONE]")]),
    (b"data: whole\n\ndata: cut", [("", "whole")]),
]


def events_of(chunks: list[bytes]) -> list[Event]:
    stream = EventStream()
    return [event for chunk in chunks for event in stream.feed(chunk)]


@pytest.mark.parametrize(("body", "expected"), RULES)
def test_events_follow_the_standard_at_every_cut(body: bytes, expected: list[Event]) -> None:
    """A body gives the events the standard says, whole, byte by byte and cut in two anywhere."""
    assert events_of([body]) == expected
    assert events_of([body[i : i + 1] for i in range(len(body))]) == expected
    for place in range(len(body)):
        assert events_of([body[:place], body[place:]]) == expected


def test_an_event_without_its_blank_line_is_handed_out_at_the_end_only() -> None:
    """What the end of the body left unfinished comes from close, once."""
    stream = EventStream()
    assert stream.feed(b"event: x\ndata: a") == []
    assert stream.close() == [("x", "a")]
    assert stream.close() == []


def naive(body: bytes) -> list[Event]:
    """The standard's own words, over the whole text at once."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    events: list[Event] = []
    data: list[str] = []
    name = ""
    for line in lines:
        field, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if "\n".join(data).strip(" \t\n\x0b\x0c\r"):
                events.append((name, "\n".join(data)))
            data, name = [], ""
        elif colon and not field:
            continue
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return events


WORDS = [
    b"data: ",
    b"data:",
    b"data",
    b"event: ",
    b": ",
    b"id: 1",
    b"\n",
    b"\r",
    b"\r\n",
    b"{}",
    b"x",
    b"\xc3\xa9",
    b"\xef\xbb\xbf",
]


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.lists(st.integers(0, 120), max_size=6))
def test_any_body_in_any_cut_gives_what_the_whole_text_gives(words: list[bytes], places: list[int]) -> None:
    """Whatever the bytes and the cuts, the events are those of a naive reading of the whole text."""
    body = b"".join(words)
    cuts = sorted({min(place, len(body)) for place in places})
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert events_of(chunks) == naive(body)
