"""Our decoder of server-sent events against httpx-sse, on streams both must understand."""

from __future__ import annotations

import httpx
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.wire.sse import EventStream

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1)
NAMES = st.text("abcdefgh_", min_size=1, max_size=8).filter(lambda name: name != "error")


@st.composite
def streams(draw: st.DrawFn) -> str:
    """Blocks of one event each: a name perhaps, a line of data or more, a comment perhaps."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    blocks: list[str] = []
    for _ in range(draw(st.integers(0, 5))):
        lines = [f"event: {draw(NAMES)}"] if draw(st.booleans()) else []
        lines += [f": {draw(WORDS)}"] if draw(st.booleans()) else []
        lines += [f"data: {line}" for line in draw(st.lists(WORDS.filter(str.strip), min_size=1, max_size=3))]
        blocks.append(end.join(lines) + end + end)
    return "".join(blocks)


def ours(data: bytes, cut: int) -> list[tuple[str, str]]:
    stream = EventStream()
    return [*stream.feed(data[:cut]), *stream.feed(data[cut:]), *stream.close()]


def theirs(data: bytes) -> list[tuple[str, str]]:
    response = httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, content=data)
    found = EventSource(response).iter_sse()
    return [("" if sse.event == "message" else sse.event, sse.data) for sse in found]


@settings(max_examples=150)
@given(streams(), st.integers(0, 400))
def test_both_readers_see_the_same_events(text: str, cut: int) -> None:
    """Both readers see the same events in a well-formed stream, wherever ours is cut."""
    data = text.encode()
    assert theirs(data) == ours(data, cut)
