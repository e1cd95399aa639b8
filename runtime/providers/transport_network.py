"""Byte streams to a server: a non-blocking TCP socket, and TLS on top of any stream.

They differ from Trio's own streams in what a connection pool needs: closing never waits, so it can be
done in a cancelled task; an idle stream can be asked whether the server has hung up; and one receive takes all
that has arrived, over TLS too, where Trio's stream wakes its reader once per record.
"""

import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import trio

RECEIVE_BYTES = 65536
_TLS_WRITE_BYTES = 65536


class NetworkStream(Protocol):
    """A connected byte stream that belongs to one task at a time.

    `send` and `receive` raise `trio.BrokenResourceError` when the connection is lost, and
    `trio.ClosedResourceError` when we closed it. After an error or a cancelled call only `close` is left.
    """

    def send_now(self, data: bytes) -> int:
        """Send as much as goes out without waiting; how many bytes that was."""
        ...

    async def send(self, data: bytes) -> None:
        """Send all of `data`. A cancelled send may have sent a part."""
        ...

    async def receive(self) -> bytes:
        """Wait for the next bytes; `b""` is the end of the stream. A cancelled receive loses nothing."""
        ...

    def is_quiet(self) -> bool:
        """Whether the peer has neither sent anything unread nor hung up."""
        ...

    def close(self, farewell: bytes = b"") -> None:
        """Close at once; `farewell` goes out only if that needs no waiting. Closing twice does nothing."""
        ...


Connect = Callable[[str, int], Awaitable[NetworkStream]]


async def connect_tcp(host: str, port: int) -> NetworkStream:
    """Open a TCP connection to the first of the host's addresses that answers (happy eyeballs).

    Raises `OSError`. A cancelled call leaves no socket behind.
    """
    if 0 <= port < 65536 and (family := _family(host)) is not None:
        return TcpStream(await _connected(family, (host, port)))
    stream = await trio.open_tcp_stream(host, port)
    # The socket is taken out of Trio's wrapper (options set there stay): ours has no checkpoint per call.
    return TcpStream(socket.socket(fileno=stream.socket.detach()))


def _family(host: str) -> socket.AddressFamily | None:
    """That of an address in numbers, None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return family
    return None


async def _connected(family: socket.AddressFamily, address: tuple[str, int]) -> socket.socket:
    """A socket connected to an address in numbers: there is nothing to look up, and no second one to try meanwhile."""
    await trio.lowlevel.checkpoint_if_cancelled()
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error = sock.connect_ex(address)
        if error in (errno.EINPROGRESS, errno.EWOULDBLOCK):
            await trio.lowlevel.wait_writable(sock)
            error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
    except BaseException:
        sock.close()
        raise
    return sock


class TcpStream:
    """A `NetworkStream` over a connected socket, which it owns."""

    __slots__ = ("_socket",)

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    def send_now(self, data: bytes) -> int:
        return self._send_some(data)

    async def send(self, data: bytes) -> None:
        sent = self._send_some(data)
        if sent == len(data):
            return
        with memoryview(data) as view:
            while sent < len(view):
                await trio.lowlevel.wait_writable(self._socket)
                sent += self._send_some(view[sent:])

    def _send_some(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(error) from error

    async def receive(self) -> bytes:
        while True:
            # Waiting first is a checkpoint, and spares a system call: an answer is hardly ever there already.
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(RECEIVE_BYTES)
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._lost(error) from error

    def _lost(self, error: OSError) -> trio.BrokenResourceError | trio.ClosedResourceError:
        if self._socket.fileno() < 0:
            return trio.ClosedResourceError("the connection was closed on our side")
        return trio.BrokenResourceError(error.strerror or str(error))

    def is_quiet(self) -> bool:
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self, farewell: bytes = b"") -> None:
        if self._socket.fileno() < 0:
            return
        if farewell:
            with suppress(OSError):
                self._socket.send(farewell)
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()


async def start_tls(below: NetworkStream, context: ssl.SSLContext, hostname: str) -> "TlsStream":
    """Shake hands as a TLS client over `below`, verifying the server as `context` says.

    Raises `ssl.SSLError` (a certificate that does not verify included) and `trio.BrokenResourceError`.
    `below` stays open whatever happens: closing it is the caller's.
    """
    stream = TlsStream(below, context, hostname)
    await stream.shake_hands()
    return stream


class TlsStream:
    """A `NetworkStream` that speaks TLS over another one, which it owns once the handshake is done."""

    __slots__ = ("_below", "_incoming", "_outgoing", "_tls")

    def __init__(self, below: NetworkStream, context: ssl.SSLContext, hostname: str) -> None:
        self._below = below
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname)

    async def shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._feed()
            except ssl.SSLError:
                # The alert tells the server why; whether it arrives is of no importance.
                with suppress(trio.BrokenResourceError):
                    await self._flush()
                raise
            else:
                return await self._flush()

    def send_now(self, data: bytes) -> int:
        return 0

    async def send(self, data: bytes) -> None:
        written = 0
        try:
            with memoryview(data) as view:
                while written < len(view):
                    written += self._tls.write(view[written : written + _TLS_WRITE_BYTES])
                    await self._flush()
        except ssl.SSLError as error:
            raise trio.BrokenResourceError(str(error)) from error

    async def receive(self) -> bytes:
        while True:
            data, ended = self._decrypted()
            if self._outgoing.pending:
                await self._flush()  # The answer to a key update.
            if data or ended:
                return data
            await self._feed()

    def _decrypted(self) -> tuple[bytes, bool]:
        """All that can be read without waiting, and whether the stream has ended."""
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._tls.read(RECEIVE_BYTES)
            except ssl.SSLWantReadError:
                return b"".join(pieces), False
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b"".join(pieces), True
            except ssl.SSLError as error:
                if pieces:  # What came before the fault is good; the next read meets it again.
                    return b"".join(pieces), False
                raise trio.BrokenResourceError(str(error)) from error
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._below.send(self._outgoing.read())

    async def _feed(self) -> None:
        if data := await self._below.receive():
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def is_quiet(self) -> bool:
        return not self._incoming.pending and not self._tls.pending() and self._below.is_quiet()

    def close(self, farewell: bytes = b"") -> None:
        with suppress(ssl.SSLError, ValueError):
            if farewell:
                self._tls.write(farewell)
            self._tls.unwrap()  # Writes close-notify, then wants the peer's, for which nobody waits.
        self._below.close(self._outgoing.read())
