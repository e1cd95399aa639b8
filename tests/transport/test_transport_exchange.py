"""One exchange after the other over our transport: framing, cuts, reuse. The network is in memory."""

import gc
from collections.abc import AsyncIterator

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.providers.transport import DirectTransport, Timeouts, client, open_stream
from runtime.providers.transport_testing import MemoryNetwork, MemoryPeer

URL = httpx.URL("http://model.test/v1/chat")
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    b"9\r\ndata: 1\n\n\r\n12;x=y\r\ndata: 2\n\ndata: 3\n\n\r\n0\r\nX-Sum: 1\r\n\r\n"
)
EVENTS = b"data: 1\n\ndata: 2\n\ndata: 3\n\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
EMPTY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def read(response: httpx.Response) -> bytes:
    """The whole body."""
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return b"".join([piece async for piece in response.stream])


async def fetch(transport: httpx.AsyncBaseTransport, method: str = "POST", content: bytes = b"{}") -> tuple[int, bytes]:
    """Status and body of one exchange."""
    async with open_stream(transport, method, URL, content=content) as response:
        return response.status_code, await read(response)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (CHUNKED, (200, EVENTS)),
        (SIZED, (200, b"hello")),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + SIZED, (200, b"hello")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", (304, b"")),
        (b"HTTP/1.1 500\r\ncontent-length: 2\r\n\r\nno", (500, b"no")),
    ],
)
async def test_a_response_is_the_same_at_every_cut_and_its_connection_reused(
    response: bytes, expected: tuple[int, bytes], nursery: trio.Nursery
) -> None:
    """A response is the same wherever its bytes are cut, and each time the connection is used again."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        for cut in range(1, len(response)):
            assert (await peer.receive_request()).endswith(b"\r\n\r\n{}")
            peer.send(response[:cut])
            await wait_all_tasks_blocked()
            peer.send(response[cut:])

    nursery.start_soon(serve)
    for _ in range(1, len(response)):
        assert expected == await fetch(transport)
    assert transport.stats.opened == 1
    assert len(response) - 2 == transport.stats.reused


async def test_a_response_that_comes_byte_by_byte_is_whole(nursery: trio.Nursery) -> None:
    """A response that comes byte by byte is read like any other."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        for byte in CHUNKED:
            peer.send(bytes([byte]))
            await wait_all_tasks_blocked()

    nursery.start_soon(serve)
    assert await fetch(transport) == (200, EVENTS)


async def answer(network: MemoryNetwork, *responses: bytes) -> MemoryPeer:
    """Accept one connection and answer each request on it with the next response."""
    peer = await network.accept()
    for response in responses:
        await peer.receive_request()
        peer.send(response)
    return peer


async def test_a_request_is_sent_as_it_was_asked_for(nursery: trio.Nursery) -> None:
    """Method, target, headers and body go out as they were asked for, with Host and Content-Length."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    sent: list[bytes] = []

    async def serve() -> None:
        peer = await network.accept()
        sent.append(await peer.receive_request())
        peer.send(EMPTY)

    nursery.start_soon(serve)
    url = httpx.URL("http://model.test:8080/v1/chat?a=b%20c")
    async with open_stream(transport, "POST", url, headers=[(b"X-Key", b"1")], content=b"{}") as response:
        assert await read(response) == b""
        assert response.request.url == url
        assert response.http_version == "HTTP/1.1"
        assert response.reason_phrase == "OK"
    expected = b"POST /v1/chat?a=b%20c HTTP/1.1\r\nHost: model.test:8080\r\nX-Key: 1\r\nContent-Length: 2\r\n\r\n{}"
    assert [expected] == sent
    assert network.connected == [("model.test", 8080)]


@pytest.mark.parametrize("header", [(b"X-Key", b"1\r\nX-Other: 2"), (b"X Key", b"1"), (b"X-Key", b"1\x00")])
async def test_a_header_that_would_forge_another_is_refused(header: tuple[bytes, bytes], nursery: trio.Nursery) -> None:
    """A header that would break the request's framing is refused before anything is sent."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    with pytest.raises(httpx.LocalProtocolError):
        async with open_stream(transport, "GET", URL, headers=[header]):
            pass
    assert transport.stats.open_now == 0
    assert await (await network.accept()).receive() == b""


