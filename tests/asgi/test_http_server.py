"""The HTTP server: what clients send in any shape and at any pace, against real sockets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import Any

import attrs
import pytest
import trio

from runtime.asgi import App, Bounds, Message, Receive, Scope, Send, serve

QUICK = Bounds(head=0.2, idle=0.2, body=0.2, send=0.2, linger=0.2)
GET = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n"


@attrs.define(eq=False)
class Client:
    """A connection, read response by response."""

    stream: trio.SocketStream
    _held: bytes = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def until(self, mark: bytes) -> bytes:
        with trio.fail_after(10):
            while mark not in self._held:
                data = await self.stream.receive_some()
                assert data, self._held
                self._held += data
        found, _, self._held = self._held.partition(mark)
        return found

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a response that says its length."""
        first, *lines = (await self.until(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers.get("content-length", 0))
        while len(self._held) < size:
            self._held += await self.stream.receive_some()
        body, self._held = self._held[:size], self._held[size:]
        return int(first.split()[1]), headers, body

    async def end(self) -> bytes:
        """What comes until the connection is closed."""
        with trio.fail_after(10):
            try:
                while data := await self.stream.receive_some():
                    self._held += data
            except trio.BrokenResourceError:
                pass
        return self._held


@asynccontextmanager
async def served(app: App, bounds: Bounds | None = None) -> AsyncGenerator[Callable[[], Awaitable[Client]]]:
    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await send({"type": "lifespan.startup.complete"})
        else:
            await app(scope, receive, send)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listeners[0].socket.getsockname()

    async with trio.open_nursery() as nursery, AsyncExitStack() as streams:

        async def connect() -> Client:
            return Client(await streams.enter_async_context(await trio.open_tcp_stream(*address)))

        nursery.start_soon(serve, whole, listeners, bounds)
        yield connect
        nursery.cancel_scope.cancel()


async def answer(send: Send, body: bytes, status: int = 200) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length]})
    await send({"type": "http.response.body", "body": body})


async def body_of(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        assert message["type"] == "http.request"
        body, more = body + message["body"], message["more_body"]
    return body


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, scope["path"].encode() + b" " + await body_of(receive))


async def test_a_connection_answers_one_request_after_the_other() -> None:
    """A connection answers one request after the other, each response with its date."""
    async with served(echo) as connect:
        client = await connect()
        for _ in range(3):
            await client.send(GET)
            status, headers, body = await client.response()
            assert (200, b"/a ") == (status, body)
            assert parsedate_to_datetime(headers["date"]).tzinfo is not None
        await client.send(b"GET /last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert b"HTTP/1.1 200 OK" in await client.end()


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    """Requests that a client sends ahead are answered in order, also more of them than are read ahead."""
    async with served(echo, Bounds(most_ahead=100)) as connect:
        client = await connect()
        await client.send(
            b"".join(b"POST /%d HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n%02d" % (n, n) for n in range(50))
        )
        assert [b"/%d %02d" % (n, n) for n in range(50)] == [(await client.response())[2] for _ in range(50)]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello",
        b"POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ],
)
async def test_a_request_is_the_same_at_every_cut(request_bytes: bytes) -> None:
    """A request is the same wherever the network cuts it."""
    async with served(echo) as connect:
        client = await connect()
        for cut in range(1, len(request_bytes)):
            await client.send(request_bytes[:cut])
            await trio.testing.wait_all_tasks_blocked()
            await client.send(request_bytes[cut:])
            assert (200, b"/a hello") == (await client.response())[::2]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 11\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n6\r\n123456\r\n6\r\n123456\r\n", 413),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nslow", 408),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 70_000, 431),
    ],
)
async def test_what_cannot_be_read_is_refused(request_bytes: bytes, status: int) -> None:
    """What is too long, too slow or no HTTP is refused with the status that says so, and the connection closed."""
    async with served(echo, attrs.evolve(QUICK, most_body=10)) as connect:
        client = await connect()
        await client.send(request_bytes)
        found, headers, _ = await client.response()
        assert (status, "close") == (found, headers["connection"])
        await client.stream.send_eof()
        assert b"" == await client.end()


