"""One HTTP/1.1 connection to one origin over a network stream, with a time-out for each kind of wait."""

import math
from collections.abc import Callable, Mapping

import attrs
import h11
import httpx
import trio

from .transport_body import Body, BodyUntilClosed, SizedBody, body_of
from .transport_head import Head, HeadReader
from .transport_network import NetworkStream
from .transport_request import PieceStream, fields_of, keeps_open, written_head

Origin = tuple[str, str, int]  # scheme, host, port

MAX_HEADER_BYTES = 65536

# A server that hangs up on a reused connection within this many seconds has not looked at the request.
_AT_ONCE = 1.0


@attrs.frozen
class Timeouts:
    """How long each kind of wait may last, in seconds; None is for ever.

    `first_byte` is the wait for the head of the response and, where it is longer than `read`, for the first piece of
    the body; `read` is the wait for each further piece, `pool` that for a free place when the transport has reached
    its number of connections.
    """

    connect: float | None = 10.0
    write: float | None = 30.0
    first_byte: float | None = 600.0
    read: float | None = 120.0
    pool: float | None = None

    @property
    def first_piece(self) -> float | None:
        """The wait for the first piece of the body."""
        if self.first_byte is None or self.read is None:
            return None
        return max(self.first_byte, self.read)

    def extension(self) -> dict[str, float | None]:
        """The value for a request's `timeout` extension: httpx's four, and `first_byte`."""
        return {
            "connect": self.connect,
            "write": self.write,
            "first_byte": self.first_byte,
            "read": self.read,
            "pool": self.pool,
        }

    @classmethod
    def of(cls, request: httpx.Request) -> "Timeouts":
        """Read a request's `timeout` extension; what it does not name waits for ever."""
        named: Mapping[str, float | None] = request.extensions.get("timeout") or {}
        read = named.get("read")
        return cls(
            connect=named.get("connect"),
            write=named.get("write"),
            first_byte=named.get("first_byte", read),
            read=read,
            pool=named.get("pool"),
        )