async def test_head_has_no_body_whatever_its_length_says(nursery: trio.Nursery) -> None:
    """The response to HEAD has no body, and its connection is reused."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, b"HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n", SIZED)
    assert await fetch(transport, "HEAD", b"") == (200, b"")
    assert await fetch(transport) == (200, b"hello")
    assert transport.stats.reused == 1


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n", b"HTTP/1.0 200 OK\r\n"]
)
async def test_a_connection_the_server_wants_closed_is_closed(head: bytes, nursery: trio.Nursery) -> None:
    """With `Connection: close` and in HTTP/1.0 the connection is not kept."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await answer(network, head + b"\r\nhello")
        await wait_all_tasks_blocked()
        peer.hang_up()
        await peer.wait_closed()

    nursery.start_soon(serve)
    assert await fetch(transport) == (200, b"hello")
    assert transport.stats.open_now == 0


async def test_bytes_after_the_response_cost_the_connection(nursery: trio.Nursery) -> None:
    """A connection on which the server says more than was asked is not used again."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, SIZED + SIZED)
    assert await fetch(transport) == (200, b"hello")
    assert transport.stats.open_now == 0


async def test_a_body_of_unknown_length_is_sent_in_chunks(nursery: trio.Nursery) -> None:
    """A request whose body is a stream goes out in chunks as they come."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    sent = bytearray()

    async def serve() -> None:
        peer = await network.accept()
        while not sent.endswith(b"0\r\n\r\n"):
            sent.extend(await peer.receive())
        peer.send(SIZED)

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        await trio.lowlevel.checkpoint()
        yield b""
        yield b"three"

    nursery.start_soon(serve)
    async with client(transport=transport) as http:
        response = await http.post(URL, content=body())
    assert response.text == "hello"
    assert sent.endswith(b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n5\r\nthree\r\n0\r\n\r\n")


async def test_a_server_that_refuses_early_is_heard(nursery: trio.Nursery) -> None:
    """A server that answers and closes before it has read the request is heard; the connection is closed."""
    network = MemoryNetwork()
    network.stalls = True
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        peer.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
        await wait_all_tasks_blocked()
        peer.reset()

    nursery.start_soon(serve)
    assert await fetch(transport) == (413, b"big")
    assert transport.stats.open_now == 0


@pytest.mark.parametrize("cut", [5, 100, 990, 2500])
@pytest.mark.parametrize(("filler", "fits"), [(900, True), (3000, False)])
async def test_headers_have_a_limit_at_any_cut(filler: int, fits: bool, cut: int, nursery: trio.Nursery) -> None:
    """Response headers over the limit are refused, in one piece or more; up to it they pass."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect, max_header_bytes=1000)
    response = b"HTTP/1.1 200 OK\r\nx-filler: %s\r\ncontent-length: 5\r\n\r\nhello" % (b"x" * filler)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        peer.send(response[:cut])
        await wait_all_tasks_blocked()
        peer.send(response[cut:])

    nursery.start_soon(serve)
    if fits:
        assert await fetch(transport) == (200, b"hello")
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            await fetch(transport)


async def test_a_body_that_is_left_half_read_closes_the_connection(nursery: trio.Nursery) -> None:
    """Leaving a response before its end closes the connection at once, and leaves no generator behind."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, CHUNKED[:-5])
    async with open_stream(transport, "POST", URL) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for _ in response.stream:
            break
    assert transport.stats.open_now == 0
    gc.collect()  # A generator left half-read would be a ResourceWarning, which is an error here.
    await wait_all_tasks_blocked()


async def test_a_body_that_has_all_arrived_need_not_be_read(nursery: trio.Nursery) -> None:
    """A response that has arrived whole leaves its connection for reuse, read or not."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, CHUNKED, SIZED)
    async with open_stream(transport, "POST", URL) as response:
        assert response.status_code == 200
    assert await fetch(transport) == (200, b"hello")
    assert transport.stats.opened == 1


async def test_closing_a_body_twice_and_reading_it_after_are_harmless(nursery: trio.Nursery) -> None:
    """Closing twice does nothing; a body read to its end stays ended; one closed before says so."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, SIZED, SIZED[:-1])
    async with open_stream(transport, "POST", URL) as response:
        assert await read(response) == b"hello"
        await response.aclose()
        await response.aclose()
        assert await read(response) == b""
    assert transport.stats.open_now == 1
    async with open_stream(transport, "POST", URL) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        await response.stream.aclose()
        await response.stream.aclose()
        with pytest.raises(httpx.StreamClosed):
            await read(response)
    assert transport.stats.open_now == 0


@pytest.mark.parametrize(
    "response",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 101,
        b"\x16\x03\x01\x00\x00\r\n\r\n",
    ],
)
async def test_a_response_that_is_not_http_is_a_protocol_error(response: bytes, nursery: trio.Nursery) -> None:
    """What is not HTTP/1.1 is a protocol error, never waited out, and costs the connection."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, response)
    with pytest.raises(httpx.RemoteProtocolError):
        await fetch(transport)
    assert transport.stats.open_now == 0


@pytest.mark.parametrize("url", ["ftp://model.test/", "model.test/", "http:///path"])
async def test_an_address_we_cannot_speak_to_is_refused(url: str) -> None:
    """An address that is not http or https, or has no host, is refused."""
    with pytest.raises(httpx.UnsupportedProtocol):
        async with open_stream(DirectTransport(connect=MemoryNetwork().connect), "GET", httpx.URL(url)):
            pass


async def test_a_closed_transport_refuses_and_its_streams_fail(nursery: trio.Nursery) -> None:
    """Closing a transport closes every connection; a stream being read fails, a new request is refused."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, CHUNKED[:-5])
    async with open_stream(transport, "POST", URL) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        pieces = aiter(response.stream)
        assert EVENTS.startswith(await anext(pieces))
        await transport.aclose()
        assert transport.stats.open_now == 0
        with pytest.raises(httpx.ReadError) as failed:
            await anext(pieces)
        assert failed.value.request.url == URL
    with pytest.raises(RuntimeError):
        await fetch(transport)