@pytest.mark.parametrize("begun", [b"", b"GET / HTT", GET, GET + b"GET / HT"])
async def test_a_client_that_sends_no_request_is_left(begun: bytes) -> None:
    """A client that does not finish a request's head in time is left, at its first request and at later ones."""
    async with served(echo, QUICK) as connect:
        client = await connect()
        await client.send(begun)
        said = await client.end()
    assert said.count(b"HTTP/1.1 200 OK") == begun.count(GET)
    assert said.count(b"HTTP/1.1") == begun.count(GET)


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200})
    while True:
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})


async def test_a_client_that_takes_nothing_does_not_hold_up_the_end() -> None:
    """Clients that stop reading do not hold up the end of serving, and their applications end with it."""
    begun = ended = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal begun, ended
        begun += 1
        try:
            await endless(scope, receive, send)
        finally:
            ended += 1

    with trio.move_on_after(10) as patience:
        async with served(app) as connect:
            for _ in range(5):
                client = await connect()
                await client.send(GET)
                await client.until(b"200 OK")
    assert not patience.cancelled_caught
    assert (5, 5) == (begun, ended)


async def test_a_client_that_takes_nothing_is_left() -> None:
    """An application that sends to a client that stops reading is told with an OSError, as one that waits is."""
    told: list[str] = []
    over = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await body_of(receive)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, receive)
            try:
                await endless(scope, receive, send)
            except OSError as error:
                told.append(type(error).__name__)
        over.set()

    async def watch(receive: Receive) -> None:
        told.append((await receive())["type"])

    async with served(app, QUICK) as connect:
        client = await connect()
        await client.send(GET)
        with trio.fail_after(10):
            await over.wait()
    assert {"Gone", "http.disconnect"} == set(told)


async def test_an_application_hears_that_its_client_has_left() -> None:
    """An application that waits hears that its client has left, and what it still sends is refused."""
    told: list[Any] = []
    over = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await body_of(receive)
        told.append(await receive())
        told.append(await receive())
        try:
            await answer(send, b"late")
        except OSError as error:
            told.append(error)
        over.set()

    async with served(app) as connect:
        client = await connect()
        await client.send(GET)
        await client.stream.aclose()
        with trio.fail_after(10):
            await over.wait()
    assert [{"type": "http.disconnect"}] * 2 == told[:2]
    assert isinstance(told[2], OSError)


async def test_a_crash_of_the_application_costs_its_own_client_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A crash of the application is a 500, half-way a broken connection, and nothing to other clients."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/early":
                raise KeyError("early")
            case "/never":
                return
            case "/late":
                await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
                await send({"type": "http.response.body", "body": b"half", "more_body": True})
                raise KeyError("late")
            case "/wrong":
                await send({"type": "http.response.body", "body": b"no head"})
            case _:
                await answer(send, b"fine")

    async with served(app) as connect:
        other = await connect()
        for path in (b"/early", b"/never", b"/wrong"):
            client = await connect()
            await client.send(GET.replace(b"/a", path))
            assert 500 == (await client.response())[0]
        client = await connect()
        await client.send(GET.replace(b"/a", b"/late"))
        assert (await client.end()).endswith(b"half")
        await other.send(GET)
        assert (200, b"fine") == (await other.response())[::2]
    assert "GET /early failed: KeyError: 'early'" in caplog.messages


async def test_a_client_that_asks_whether_to_go_on_is_told() -> None:
    """A client that waits to be told to send its body is told so when the body is wanted, not before."""
    head = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/no":
            await answer(send, b"no", 401)
        else:
            await echo(scope, receive, send)

    async with served(app, QUICK) as connect:
        client = await connect()
        await client.send(head % b"/yes")
        assert b"100" in await client.until(b"\r\n\r\n")
        await client.send(b"hi")
        assert b"/yes hi" == (await client.response())[2]
        await client.send(head % b"/no")
        assert (401, b"no") == (await client.response())[::2]


