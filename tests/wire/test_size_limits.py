"""Replies without an end: a server that sends for ever is given up before it fills the memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime import wire
from runtime.model import Delta, ProviderError
from runtime.wire.decoder import BODY_LIMIT, EVENT_LIMIT, TEXT_LIMIT, Decoder

STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
MEGABYTE = 1 << 20


def fed_for_ever(decoder: Decoder, piece: bytes, most: int) -> tuple[int, list[Delta]]:
    """How many bytes a decoder takes of a body that repeats one piece, at most; and what it showed."""
    taken = 0
    deltas: list[Delta] = []
    while not decoder.full and taken <= most:
        deltas += decoder.feed(piece)
        taken += len(piece)
    return taken, deltas


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"data: ", b"a" * MEGABYTE),
        (b": ", b"a" * MEGABYTE),
        (b"", b"data: aa\n" * 100_000),
        (b"", b"data\n" * 100_000),
    ],
    ids=["line", "remark", "lines", "empty lines"],
)
def test_an_event_without_an_end_is_given_up(start: bytes, piece: bytes) -> None:
    """A line or an event that never ends is a protocol error after some megabytes, and is not tried again."""
    decoder = wire.decoder("openai-chat", 200, STREAM)
    decoder.feed(start)
    taken, deltas = fed_for_ever(decoder, piece, 2 * EVENT_LIMIT)
    assert taken <= 1.5 * EVENT_LIMIT
    assert not deltas
    assert decoder.feed(piece) == [], "nothing more is taken in"
    with pytest.raises(ProviderError, match="one event of the stream is larger than 16 MB") as caught:
        decoder.close()
    assert (caught.value.kind, caught.value.retryable) == ("protocol", False)


def test_a_reply_that_streams_without_an_end_is_given_up_with_what_had_arrived() -> None:
    """Whole events without an end are a protocol error once their text is larger than any reply."""
    event = b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": "a" * MEGABYTE}}]}).encode()
    decoder = wire.decoder("openai-chat", 200, STREAM)
    _, deltas = fed_for_ever(decoder, event, 2 * TEXT_LIMIT)
    assert sum(len(delta.text) for delta in deltas) == TEXT_LIMIT + MEGABYTE
    with pytest.raises(ProviderError, match="the reply is larger than 32 MB") as caught:
        decoder.close()
    assert (caught.value.kind, caught.value.retryable) == ("protocol", False)
    assert caught.value.partial is not None


@pytest.mark.parametrize(
    ("start", "piece", "most", "why"),
    [
        (b'{"a": "', b"a" * 4 * MEGABYTE, BODY_LIMIT, "the reply is larger than 128 MB"),
        (b"", b" " * 100_000, MEGABYTE, "begins with more than 1 MB of blanks"),
    ],
    ids=["one string", "blanks"],
)
def test_a_body_without_an_end_is_given_up(start: bytes, piece: bytes, most: int, why: str) -> None:
    """A JSON body that never ends is a protocol error, and so are blanks before a body that never begins."""
    decoder = wire.decoder("openai-chat", 200, JSON)
    decoder.feed(start)
    taken, _ = fed_for_ever(decoder, piece, 2 * most)
    assert taken <= most + 2 * len(piece)
    with pytest.raises(ProviderError, match=why) as caught:
        decoder.close()
    assert (caught.value.kind, caught.value.retryable) == ("protocol", False)


def test_of_an_error_without_an_end_its_beginning_is_enough() -> None:
    """The body of a failure is read for a megabyte only, and its status still tells what failed."""
    decoder = wire.decoder("openai-chat", 503, JSON)
    taken, _ = fed_for_ever(decoder, b"overloaded " * 10_000, 16 * MEGABYTE)
    assert taken <= 2 * MEGABYTE
    with pytest.raises(ProviderError) as caught:
        decoder.close()
    assert caught.value.status == 503
    assert caught.value.retryable


def test_a_reply_that_had_ended_stays_whole_whatever_follows() -> None:
    """What a server sends after the end of a reply spoils nothing, however much it is."""
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": "done"}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\ndata: "
    decoder = wire.decoder("openai-chat", 200, STREAM)
    decoder.feed(body)
    fed_for_ever(decoder, b"a" * MEGABYTE, 2 * EVENT_LIMIT)
    assert decoder.full
    assert decoder.close().finish == "stop"
