"""The two ways in: an httpx client and the lean stream; and proxies."""

import gc
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import httpx
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.providers.transport import RoutedTransport, Timeouts, client, open_stream

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"

Handler = Callable[[trio.SocketStream], Awaitable[None]]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine's own plays a part."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@asynccontextmanager
async def server(serve: Handler) -> AsyncGenerator[int]:
    """The port of a server on loopback whose connections are served so."""

    async def serve_and_close(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError):
                await serve(stream)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve_and_close, 0, host="127.0.0.1"))
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


class Recorder:
    """Answers each request with the same bytes, and keeps the request lines."""

    def __init__(self, response: bytes = CHUNKED) -> None:
        self.lines: list[bytes] = []
        self._response = response

    async def __call__(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        data = b""
        while more := await stream.receive_some():
            data += more
            if b"\r\n\r\n" in data:
                self.lines.append(data.partition(b"\r\n")[0])
                data = b""
                await stream.send_all(self._response)


async def read_all(pieces: AsyncIterator[bytes]) -> bytes:
    """What is left of a body."""
    return b"".join([piece async for piece in pieces])


async def fetch(transport: httpx.AsyncBaseTransport, url: str) -> bytes:
    """The body of one exchange."""
    async with open_stream(transport, "GET", httpx.URL(url)) as response:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return await read_all(aiter(response.stream))


async def test_a_client_streams_reuses_and_decodes() -> None:
    """The client is httpx's own over our connections."""
    recorder = Recorder()
    transport = RoutedTransport()
    async with server(recorder) as port, client(transport=transport, headers={"x-key": "1"}) as http:
        for _ in range(3):
            assert (await http.get(f"http://localhost:{port}/a")).text == "onetwo"
        async with http.stream("GET", f"http://localhost:{port}/b") as response:
            assert b"".join([piece async for piece in response.aiter_bytes()]) == b"onetwo"
    assert recorder.lines == [b"GET /a HTTP/1.1"] * 3 + [b"GET /b HTTP/1.1"]
    assert (transport.stats.opened, transport.stats.open_now) == (1, 0)


async def test_two_hundred_streams_at_once_open_two_hundred_connections_at_most() -> None:
    """Two hundred agents with five turns each open no more connections than run at once."""

    async def agent() -> None:
        for _ in range(5):
            assert await fetch(transport, f"http://127.0.0.1:{port}/") == b"onetwo"

    transport = RoutedTransport()
    async with server(Recorder()) as port:
        async with trio.open_nursery() as nursery:
            for _ in range(200):
                nursery.start_soon(agent)
        stats = transport.stats
        assert stats.opened == stats.peak <= 200
        assert stats.opened + stats.reused == 1000
        await transport.aclose()
    assert stats.open_now == 0


async def test_a_refused_port_is_a_connect_error() -> None:
    """A port where nobody listens is a ConnectError with the reason."""
    async with server(Recorder()) as port:
        pass
    with pytest.raises(httpx.ConnectError, match="refused"):
        await fetch(RoutedTransport(), f"http://127.0.0.1:{port}/")


async def test_a_proxy_from_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain URLs go through HTTP_PROXY, except those that NO_PROXY lists; the stock transport does it."""
    proxy, model = Recorder(), Recorder()
    async with server(proxy) as proxy_port, server(model) as port:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy_port}")
        monkeypatch.setenv("no_proxy", "localhost")
        transport = RoutedTransport()
        for _ in range(2):
            assert await fetch(transport, "http://model.test/v1/chat") == b"onetwo"
        assert await fetch(transport, f"http://localhost:{port}/v1/chat") == b"onetwo"
        async with client() as http:
            assert (await http.get("http://model.test/client")).text == "onetwo"
        await transport.aclose()
    lines = [b"GET http://model.test/v1/chat HTTP/1.1"] * 2 + [b"GET http://model.test/client HTTP/1.1"]
    assert proxy.lines == lines
    assert model.lines == [b"GET /v1/chat HTTP/1.1"]
    assert transport.stats.opened == 1


async def test_an_https_url_is_tunnelled_through_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An https URL asks HTTPS_PROXY for a tunnel; a refusal is a ProxyError with the request."""
    proxy = Recorder(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
    async with server(proxy) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        transport = RoutedTransport()
        with pytest.raises(httpx.ProxyError, match="403") as failed:
            await fetch(transport, "https://model.test/v1/chat")
        await transport.aclose()
    assert failed.value.request.url == "https://model.test/v1/chat"
    assert proxy.lines == [b"CONNECT model.test:443 HTTP/1.1"]


@pytest.mark.parametrize("proxy", ["ftp://proxy.test", "http://[::1"])
async def test_a_proxy_that_makes_no_sense_is_a_proxy_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be spoken to is an error that names the environment."""
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(httpx.ProxyError, match="environment"):
        await fetch(RoutedTransport(), "http://model.test/")


async def test_a_proxied_body_left_half_read_leaves_no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving a proxied response before its end closes its generators with it."""
    async with server(Recorder(CHUNKED[:-5])) as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        transport = RoutedTransport()
        async with open_stream(transport, "GET", httpx.URL("http://model.test/")) as response:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            assert b"onetwo".startswith(await anext(aiter(response.stream)))
        del response
        gc.collect()  # A generator left half-read would be a ResourceWarning, which is an error here.
        await wait_all_tasks_blocked()
        await transport.aclose()


async def test_the_environment_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With trust_env off no proxy is used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with server(Recorder()) as port:
        transport = RoutedTransport(trust_env=False)
        assert await fetch(transport, f"http://127.0.0.1:{port}/") == b"onetwo"
        await transport.aclose()


def test_timeouts_travel_in_the_request() -> None:
    """Our time-outs and httpx's are read from a request alike; what is not named waits for ever."""
    ours = Timeouts(connect=1.0, write=2.0, first_byte=3.0, read=4.0, pool=5.0)
    request = httpx.Request("GET", "http://x/", extensions={"timeout": ours.extension()})
    assert Timeouts.of(request) == ours
    theirs = httpx.Timeout(4.0, connect=1.0).as_dict()
    request = httpx.Request("GET", "http://x/", extensions={"timeout": theirs})
    assert Timeouts.of(request) == Timeouts(connect=1.0, write=4.0, first_byte=4.0, read=4.0, pool=4.0)
    assert Timeouts.of(httpx.Request("GET", "http://x/")) == Timeouts(None, None, None, None, None)


async def test_a_transport_closed_under_a_stream_fails_the_stream() -> None:
    """On real sockets too, closing the transport fails whoever is reading, and whoever reads after."""

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(CHUNKED[:-5])
        assert await stream.receive_some() == b""

    async def close_soon() -> None:
        await wait_all_tasks_blocked()
        await transport.aclose()

    transport = RoutedTransport()
    async with server(serve) as port, trio.open_nursery() as nursery:
        for is_waiting in (True, False):
            transport = RoutedTransport()
            async with open_stream(transport, "GET", httpx.URL(f"http://127.0.0.1:{port}/")) as response:
                assert isinstance(response.stream, httpx.AsyncByteStream)
                pieces = aiter(response.stream)
                await anext(pieces)
                if is_waiting:
                    nursery.start_soon(close_soon)
                else:
                    await transport.aclose()
                with pytest.raises(httpx.ReadError):
                    await read_all(pieces)
            assert transport.stats.open_now == 0
