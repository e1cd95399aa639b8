"""The head of a response: what is read at once is what h11 reads, at every cut and with whatever is wrong in it."""

import itertools

import h11
import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.providers.transport_head import MOST_INTERIM, Head, HeadReader, read_head
from runtime.providers.transport_request import SOME_REQUEST, fields_of

MOST = 4096
COMMON = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def by_h11(data: bytes) -> tuple[Head, bytes] | None:
    """What h11 says of a final response's head; None where it refuses it or is not done."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST)
    connection.send(SOME_REQUEST)
    connection.receive_data(data)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.Response):
        return None
    headers = event.headers.raw_items()
    head = Head(event.status_code, event.reason, event.http_version, headers, fields_of(event.headers))
    return head, connection.trailing_data[0]


names = st.sampled_from(
    [
        b"content-type",
        b"X-Id",
        b"Content-Length",
        b"content-length",
        b"transfer-encoding",
        b"Connection",
        b"",
        b"a b",
        b"\xe9",
    ]
)
values = st.one_of(
    st.sampled_from([b"5", b"5, 5", b"05", b"+5", b"1" * 21, b"chunked", b"Chunked", b"gzip, chunked", b"identity"]),
    st.sampled_from(
        [b"close", b"keep-alive", b"", b" ", b"x ", b" x", b"\tx", b"a\x00b", b"a\rb", b"caf\xe9", b"a: b"]
    ),
    st.binary(max_size=8),
)
lines = st.tuples(
    names, st.sampled_from([b": ", b":", b" : ", b":  "]), values, st.sampled_from([b"\r\n", b"\r\n", b"\n"])
)
starts = st.sampled_from(
    [b"HTTP/1.1 200 OK\r\n"] * 4
    + [
        b"HTTP/1.1 200 \r\n",
        b"HTTP/1.1 200\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 099 X\r\n",
        b"HTTP/1.1 100 Continue\r\n",
    ]
    + [
        b"HTTP/1.1 404 Not Found\r\n",
        b"HTTP/1.1 999 ?\r\n",
        b"HTTP/1.1 200 OK \r\n",
        b"http/1.1 200 OK\r\n",
        b"HTTP/1.1  200 OK\r\n",
    ]
)


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Heads as servers send them, most with something about them that is not common, and a body's beginning."""
    fields = b"".join(b"".join(line) for line in draw(st.lists(lines, max_size=4)))
    return draw(starts) + fields + b"\r\n" + draw(st.sampled_from([b"", b"5\r\nhello\r\n", b"\r\n"]))


@given(heads())
@example(COMMON + b"rest")
@example(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n")
@example(b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n")
def test_what_is_read_at_once_is_what_h11_reads(data: bytes) -> None:
    """No head is accepted that h11 refuses, and none is read otherwise."""
    if (found := read_head(data, MOST)) is not None:
        head, end = found
        assert by_h11(data) == (head, data[end:])


@given(heads(), st.lists(st.integers(min_value=0, max_value=300), max_size=4))
def test_a_head_may_come_in_any_pieces(data: bytes, places: list[int]) -> None:
    """However it is cut, a head, what follows it and a refusal are the same."""
    reader, head, refused, read = HeadReader(MOST), None, False, 0
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    for start, end in itertools.pairwise(marks):
        if start < end and head is None and not refused:
            read = end
            try:
                head = reader.feed(data[start:end])
            except httpx.RemoteProtocolError:
                refused = True
    whole = by_h11(data)
    if whole is None:
        assert head is None
    else:
        assert (head, reader.surplus + data[read:]) == whole


def test_the_common_head_needs_no_h11() -> None:
    """The form that model servers send is read at once."""
    assert read_head(COMMON, MOST) is not None
    assert read_head(COMMON, len(COMMON) - 1) is None


def test_interim_responses_are_passed_over_up_to_a_number() -> None:
    """A server that never comes to its response does not hold a request for ever."""
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    reader = HeadReader(MOST)
    assert reader.feed(interim * MOST_INTERIM) is None
    found = reader.feed(COMMON)
    assert found is not None
    assert found.status == 200
    with pytest.raises(httpx.RemoteProtocolError, match="expected a response"):
        HeadReader(MOST).feed(interim * (MOST_INTERIM + 1))


def test_a_head_that_is_too_long_is_refused() -> None:
    """In one piece or in many."""
    long = b"HTTP/1.1 200 OK\r\nx: " + b"y" * MOST + b"\r\n\r\n"
    with pytest.raises(httpx.RemoteProtocolError, match="over 4096 bytes"):
        HeadReader(MOST).feed(long)
    pieces, reader = [long[start : start + 100] for start in range(0, len(long), 100)], HeadReader(MOST)
    with pytest.raises(httpx.RemoteProtocolError):
        _ = [reader.feed(piece) for piece in pieces]
