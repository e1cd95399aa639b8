"""What goes wrong on the way: time-outs, resets, stale connections, and a cancel at every moment."""

import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from functools import partial

import httpx
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.providers.transport import DirectTransport, Timeouts, TlsSettings, open_stream
from runtime.providers.transport_testing import MemoryNetwork, MemoryPeer

URL = httpx.URL("http://model.test/v1/chat")
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
TIMEOUTS = Timeouts(connect=1.0, write=2.0, first_byte=4.0, read=8.0, pool=16.0)


async def fetch(transport: httpx.AsyncBaseTransport, url: httpx.URL = URL, content: bytes = b"{}") -> bytes:
    """The body of one exchange."""
    async with open_stream(transport, "POST", url, content=content, timeouts=TIMEOUTS) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return b"".join([piece async for piece in response.stream])


async def fails_after(transport: DirectTransport, error: type[httpx.TransportError]) -> float:
    """The seconds until an exchange fails so; its error names the request, and nothing stays open."""
    began = trio.current_time()
    with pytest.raises(error) as failed:
        await fetch(transport)
    assert failed.type is error
    assert failed.value.request.url == URL
    assert str(failed.value)
    assert transport.stats.open_now == 0
    return trio.current_time() - began


async def test_a_connect_that_hangs_times_out(autojump_clock: MockClock) -> None:
    """A connect that takes too long is a ConnectTimeout."""

    async def connect(host: str, port: int) -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    transport = DirectTransport(connect=connect)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert await fails_after(transport, httpx.ConnectTimeout) == 1.0


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
async def test_a_connect_to_a_full_server_times_out_and_leaves_no_socket(autojump_clock: MockClock) -> None:
    """A server that takes no more connections is a ConnectTimeout, and what was begun is closed."""
    with socket.socket() as listener, ExitStack() as crowd:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            client = crowd.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        before = sorted(os.listdir("/proc/self/fd"))
        transport = DirectTransport()
        with pytest.raises(httpx.ConnectTimeout):
            await fetch(transport, httpx.URL(f"http://127.0.0.1:{address[1]}/"))
        assert sorted(os.listdir("/proc/self/fd")) == before


