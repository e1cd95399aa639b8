"""A network in memory, for tests: nothing real is waited for, so Trio's mock clock may jump over every time-out.

network = MemoryNetwork()
transport = DirectTransport(connect=network.connect)
...
peer = await network.accept()
await peer.receive_request()
peer.send(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
"""

import math

import trio


class MemoryNetwork:
    """Connects clients to whoever accepts, under any host and port.

    Set `refuses` to fail each connect with it; with `stalls` set, new connections take in nothing until told to.
    """

    def __init__(self) -> None:
        self.refuses: OSError | None = None
        self.stalls = False
        self.connected: list[tuple[str, int]] = []
        self._arriving, self._accepting = trio.open_memory_channel[MemoryPeer](math.inf)

    async def connect(self, host: str, port: int) -> "MemoryStream":
        """Open a connection, as `DirectTransport(connect=...)` wants it."""
        await trio.lowlevel.checkpoint()
        if self.refuses is not None:
            raise self.refuses
        self.connected.append((host, port))
        stream = MemoryStream()
        stream.is_stalled = self.stalls
        self._arriving.send_nowait(MemoryPeer(stream))
        return stream

    async def accept(self) -> "MemoryPeer":
        """The server's end of the next connection."""
        return await self._accepting.receive()


class MemoryStream:
    """The client's end: a `NetworkStream`."""

    def __init__(self) -> None:
        self.sent = bytearray()  # From the client, not yet received by the peer.
        self.arriving = bytearray()
        self.is_closed = False
        self.is_stalled = False
        self.peer_ended = False
        self.peer_reset = False
        self._changes = trio.lowlevel.ParkingLot()

    def changed(self) -> None:
        """Wake all who wait for something on this connection."""
        self._changes.unpark_all()

    async def wait_changed(self) -> None:
        """Wait for the next call of `changed`."""
        await self._changes.park()

    def send_now(self, data: bytes) -> int:
        """Nothing goes out without waiting here."""
        return 0

    async def send(self, data: bytes) -> None:
        """Send all of `data`; waits while the peer has stalled."""
        self._check()
        while self.is_stalled:
            await self.wait_changed()
            self._check()
        self.sent += data
        self.changed()

    async def receive(self) -> bytes:
        """Wait for the next bytes; `b""` is the end."""
        await trio.lowlevel.checkpoint()
        while not self.arriving and not self.peer_ended:
            self._check()
            await self.wait_changed()
        data = bytes(self.arriving)
        self.arriving.clear()
        return data

    def _check(self) -> None:
        if self.is_closed:
            raise trio.ClosedResourceError
        if self.peer_reset:
            raise trio.BrokenResourceError("connection reset by peer")

    def is_quiet(self) -> bool:
        """Whether the peer has neither sent anything unread nor hung up."""
        return not (self.arriving or self.peer_ended or self.peer_reset)

    def close(self, farewell: bytes = b"") -> None:
        """Close at once."""
        if not self.is_closed:
            self.sent += farewell
            self.is_closed = True
            self.changed()


class MemoryPeer:
    """The server's end. Only what waits for the client is async."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream

    @property
    def is_closed(self) -> bool:
        """Whether the client has closed the connection."""
        return self._stream.is_closed

    def send(self, data: bytes) -> None:
        """Let the client receive `data`."""
        self._stream.arriving += data
        self._stream.changed()

    def hang_up(self) -> None:
        """End the stream in good order, after what was sent."""
        self._stream.peer_ended = True
        self._stream.changed()

    def reset(self) -> None:
        """Break the connection: the client's next send or receive fails."""
        self._stream.peer_reset = True
        self._stream.changed()

    def stall(self, *, is_stalled: bool = True) -> None:
        """Stop taking in what the client sends, or go on."""
        self._stream.is_stalled = is_stalled
        self._stream.changed()

    async def receive(self) -> bytes:
        """Wait for anything from the client; `b""` once it has closed."""
        while not self._stream.sent and not self._stream.is_closed:
            await self._stream.wait_changed()
        data = bytes(self._stream.sent)
        self._stream.sent.clear()
        return data

    async def receive_request(self) -> bytes:
        """Wait for one request with a `Content-Length` or no body, and return its bytes."""
        data = b""
        while True:
            head, separator, body = data.partition(b"\r\n\r\n")
            if separator and len(body) >= _length(head):
                return data
            if not (more := await self.receive()):
                raise EOFError("the client closed the connection")
            data += more

    async def wait_closed(self) -> None:
        """Wait until the client has closed the connection."""
        while not self._stream.is_closed:
            await self._stream.wait_changed()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
