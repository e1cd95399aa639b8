"""One request to the open web: the address is looked up, checked, and that very address is connected to.

Names may answer differently each time they are looked up, so what was checked is never looked up again: the transport
gets a connect that does both. Proxies from the environment are not used, for behind one nobody could check.
"""

from __future__ import annotations

import ipaddress
import socket
import zlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs
import trio

from ._text import plain
from ._tool import ToolError

if TYPE_CHECKING:
    import httpx

    from runtime.providers.transport import TlsSettings
    from runtime.providers.transport_network import Connect, NetworkStream

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Allowed: TypeAlias = Callable[[str], bool]

USER_AGENT = "Elenco/0.1 (fetch_url; reads one page when its user's agent asks)"
MAX_URL_CHARS = 4000
CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_6TO4 = ipaddress.ip_network("2002::/16")


@attrs.frozen
class Page:
    """A response with as much of its body as was taken; header names are in lower case."""

    url: httpx.URL
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False


class Refused(OSError):
    """An address that is not connected to; the text says why."""


def read_url(text: str) -> httpx.URL:
    """The address a model wrote. Raises ToolError for one that is none, or is not of the web."""
    import httpx

    stripped = text.strip()
    if len(stripped) > MAX_URL_CHARS:
        raise ToolError(f"the address has more than {MAX_URL_CHARS} characters")
    try:
        url = httpx.URL(stripped)
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{plain(stripped)[:200]!r} is no address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host or set(url.host) & set("[]\\%<>\"' "):
        raise ToolError(f"{plain(stripped)[:200]!r}: an address begins with https:// or http:// and names a host")
    if url.userinfo:
        raise ToolError("an address with a user name or a password in it is not fetched")
    return url.copy_with(fragment=None)


def host_of(text: str) -> str:
    """The host in an address, "" where it names none."""
    try:
        return read_url(text).host
    except ToolError:
        return ""


def is_private_name(host: str) -> bool:
    """Whether a host is private by its very name, before anything is looked up."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not is_public(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return False


def is_public(address: Address) -> bool:
    """Whether an address is one of the open internet, also when it is dressed up as one of IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is None and address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None:
            return is_public(inside)
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast


async def get(
    url: httpx.URL,
    *,
    max_bytes: int,
    private_allowed: Allowed,
    accept: str = "text/html, text/markdown, text/plain;q=0.9, */*;q=0.5",
    connect: Connect | None = None,
    tls: TlsSettings | None = None,
) -> Page:
    """Send one GET and read at most `max_bytes` of what comes back; redirects are not followed.

    Raises ToolError. A cancelled call leaves no connection open.
    """
    import httpx

    from runtime.providers.transport import DirectTransport, Timeouts, open_stream

    transport = DirectTransport(tls=tls, connect=connect or checked_connect(private_allowed))
    headers = [
        (b"User-Agent", USER_AGENT.encode()),
        (b"Accept", accept.encode()),
        (b"Accept-Encoding", b"gzip"),
        (b"Connection", b"close"),
    ]
    timeouts = Timeouts(connect=CONNECT_SECONDS, read=READ_SECONDS, write=READ_SECONDS, pool=READ_SECONDS)
    try:
        async with open_stream(transport, "GET", url, headers=headers, timeouts=timeouts) as response:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            body = _Body(response.headers.get("content-encoding", ""), max_bytes)
            async for piece in response.stream:
                body.add(piece)
                if body.is_cut:
                    break
            return Page(
                url,
                response.status_code,
                response.reason_phrase,
                {name.lower(): value for name, value in response.headers.items()},
                bytes(body.data),
                body.is_cut,
            )
    except zlib.error as error:
        raise ToolError(f"{url}: what the server sent cannot be unpacked: {error}") from error
    except httpx.HTTPError as error:
        raise ToolError(f"{url}: {_words(error)}", transient=_is_transient(error)) from error
    finally:
        await transport.aclose()


class _Body:
    """A body as it comes, unpacked no further than the limit, however small it was made."""

    def __init__(self, encoding: str, limit: int) -> None:
        self.data = bytearray()
        self.is_cut = False
        self._limit = limit
        self._unpack = _unpacker(encoding.strip().lower())

    def add(self, piece: bytes) -> None:
        room = self._limit - len(self.data)
        found = piece if self._unpack is None else self._unpack.decompress(piece, room + 1)
        self.is_cut = len(found) > room
        self.data += found[:room]


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


def _unpacker(encoding: str) -> _Unpacker | None:
    """Raises ToolError for a coding that nobody asked for."""
    match encoding:
        case "" | "identity":
            return None
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(zlib.MAX_WBITS | 32)
        case _:
            raise ToolError(f"the server packed its answer as {plain(encoding)[:40]!r}, which was not asked for")


def checked_connect(private_allowed: Allowed) -> Connect:
    """A connect that looks a host up once, checks what it finds, and connects to nothing else."""

    async def connect(host: str, port: int) -> NetworkStream:
        from runtime.providers.transport_network import connect_tcp

        found = await addresses(host, port)
        usable = found if private_allowed(host) else [each for each in found if is_public(each)]
        if not usable:
            which = ", ".join(str(each) for each in found[:3])
            raise Refused(
                f"{host} is {which}, in a private network; a person can allow it: --allow 'fetch_url({host})'"
            )
        failure: OSError | None = None
        for address in usable[:4]:
            try:
                return await connect_tcp(str(address), port)
            except OSError as error:
                failure = failure or error
        assert failure is not None
        raise failure

    return connect


async def addresses(host: str, port: int) -> list[Address]:
    """What a host's name stands for now, in the system's order. Raises OSError."""
    found = await trio.socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    parsed = (ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found)
    return list(dict.fromkeys(parsed))


def _words(error: httpx.HTTPError) -> str:
    cause = error.__cause__
    if isinstance(cause, Refused):
        return str(cause)
    if isinstance(cause, socket.gaierror):
        return "its host is not known (no such name, or no network)"
    return str(error) or type(error).__name__


def _is_transient(error: httpx.HTTPError) -> bool:
    import httpx

    if isinstance(error.__cause__, Refused):
        return False
    if isinstance(error.__cause__, socket.gaierror):
        return error.__cause__.errno == socket.EAI_AGAIN
    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)