async def test_a_body_nobody_reads_does_not_spoil_the_next_request() -> None:
    """A body that the application does not read spoils neither its response nor the next request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, scope["path"].encode())

    async with served(app, Bounds(most_body=300_000)) as connect:
        client = await connect()
        for size in (0, 5, 200_000):
            await client.send(b"POST /%d HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (size, size))
            await client.send(b"y" * size)
            assert b"/%d" % size == (await client.response())[2]


async def test_a_head_has_no_body() -> None:
    """The response to a HEAD has the headers and no body."""
    async with served(echo) as connect:
        client = await connect()
        await client.send(GET.replace(b"GET", b"HEAD") + GET)
        assert b"content-length: 3" in await client.until(b"\r\n\r\n")
        assert b"/a " == (await client.response())[2]


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a%20b/%C3%A4?x=%20&y", "/a b/ä", b"x=%20&y"),
        (b"http://x:1/c?d", "/c", b"d"),
        (b"http://x", "/", b""),
        (b"*", "*", b""),
        (b"//x/y", "//x/y", b""),
    ],
)
async def test_the_target_is_path_and_query(target: bytes, path: str, query: bytes) -> None:
    """The target of a request is told as path and query, in a proxy's form too."""
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await answer(send, b"")

    async with served(app) as connect:
        client = await connect()
        await client.send(b"OPTIONS " + target + b" HTTP/1.1\r\nHost: X\r\n\r\n")
        await client.response()
        assert client.stream.socket.getsockname() == seen[0]["client"]
    assert (path, query, [(b"host", b"X")]) == (seen[0]["path"], seen[0]["query_string"], seen[0]["headers"])


async def test_more_connections_than_may_be_are_turned_away() -> None:
    """More connections than may be are turned away, and there is room again when one has left."""
    async with served(echo, Bounds(connections=1)) as connect:
        first = await connect()
        await first.send(GET)
        await first.response()
        second = await connect()
        assert 503 == (await second.response())[0]
        await first.stream.aclose()
        status = 503
        with trio.fail_after(10):
            while status == 503:
                third = await connect()
                try:
                    await third.send(GET)
                    status, _, _ = await third.response()
                except trio.BrokenResourceError:
                    continue
        assert 200 == status


async def test_events_flow_while_later_requests_wait() -> None:
    """A stream of events goes on while the client has sent its next request ahead, and ends with the application."""
    over = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await body_of(receive)
        if scope["path"] == "/a":
            await answer(send, b"next")
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for part in (b"one", b"two"):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await over.wait()
            await send({"type": "http.response.body"})

    async with served(app) as connect:
        client = await connect()
        await client.send(GET.replace(b"/a", b"/events"))
        await client.until(b"two")
        await client.send(GET)
        over.set()
        await client.until(b"0\r\n\r\n")
        assert b"next" == (await client.response())[2]


async def test_the_application_lives_around_its_connections() -> None:
    """The application begins before the first connection, hands its state to each and ends after the last."""
    steps: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            assert {"type": "lifespan.startup"} == await receive()
            scope["state"]["word"] = "hello"
            steps.append("begins")
            await send({"type": "lifespan.startup.complete"})
            assert {"type": "lifespan.shutdown"} == await receive()
            await trio.sleep(0.01)
            steps.append("ends")
            return
        try:
            await answer(send, scope["state"]["word"].encode())
            await trio.sleep_forever()
        finally:
            steps.append("connection closed")

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = listeners[0].socket.getsockname()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, app, listeners)
        async with await trio.open_tcp_stream(*address) as stream:
            client = Client(stream)
            await client.send(GET)
            assert b"hello" == (await client.response())[2]
            nursery.cancel_scope.cancel()
    assert ["begins", "connection closed", "ends"] == steps
    with pytest.raises(OSError):
        await trio.open_tcp_stream(*address)


async def test_an_application_that_cannot_begin_serves_nobody() -> None:
    """An application that says it cannot begin, or crashes then, is not served."""

    async def unable(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    async def crashes(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError("oh")

    for app, kind in ((unable, RuntimeError), (crashes, KeyError)):
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        with pytest.raises(BaseExceptionGroup) as raised:
            await serve(app, listeners)
        assert raised.group_contains(kind)
        await listeners[0].aclose()


async def test_an_unknown_part_of_a_response_is_an_error() -> None:
    """A message that is no part of a response is the application's error."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        wrong: Message = {"type": "http.response.trailers"}
        await send(wrong)

    async with served(app) as connect:
        client = await connect()
        await client.send(GET)
        assert 500 == (await client.response())[0]
