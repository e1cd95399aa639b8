"""Where a response body ends, at every cut of the same bytes."""

import itertools

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.providers.transport_body import Body, BodyUntilClosed, ChunkedBody, SizedBody, body_of

TEXT = b"data: {}\n\n"


def read(body: Body, pieces: list[bytes]) -> bytes:
    """Feed the pieces, as a connection does: nothing after a fault."""
    read = b""
    for piece in pieces:
        if body.fault is None:
            read += body.feed(piece)
    return read


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces, none of them empty."""
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(marks) if a < b]


def read_by_h11(data: bytes) -> bytes:
    """The body as h11 reads it."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + data)
    read = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Data):
            read += event.data
        assert event is not h11.NEED_DATA
    return read


chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
extensions = st.sampled_from([b"", b";", b";a=b", b';q="x"; b', b" ", b"\t"])
trailers = st.sampled_from([b"", b"X-Sum: 12\r\n", b"a:\r\nb: c d\r\n"])
places = st.lists(st.integers(min_value=0, max_value=400), max_size=8)


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    """A chunked body in one of the ways it may be written."""
    written = b""
    for chunk in draw(chunks):
        size = draw(st.sampled_from([b"%x", b"%X", b"00%x"])) % len(chunk)
        written += size + draw(extensions) + b"\r\n" + chunk + b"\r\n"
    return written + b"0" + draw(extensions) + b"\r\n" + draw(trailers) + b"\r\n"


@given(chunked(), places)
@settings(max_examples=150)
def test_a_chunked_body_is_the_same_at_any_cut_and_as_h11_reads_it(data: bytes, places: list[int]) -> None:
    """A chunked body is the same at any cut, and as h11 reads it."""
    body = ChunkedBody()
    assert read_by_h11(data) == read(body, cut(data, places))
    assert (body.is_complete, body.fault, body.surplus) == (True, None, b"")


@given(chunked(), places, st.binary(min_size=1, max_size=30))
@settings(max_examples=100)
def test_what_follows_a_chunked_body_is_surplus(data: bytes, places: list[int], more: bytes) -> None:
    """What follows a chunked body is no part of it, and is noticed."""
    body = ChunkedBody()
    assert read_by_h11(data) == read(body, cut(data + more, places))
    assert body.is_complete
    assert body.surplus or len(cut(data + more, places)) > 1


@given(chunked(), st.integers(min_value=1, max_value=400), places)
@settings(max_examples=100)
def test_a_chunked_body_cut_short_is_a_fault_after_the_data_before(
    data: bytes, missing: int, places: list[int]
) -> None:
    """A chunked body that ends early gives what came, and then a fault."""
    short = data[: max(0, len(data) - missing)]
    body = ChunkedBody()
    whole = read_by_h11(data)
    came = read(body, [*cut(short, places), b""])
    assert whole.startswith(came)
    assert not body.is_complete
    assert body.fault is not None


@pytest.mark.parametrize(
    "bad",
    [
        b"\r\nhello\r\n",
        b"x\r\nhello\r\n",
        b"-5\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b"5_0\r\nhello\r\n",
        b" 5\r\nhello\r\n",
        b"5\nhello\r\n",
        b"5 5\r\nhello\r\n",
        b"5\r\nhello!\r\n",
        b"5\r\nhello\n\n",
        b"5\r\nhell\r\n5\r\n",
        b"1" * 40 + b"\r\n",
        b"5;a=\x00\r\nhello\r\n",
        b"0\r\nno colon\r\n\r\n",
        b"0\r\n bad: x\r\n\r\n",
        b"0\r\na: b\n\r\n",
        b"1" + b";" * 20_000,
        b"0\r\n" + (b"a: " + b"b" * 4000 + b"\r\n") * 20,
    ],
)
def test_a_malformed_chunk_is_a_fault_at_any_cut(bad: bytes) -> None:
    """A malformed chunk is a fault, however it is cut; the chunk before it is delivered."""
    good = b"3\r\nabc\r\n"
    step = 1 if len(bad) < 100 else 4096
    for place in range(len(good), len(good) + len(bad), step):
        body = ChunkedBody()
        came = read(body, [(good + bad)[:place], (good + bad)[place:]])
        assert came.startswith(b"abc")
        assert not body.is_complete
        assert body.fault is not None


@given(st.binary(max_size=50), st.binary(max_size=5), places)
@settings(max_examples=100)
def test_a_sized_body_ends_by_its_length(data: bytes, more: bytes, places: list[int]) -> None:
    """A body with a length is that many bytes, at any cut."""
    body = SizedBody(len(data))
    assert data == read(body, cut(data + more, places))
    assert body.is_complete
    assert body.fault is None


def test_a_sized_body_cut_short_is_a_fault() -> None:
    """A body that ends before its length is a fault."""
    body = SizedBody(5)
    assert body.feed(b"abc") == b"abc"
    assert body.feed(b"") == b""
    assert not body.is_complete
    assert "2 bytes" in (body.fault or "")


def test_a_body_of_no_length_ends_with_the_connection() -> None:
    """Without length or chunks, the end of the stream is the end of the body."""
    body = BodyUntilClosed()
    assert body.feed(b"abc") == b"abc"
    assert not body.is_complete
    assert body.feed(b"") == b""
    assert body.is_complete
    assert body.fault is None


@pytest.mark.parametrize(
    ("method", "status", "headers", "kind", "is_empty"),
    [
        ("GET", 200, [(b"content-length", b"5")], SizedBody, False),
        ("GET", 200, [(b"content-length", b"0")], SizedBody, True),
        ("HEAD", 200, [(b"content-length", b"5")], SizedBody, True),
        ("HEAD", 200, [(b"transfer-encoding", b"chunked")], SizedBody, True),
        ("GET", 204, [(b"content-length", b"5")], SizedBody, True),
        ("GET", 304, [(b"transfer-encoding", b"chunked")], SizedBody, True),
        ("POST", 200, [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")], ChunkedBody, False),
        ("POST", 200, [], BodyUntilClosed, False),
    ],
)
def test_framing_follows_rfc_9112(
    method: str, status: int, headers: list[tuple[bytes, bytes]], kind: type[Body], is_empty: bool
) -> None:
    """The framing of a body is what RFC 9112, section 6.3, says."""
    body = body_of(method, status, dict(headers))
    assert kind is type(body)
    assert is_empty == body.is_complete