class HungUpOnReuse(Exception):
    """A reused connection was lost before the server can have looked at the request; `cause` says how."""

    def __init__(self, cause: httpx.TransportError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Connection:
    """Carries one exchange after the other. Whatever goes wrong, a cancelled call included, closes it.

    Its errors are httpx's, without their `request`.
    """

    __slots__ = (
        "_arrived",
        "_body",
        "_closed",
        "_heard",
        "_is_sound",
        "_keeps",
        "_max_header_bytes",
        "_on_close",
        "_stream",
        "_used",
        "origin",
    )

    def __init__(
        self,
        origin: Origin,
        stream: NetworkStream,
        on_close: Callable[["Connection"], None],
        max_header_bytes: int = MAX_HEADER_BYTES,
    ) -> None:
        self.origin = origin
        self._stream = stream
        self._max_header_bytes = max_header_bytes
        self._on_close = on_close
        self._used = False
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        """Forget the exchange before."""
        self._heard = False  # Something of the response has arrived.
        self._is_sound = True  # No send has failed.
        self._keeps = True  # Neither side has said that it closes the connection afterwards.
        self._body: Body = SizedBody(0)
        self._arrived = b""  # Of the body, not yet taken.

    def is_alive(self) -> bool:
        """Whether an idle connection can be used again: the server has said nothing and not hung up."""
        return not self._closed and self._stream.is_quiet()

    def close(self) -> None:
        """Close the socket at once, without waiting. Closing twice does nothing."""
        if not self._closed:
            self._closed = True
            self._stream.close()
            self._on_close(self)

    async def exchange(self, request: httpx.Request, body: httpx.AsyncByteStream, waits: Timeouts) -> Head:
        """Send the request and wait for the head of the response.

        Raises `HungUpOnReuse` where the request may be sent again elsewhere, else `httpx.TransportError`.
        """
        reused, self._used = self._used, True
        if reused:
            self._begin()
        # Only until the head is there: a connection that reads a body or lies idle needs no reader, nor what it holds.
        reader = HeadReader(self._max_header_bytes)
        try:
            lost = await self._send_request(reader, request, body, waits.write)
            self._is_sound = lost is None
            sent = trio.current_time()
            try:
                head = await self._receive_head(reader, waits.first_byte if lost is None else _AT_ONCE)
            except (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError) as error:
                at_once = lost is not None or (
                    not isinstance(error, httpx.ReadTimeout) and trio.current_time() - sent < _AT_ONCE
                )
                if reused and at_once and not self._heard:
                    raise HungUpOnReuse(lost or error) from error
                if lost is not None:
                    raise lost from error
                raise
            self._body = body_of(request.method, head.status, head.fields)
            ends_it = isinstance(self._body, BodyUntilClosed)
            self._keeps = self._keeps and not ends_it and keeps_open(head.version, head.fields)
            if reader.surplus:
                self._arrived = self._body.feed(reader.surplus)
            return head
        except BaseException:
            self.close()
            raise

    async def _send_request(
        self, reader: HeadReader, request: httpx.Request, body: httpx.AsyncByteStream, seconds: float | None
    ) -> httpx.WriteError | None:
        """Send it all. A lost connection is returned: the server may have refused the request, and said why."""
        try:
            if isinstance(body, PieceStream) and (written := written_head(request)) is not None:
                self._keeps = written.keeps
                await self._send(b"%bContent-Length: %d\r\n\r\n%b" % (written.data, len(body), body.whole()), seconds)
                return None
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            self._keeps = keeps_open(head.http_version, fields_of(head.headers))
            parser = reader.writer()
            start = parser.send(head)
            if isinstance(body, PieceStream):
                rest = [parser.send(h11.Data(data=body.whole()))] if len(body) else []
                await self._send(b"".join((start, *rest, parser.send(h11.EndOfMessage()))), seconds)
            else:
                await self._send(start, seconds)
                async for piece in body:
                    await self._send(parser.send(h11.Data(data=piece)), seconds)
                await self._send(parser.send(h11.EndOfMessage()), seconds)
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        except httpx.WriteError as error:
            return error
        return None

    async def _send(self, data: bytes, seconds: float | None) -> None:
        if not data:
            return
        try:
            # A request hardly ever fills the socket's buffer: then there is nothing to wait for, and no time-out.
            sent = self._stream.send_now(data)
            if sent == len(data):
                return
            with trio.CancelScope(deadline=deadline_in(seconds)):
                await self._stream.send(data[sent:])
                return
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpx.WriteError(f"the connection was lost: {error}") from error
        raise httpx.WriteTimeout(f"the server took no more of the request for {seconds:g} s")

    async def _receive_head(self, reader: HeadReader, seconds: float | None) -> Head:
        """Wait for the final response's head, passing over interim ones. The time is for all of it."""
        with trio.CancelScope(deadline=deadline_in(seconds)):
            while True:
                data = await self._receive()
                if not data and not self._heard:
                    raise httpx.RemoteProtocolError("the server hung up without a response")
                self._heard = True
                if (head := reader.feed(data)) is not None:
                    return head
        raise httpx.ReadTimeout(f"no response for {seconds:g} s")

    def take_body(self) -> tuple[bytes, bool]:
        """All of the body that has arrived since the last call, and whether it is complete."""
        data, self._arrived = self._arrived, b""
        if not data and self._body.fault is not None:
            self.close()
            raise httpx.RemoteProtocolError(self._body.fault)
        return data, self._body.is_complete

    async def receive_body(self, seconds: float | None) -> None:
        """Wait for more of the body; `take_body` then has it. After an error or a cancelled call: closed."""
        try:
            with trio.CancelScope(deadline=deadline_in(seconds)):
                self._arrived = self._body.feed(await self._receive())
                return
            raise httpx.ReadTimeout(f"nothing more of the response for {seconds:g} s")
        except BaseException:
            self.close()
            raise

    async def _receive(self) -> bytes:
        if self._closed:
            raise httpx.ReadError("the transport was closed")
        try:
            return await self._stream.receive()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpx.ReadError(f"the connection was lost: {error}") from error

    def is_ready_again(self) -> bool:
        """After a complete body: whether the connection can carry another exchange; else it is closed."""
        is_whole = self._is_sound and self._body.is_complete and not self._body.surplus
        if is_whole and not self._closed and self._keeps:
            return True
        self.close()
        return False


def deadline_in(seconds: float | None) -> float:
    """The time, on Trio's clock, when a wait of so many seconds is over."""
    return math.inf if seconds is None else trio.current_time() + seconds