async def test_redirects_are_not_followed(nursery: trio.Nursery) -> None:
    """A redirect is an answer like any other."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(answer, network, b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n")
    async with client(transport=transport, headers={"x-key": "1"}, timeouts=Timeouts(read=1.0)) as http:
        response = await http.get(URL)
    assert response.status_code == 302


async def test_an_idle_connection_expires(nursery: trio.Nursery, mock_clock: MockClock) -> None:
    """An idle connection is used until its time is over, and closed when the transport is next used."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect, keepalive_expiry=10.0)
    nursery.start_soon(answer, network, SIZED, SIZED)
    await fetch(transport)
    mock_clock.jump(9.9)
    await fetch(transport)
    mock_clock.jump(10.0)
    nursery.start_soon(answer, network, SIZED)
    await fetch(transport)
    assert (transport.stats.opened, transport.stats.open_now) == (2, 1)


async def test_connections_never_exceed_their_limit(nursery: trio.Nursery) -> None:
    """At the limit a request waits for a place; an idle connection to elsewhere makes room."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect, max_connections=3)
    done: list[int] = []

    async def serve() -> None:
        while True:
            nursery.start_soon(serve_one, await network.accept())

    async def serve_one(peer: MemoryPeer) -> None:
        while not peer.is_closed:
            try:
                await peer.receive_request()
            except EOFError:
                return
            await wait_all_tasks_blocked()
            peer.send(SIZED)

    async def ask(number: int) -> None:
        url = httpx.URL(f"http://host-{number % 5}.test/")
        async with open_stream(transport, "GET", url) as response:
            assert await read(response) == b"hello"
        done.append(number)

    nursery.start_soon(serve)
    async with trio.open_nursery() as clients:
        for number in range(30):
            clients.start_soon(ask, number)
    assert sorted(done) == list(range(30))
    assert transport.stats.peak == 3
    nursery.cancel_scope.cancel()
