"""An httpx transport that connects straight to the server, with a pool whose cost does not grow."""

import ssl
from collections.abc import AsyncIterator, Callable

import attrs
import httpx
import trio

from .transport_connection import MAX_HEADER_BYTES, Connection, HungUpOnReuse, Origin, Timeouts, deadline_in
from .transport_head import Head
from .transport_idle import IdleConnections
from .transport_network import Connect, NetworkStream, connect_tcp, start_tls
from .transport_request import PieceStream

_PORTS = {"http": 80, "https": 443}


@attrs.define
class Stats:
    """Connections `opened` so far, `open_now`, and their `peak`; requests that `reused` one or were `retried`."""

    opened: int = 0
    reused: int = 0
    retried: int = 0
    open_now: int = 0
    peak: int = 0


class TlsSettings:
    """The TLS context of a transport, made when the first https URL is met: it reads the certificate store."""

    def __init__(self, verify: ssl.SSLContext | str | bool = True) -> None:
        self._verify = verify
        self._context: ssl.SSLContext | None = None
        self._lock = trio.Lock()

    async def context(self) -> ssl.SSLContext:
        """The one context. Raises `OSError` (so `ssl.SSLError`) if the named certificates cannot be read."""
        async with self._lock:
            if self._context is None:
                context = self._verify
                if not isinstance(context, ssl.SSLContext):
                    context = await trio.to_thread.run_sync(self._load)
                context.set_alpn_protocols(["http/1.1"])
                self._context = context
            return self._context

    def _load(self) -> ssl.SSLContext:
        return httpx.create_ssl_context(verify=self._verify)


class DirectTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over connections of its own, kept alive and reused newest first.

    `max_connections` bounds the sockets open at once; a request beyond it waits, for its `pool` time-out at most.
    An idle connection is closed `keepalive_expiry` seconds after its last use, when the transport is next used.
    `connect` opens a byte stream to a host and port; it raises `OSError`.

    Proxies in the environment are not looked at: `routed` does that.
    """

    def __init__(
        self,
        *,
        tls: TlsSettings | None = None,
        max_connections: int = 1000,
        keepalive_expiry: float = 55.0,
        max_header_bytes: int = MAX_HEADER_BYTES,
        connect: Connect = connect_tcp,
    ) -> None:
        self.stats = Stats()
        self._tls = tls or TlsSettings()
        self._max_connections = max_connections
        self._max_header_bytes = max_header_bytes
        self._connect = connect
        self._places = trio.Semaphore(max_connections)
        self._idle: IdleConnections[Origin, Connection] = IdleConnections(keepalive_expiry)
        self._open: set[Connection] = set()
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request and wait for the head of its response.

        Time-outs come from the request's `timeout` extension (see `Timeouts`). A request that meets a reused connection
        the server has just closed is sent once more, on a new one. Raises `httpx.TransportError`. The caller reads the
        response's stream to its end or closes it; a cancelled call leaves nothing open.
        """
        if self._closed:
            raise RuntimeError("this transport is closed")
        waits = Timeouts.of(request)
        try:
            origin = _origin(request.url)
            await self._take_place(waits.pool)
            try:
                connection, head = await self._exchange(origin, request, waits)
            except BaseException:
                self._places.release()
                raise
        except httpx.RequestError as error:
            error.request = request
            raise
        body = ResponseBody(connection, request, waits, self._release)
        return httpx.Response(
            head.status,
            headers=head.headers,
            stream=body,
            request=request,
            extensions={
                "http_version": b"HTTP/" + head.version,
                "reason_phrase": head.reason,
            },
        )

    async def aclose(self) -> None:
        """Close every connection; streams still being read fail. Never waits."""
        self._closed = True
        for connection in list(self._open):
            connection.close()

    async def _take_place(self, seconds: float | None) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._places.acquire_nowait()
        except trio.WouldBlock:
            with trio.CancelScope(deadline=deadline_in(seconds)):
                await self._places.acquire()
                return
            raise httpx.PoolTimeout(f"all {self._max_connections} connections busy for {seconds} s") from None

    async def _exchange(self, origin: Origin, request: httpx.Request, waits: Timeouts) -> tuple[Connection, Head]:
        body = _body(request)
        if (idle := self._take_idle(origin)) is not None:
            self.stats.reused += 1
            try:
                return idle, await idle.exchange(request, body, waits)
            except HungUpOnReuse as lost:
                if not isinstance(body, PieceStream):
                    raise lost.cause from lost
                self.stats.retried += 1
        new = await self._open_connection(origin, waits.connect)
        return new, await new.exchange(request, body, waits)

    def _take_idle(self, origin: Origin) -> Connection | None:
        now = trio.current_time()
        while (expired := self._idle.take_expired(now)) is not None:
            expired.close()
        while (connection := self._idle.take(origin)) is not None:
            if connection.is_alive():
                return connection
            connection.close()
        return None

    async def _open_connection(self, origin: Origin, seconds: float | None) -> Connection:
        # Our own place is taken already, so this keeps busy and idle ones together within the limit.
        while len(self._idle) > self._places.value and (eldest := self._idle.take_eldest()) is not None:
            eldest.close()
        stream = await self._open_stream(origin, seconds)
        connection = Connection(origin, stream, self._forget, self._max_header_bytes)
        self._open.add(connection)
        self.stats.opened += 1
        self.stats.open_now += 1
        self.stats.peak = max(self.stats.peak, self.stats.open_now)
        if self._closed:
            connection.close()
        return connection

    async def _open_stream(self, origin: Origin, seconds: float | None) -> NetworkStream:
        scheme, host, port = origin
        try:
            context = await self._tls.context() if scheme == "https" else None
            with trio.CancelScope(deadline=deadline_in(seconds)):
                stream = await self._connect(host, port)
                if context is None:
                    return stream
                try:
                    return await start_tls(stream, context, host)
                except BaseException:
                    stream.close()
                    raise
        except (OSError, trio.BrokenResourceError, UnicodeError) as error:
            raise httpx.ConnectError(f"cannot connect to {host}:{port}: {_reason(error)}") from error
        raise httpx.ConnectTimeout(f"no connection to {host}:{port} within {seconds} s")

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        self.stats.open_now -= 1

    def _release(self, connection: Connection, is_reusable: bool) -> None:
        self._places.release()
        if is_reusable and not self._closed:
            self._idle.put(connection.origin, connection, trio.current_time())
        else:
            connection.close()


