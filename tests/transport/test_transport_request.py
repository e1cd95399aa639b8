"""Heads of requests that were written once are those h11 would write."""

import h11
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.providers.transport import with_host
from runtime.providers.transport_request import PieceStream, written_head

URL = httpx.URL("http://model.test:8080/v1/chat?a=b")
NAMES = st.sampled_from([b"Authorization", b"x-api-key", b"Accept", b"Connection", b"content-type"])
VALUES = st.from_regex(rb"[!-~]([ -~]{0,20}[!-~])?", fullmatch=True)


def request(headers: list[tuple[bytes, bytes]], body: bytes) -> httpx.Request:
    made = httpx.Request("POST", URL, headers=with_host(URL, headers), stream=httpx.ByteStream(body))
    made.headers["Content-Length"] = str(len(body))
    return made


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5), st.binary(max_size=50))
def test_what_is_sent_is_what_h11_would_send(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Whatever the headers, the bytes are h11's, and so is the answer to whether the connection stays open."""
    made = request(headers, body)
    connection = h11.Connection(h11.CLIENT)
    raw = made.headers.raw
    pieces = [
        connection.send(h11.Request(method=b"POST", target=URL.raw_path, headers=raw)),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    ]
    written = written_head(made)
    assert written is not None
    sent = b"%bContent-Length: %d\r\n\r\n%b" % (written.data, len(body), body)
    assert sent == b"".join(piece or b"" for piece in pieces)
    assert written.keeps == (connection.our_state is h11.DONE)


@pytest.mark.parametrize("value", [b"a\r\nX-Evil: 1", b"a\x00b"])
def test_a_header_that_would_break_the_request_is_refused(value: bytes) -> None:
    """A value with a line break or a zero byte cannot be sent, as with h11."""
    with pytest.raises(h11.LocalProtocolError):
        written_head(request([(b"Authorization", value)], b"{}"))


def test_another_framing_is_left_to_h11() -> None:
    """A request that says itself how its body is framed is not written here."""
    assert written_head(request([(b"Transfer-Encoding", b"chunked")], b"{}")) is None
    assert written_head(httpx.Request("GET", URL, headers=with_host(URL, []))) is None


async def test_a_body_in_pieces_is_sent_whole_and_may_be_sent_again() -> None:
    """The pieces joined are what goes out, each time it is asked for, to a transport that takes them one by one too."""
    body = PieceStream([b'{"a":', b"1", b"}"])
    assert len(body) == 7
    for _ in range(2):
        assert body.whole() == b'{"a":1}'
        assert [piece async for piece in body] == [b'{"a":', b"1", b"}"]