async def test_a_handshake_that_hangs_times_out_and_closes(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """A server that never answers the TLS handshake is a ConnectTimeout; the connection is closed."""
    network = MemoryNetwork()
    transport = DirectTransport(tls=TlsSettings(ssl.create_default_context()), connect=network.connect)
    began = trio.current_time()
    with pytest.raises(httpx.ConnectTimeout):
        await fetch(transport, httpx.URL("https://model.test/"))
    assert trio.current_time() - began == 1.0
    assert (await network.accept()).is_closed


async def test_a_refused_connect_says_why() -> None:
    """A connect that fails is a ConnectError with the system's reason."""
    network = MemoryNetwork()
    network.refuses = ConnectionRefusedError(111, "Connection refused")
    transport = DirectTransport(connect=network.connect)
    with pytest.raises(httpx.ConnectError, match=r"model\.test:80.*Connection refused"):
        await fetch(transport)
    assert transport.stats.opened == 0


async def test_a_request_nobody_takes_times_out(autojump_clock: MockClock) -> None:
    """A server that takes nothing of the request is a WriteTimeout."""
    network = MemoryNetwork()
    network.stalls = True
    assert await fails_after(DirectTransport(connect=network.connect), httpx.WriteTimeout) == 2.0


@pytest.mark.parametrize("drip", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_a_response_that_never_begins_times_out(
    drip: bytes, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """A response whose head is not there in time is a ReadTimeout, whatever dribbles in before."""
    network = MemoryNetwork()

    async def serve() -> None:
        peer = await network.accept()
        for byte in drip:
            await trio.sleep(0.1)
            peer.send(bytes([byte]))

    nursery.start_soon(serve)
    assert await fails_after(DirectTransport(connect=network.connect), httpx.ReadTimeout) == pytest.approx(4.0)


async def test_a_body_that_stalls_times_out(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """A body that stops coming is a ReadTimeout; each piece begins the wait anew."""
    network = MemoryNetwork()

    async def serve() -> None:
        peer = await network.accept()
        peer.send(CHUNKED[:50])
        await trio.sleep(7.0)
        peer.send(CHUNKED[50:55])

    nursery.start_soon(serve)
    assert await fails_after(DirectTransport(connect=network.connect), httpx.ReadTimeout) == pytest.approx(15.0)


async def test_a_pool_that_stays_full_times_out(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    """A request that gets no place in time is a PoolTimeout, and takes none later."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect, max_connections=1)

    async def serve() -> None:
        (await network.accept()).send(CHUNKED[:-5])

    nursery.start_soon(serve)
    async with open_stream(transport, "POST", URL):
        began = trio.current_time()
        with pytest.raises(httpx.PoolTimeout):
            await fetch(transport)
        assert trio.current_time() - began == 16.0
    nursery.start_soon(serve_once, network, SIZED)
    assert await fetch(transport) == b"hello"


async def serve_once(network: MemoryNetwork, response: bytes, end: Callable[[MemoryPeer], None] | None = None) -> None:
    """Accept, take a request, respond and perhaps end the connection."""
    peer = await network.accept()
    await peer.receive_request()
    peer.send(response)
    if end is not None:
        end(peer)


@pytest.mark.parametrize("arrived", [0, 5, 30, len(CHUNKED) - 5])
@pytest.mark.parametrize(
    ("end", "error"), [(MemoryPeer.reset, httpx.ReadError), (MemoryPeer.hang_up, httpx.RemoteProtocolError)]
)
async def test_a_response_that_breaks_off_is_an_error(
    arrived: int, end: Callable[[MemoryPeer], None], error: type[httpx.TransportError], nursery: trio.Nursery
) -> None:
    """A response that breaks off is an error wherever it does, and is not asked for again."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(serve_once, network, CHUNKED[:arrived], end)
    await fails_after(transport, error)
    assert transport.stats.opened == 1


async def test_a_reset_while_sending_is_a_write_error(nursery: trio.Nursery) -> None:
    """A connection that breaks while the request goes out, with no answer, is a WriteError."""
    network = MemoryNetwork()
    network.stalls = True

    async def serve() -> None:
        peer = await network.accept()
        await wait_all_tasks_blocked()
        peer.reset()

    nursery.start_soon(serve)
    await fails_after(DirectTransport(connect=network.connect), httpx.WriteError)


@pytest.mark.parametrize("end", [MemoryPeer.reset, MemoryPeer.hang_up])
async def test_a_connection_closed_while_idle_is_not_used(
    end: Callable[[MemoryPeer], None], nursery: trio.Nursery
) -> None:
    """A connection that the server closed while it was idle is noticed before it is used."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)
    nursery.start_soon(serve_once, network, SIZED, end)
    await fetch(transport)
    nursery.start_soon(serve_once, network, SIZED)
    await fetch(transport)
    stats = transport.stats
    assert (stats.opened, stats.reused, stats.retried, stats.open_now) == (2, 0, 0, 1)


@pytest.mark.parametrize("end", [MemoryPeer.reset, MemoryPeer.hang_up])
async def test_a_request_that_meets_a_closing_connection_is_sent_once_more(
    end: Callable[[MemoryPeer], None], nursery: trio.Nursery
) -> None:
    """A request on a reused connection that is closed without a word goes out again on a new one."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        peer.send(SIZED)
        await peer.receive_request()
        end(peer)
        await serve_once(network, SIZED)

    nursery.start_soon(serve)
    assert await fetch(transport) == b"hello"
    assert await fetch(transport) == b"hello"
    stats = transport.stats
    assert (stats.opened, stats.reused, stats.retried, stats.open_now) == (2, 1, 1, 1)


async def test_a_request_is_sent_once_more_at_most(nursery: trio.Nursery) -> None:
    """When the new connection is closed without a word too, the request fails."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        peer.send(SIZED)
        await peer.receive_request()
        peer.hang_up()
        await serve_once(network, b"", MemoryPeer.hang_up)

    nursery.start_soon(serve)
    assert await fetch(transport) == b"hello"
    await fails_after(transport, httpx.RemoteProtocolError)
    assert transport.stats.opened == 2


@pytest.mark.parametrize(("spoken", "thought"), [(b"HTTP", 0.0), (b"HTTP/1.1 100 Continue\r\n\r\n", 0.0), (b"", 3.0)])
async def test_a_request_the_server_has_looked_at_is_not_sent_again(
    spoken: bytes, thought: float, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """A request is not sent again once a byte of an answer came, or the server took its time before it hung up."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        peer.send(SIZED)
        await peer.receive_request()
        peer.send(spoken)
        await trio.sleep(thought)
        peer.hang_up()

    nursery.start_soon(serve)
    assert await fetch(transport) == b"hello"
    await fails_after(transport, httpx.RemoteProtocolError)
    assert transport.stats.retried == 0


async def test_a_body_that_cannot_be_read_twice_is_not_sent_again(nursery: trio.Nursery) -> None:
    """A request whose body is a stream is not sent again."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def serve() -> None:
        peer = await network.accept()
        await peer.receive_request()
        peer.send(SIZED)
        await peer.receive()
        peer.hang_up()

    async def body() -> AsyncIterator[bytes]:
        yield b"once"

    nursery.start_soon(serve)
    assert await fetch(transport) == b"hello"
    with pytest.raises(httpx.RemoteProtocolError):
        await transport.handle_async_request(httpx.Request("POST", URL, content=body()))
    assert transport.stats.retried == 0


async def test_a_request_body_that_fails_closes_the_connection(nursery: trio.Nursery) -> None:
    """An error in the body's own stream comes through, and the connection is closed."""
    network = MemoryNetwork()
    transport = DirectTransport(connect=network.connect)

    async def body() -> AsyncIterator[bytes]:
        yield b"some"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await transport.handle_async_request(httpx.Request("POST", URL, content=body()))
    assert transport.stats.open_now == 0


def descriptors() -> set[str]:
    """This process's open descriptors."""
    return set(os.listdir("/proc/self/fd"))


async def serve_tcp(stream: trio.SocketStream) -> None:
    """Answer each request with a chunked body in three pieces."""
    async with stream:
        with suppress(trio.BrokenResourceError):  # A client that is cancelled resets the connection.
            while await stream.receive_some():
                for piece in (CHUNKED[:30], CHUNKED[30:58], CHUNKED[58:]):
                    await stream.send_all(piece)


@asynccontextmanager
async def tcp_server() -> AsyncGenerator[httpx.URL]:
    """A server on loopback, all of whose descriptors are closed at the end."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve_tcp, 0, host="127.0.0.1"))
        yield httpx.URL(f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/")
        nursery.cancel_scope.cancel()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
@pytest.mark.parametrize("is_warm", [False, True])
async def test_a_cancel_at_any_moment_leaves_nothing_open(
    is_warm: bool, cancelled_at: Callable[[int], AbstractContextManager[None]]
) -> None:
    """Cancelled at any step, on a new connection or a reused one, an exchange leaves no descriptor open."""
    before = descriptors()
    completed = 0
    for step in range(1, 40):
        is_completed = False
        transport = DirectTransport(max_connections=1)
        async with tcp_server() as url:
            if is_warm:
                await fetch(transport, url)
            with cancelled_at(step):
                assert await fetch(transport, url) == b"onetwo"
                is_completed = True
                completed += 1
            assert is_warm or transport.stats.open_now == int(is_completed)
            assert await fetch(transport, url) == b"onetwo"
            assert transport.stats.peak == 1
            await transport.aclose()
        assert descriptors() == before
    assert 0 < completed < 39