class ResponseBody(httpx.AsyncByteStream):
    """The body of a response: an iterator, not a generator, so nothing is left half-read.

    Each step gives all that has arrived. At its end the connection is given back. `aclose` before that closes the
    socket at once, unless the rest has arrived already; it never waits, and closing twice does nothing. A step that
    fails or is cancelled closes the socket too.

    The first piece may take as long as the head: many servers send that before they have read the prompt.
    """

    __slots__ = ("_connection", "_is_complete", "_release", "_request", "_seconds", "_waits")

    def __init__(
        self,
        connection: Connection,
        request: httpx.Request,
        waits: Timeouts,
        release: Callable[[Connection, bool], None],
    ) -> None:
        self._connection: Connection | None = connection
        self._is_complete = False
        self._request = request
        self._waits = waits
        self._seconds = waits.first_piece
        self._release = release

    @property
    def has_ended(self) -> bool:
        """Whether all of the body has been read."""
        return self._is_complete

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        connection = self._connection
        if connection is None:
            if self._is_complete:
                raise StopAsyncIteration
            raise httpx.StreamClosed
        try:
            data, is_complete = connection.take_body()
            while not data and not is_complete:
                await connection.receive_body(self._seconds)
                data, is_complete = connection.take_body()
            self._seconds = self._waits.read
        except BaseException as error:
            if isinstance(error, httpx.RequestError):
                error.request = self._request
            self._end(is_reusable=False)
            raise
        if is_complete:
            self._is_complete = True
            self._end(is_reusable=connection.is_ready_again())
        if data:
            return data
        raise StopAsyncIteration

    async def aclose(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            _, has_all = connection.take_body()
        except httpx.RemoteProtocolError:
            has_all = False
        self._end(is_reusable=has_all and connection.is_ready_again())

    def _end(self, *, is_reusable: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._release(connection, is_reusable)


def _origin(url: httpx.URL) -> Origin:
    scheme = url.scheme
    if scheme not in _PORTS:
        raise httpx.UnsupportedProtocol(f"{url}: only http:// and https:// can be spoken")
    if not url.raw_host:
        raise httpx.UnsupportedProtocol(f"{url}: the address names no host")
    return scheme, url.raw_host.decode("ascii"), url.port or _PORTS[scheme]


def _body(request: httpx.Request) -> httpx.AsyncByteStream:
    """The request's body: a PieceStream if it is at hand, so that it can be sent again."""
    stream = request.stream
    if isinstance(stream, httpx.ByteStream):
        return PieceStream(tuple(stream))
    if isinstance(stream, httpx.AsyncByteStream):
        return stream
    raise RuntimeError("an async transport cannot send a sync request body")


def _reason(error: Exception) -> str:
    """What the operating system or TLS said; of several addresses that failed, the first one's."""
    match error.__cause__:
        case BaseExceptionGroup(exceptions=(first, *_)):
            return str(first)
        case _:
            return str(error)
