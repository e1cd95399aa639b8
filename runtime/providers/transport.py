"""How requests reach a model server: our own linear pool, or httpx's stock transport where a proxy applies.

Two ways in, over the same connections. `client()` is a full `httpx.AsyncClient`. `open_stream()` skips the client,
whose bookkeeping costs more than the exchange itself, and suits one streamed request after the other.
"""

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from types import CoroutineType, TracebackType
from typing import Any
from urllib.request import getproxies

import httpx
import trio

from .transport_connection import Timeouts as Timeouts
from .transport_connection import deadline_in
from .transport_direct import DirectTransport as DirectTransport
from .transport_direct import ResponseBody as ResponseBody
from .transport_direct import Stats as Stats
from .transport_direct import TlsSettings as TlsSettings
from .transport_proxies import proxy_for
from .transport_request import PieceStream

DEFAULT_TIMEOUTS = Timeouts()

# httpx's pool turns quadratic in connections kept alive; few of them keep a proxied run usable.
_PROXIED_LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=20, keepalive_expiry=30.0)
_PORTS = {"http": 80, "https": 443}
_WITH_BODY = ("POST", "PUT", "PATCH")
_CLOSE_SECONDS = 2.0

Headers = Sequence[tuple[bytes, bytes]]


def client(
    *,
    verify: ssl.SSLContext | str | bool = True,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    trust_env: bool = True,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """An httpx client over our pool, with proxies from the environment honoured and redirects not followed.

    `verify` is httpx's: True (its own certificates, or `SSL_CERT_FILE`'s), False, or a TLS context. The wait for the
    head of a response is `timeouts.read` here: httpx knows no other.
    """
    return httpx.AsyncClient(
        transport=transport or RoutedTransport(verify=verify, trust_env=trust_env),
        headers=headers,
        timeout=httpx.Timeout(connect=timeouts.connect, read=timeouts.read, write=timeouts.write, pool=timeouts.pool),
        follow_redirects=False,
        trust_env=trust_env,
    )


def open_stream(
    transport: httpx.AsyncBaseTransport,
    method: str,
    url: httpx.URL,
    *,
    headers: Headers | httpx.Headers = (),
    content: bytes | Sequence[bytes] = b"",
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
) -> AbstractAsyncContextManager[httpx.Response]:
    """One streamed request straight on a transport: `async with open_stream(...) as response`.

    Iterate `response.stream` for the body's raw bytes; a body read to its end leaves the connection for reuse,
    leaving the block before closes it. `content` in pieces is put together only while it is sent, so that a request
    that waits for its answer takes no memory of its own. `Content-Length` is added, and `Host` unless `headers` come
    from `with_host`.
    No redirect, cookie, credential or content coding is looked after: send `accept-encoding: identity`, or read with
    `response.aiter_bytes()`.

    Raises `httpx.TransportError`. A cancelled block leaves no socket open.
    """
    if not isinstance(headers, httpx.Headers):
        headers = with_host(url, headers)
    body = PieceStream((content,) if isinstance(content, bytes) else content)
    # Given a stream, httpx adds no headers of its own, which would cost five times as much as the rest.
    request = httpx.Request(
        method,
        url,
        headers=headers,
        stream=body,
        extensions={"timeout": timeouts.extension()},
    )
    if len(body) or method in _WITH_BODY:
        request.headers["Content-Length"] = str(len(body))
    return _OpenStream(transport, request)


def with_host(url: httpx.URL, headers: Headers) -> httpx.Headers:
    """Headers for requests to this URL's server, made once: each request then shares what is in them."""
    return httpx.Headers([(b"Host", url.netloc), *headers])


class _OpenStream:
    __slots__ = ("_request", "_response", "_transport")

    def __init__(self, transport: httpx.AsyncBaseTransport, request: httpx.Request) -> None:
        self._transport = transport
        self._request = request
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> httpx.Response:
        self._response = await self._transport.handle_async_request(self._request)
        self._response.request = self._request
        return self._response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            await self._response.aclose()


class RoutedTransport(httpx.AsyncBaseTransport):
    """Sends each request directly or through the proxy that the environment names for its URL.

    The environment is read once, here. `direct` is ours; proxies are httpx's stock transport.
    """

    def __init__(
        self,
        *,
        verify: ssl.SSLContext | str | bool = True,
        trust_env: bool = True,
        max_connections: int = 1000,
    ) -> None:
        self._tls = TlsSettings(verify)
        self.direct = DirectTransport(tls=self._tls, max_connections=max_connections)
        self._proxies = getproxies() if trust_env else {}
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}

    @property
    def stats(self) -> Stats:
        """The direct connections' counts."""
        return self.direct.stats

    def handle_async_request(self, request: httpx.Request) -> "CoroutineType[Any, Any, httpx.Response]":
        """Send the request on the transport its URL wants; see `DirectTransport`."""
        # No coroutine of its own where nothing is to be decided: two hundred agents wait in it at once.
        send = self._routed if self._proxies else self.direct.handle_async_request
        return send(request)  # type: ignore[return-value]

    async def _routed(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        port = url.port or _PORTS.get(url.scheme, 0)
        proxy = proxy_for(url.scheme, url.raw_host.decode("ascii"), port, self._proxies)
        if proxy is None:
            return await self.direct.handle_async_request(request)
        try:
            transport = await self._through(proxy)
            waits = Timeouts.of(request)
            # httpx knows one wait for all reads: ours for the head, the shorter one is kept below.
            request.extensions = {**request.extensions, "timeout": {**waits.extension(), "read": waits.first_piece}}
            response = await transport.handle_async_request(request)
        except httpx.RequestError as error:
            error.request = request
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _StockBody(response.stream, request, waits)
        return response

    async def _through(self, proxy: str) -> httpx.AsyncHTTPTransport:
        if proxy not in self._proxied:
            context = await self._tls.context()
            try:
                made = httpx.AsyncHTTPTransport(verify=context, proxy=proxy, limits=_PROXIED_LIMITS)
            except ImportError as error:
                raise httpx.UnsupportedProtocol(f"a SOCKS proxy needs the package socksio: {error}") from error
            except (ValueError, httpx.InvalidURL) as error:
                raise httpx.ProxyError(f"the proxy in the environment is not usable: {error}") from error
            self._proxied.setdefault(proxy, made)
        return self._proxied[proxy]

    async def aclose(self) -> None:
        """Close all connections, direct ones first; waits a moment at most."""
        await self.direct.aclose()
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            for transport in self._proxied.values():
                await transport.aclose()


class _StockBody(httpx.AsyncByteStream):
    """The stock transport's body, whose generators are all ended before its connection is closed.

    Left half-read they would be finalized later, by a task that no longer owns the socket.
    """

    def __init__(self, stock: httpx.AsyncByteStream, request: httpx.Request, waits: Timeouts) -> None:
        self._stock = stock
        self._pieces = stock.__aiter__()
        self._request = request
        self._read = waits.read
        self._seconds = waits.first_piece

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with trio.CancelScope(deadline=deadline_in(self._seconds)):
            piece = await anext(self._pieces)
            self._seconds = self._read
            return piece
        raise httpx.ReadTimeout(f"nothing more of the response for {self._seconds:g} s", request=self._request)

    async def aclose(self) -> None:
        with trio.move_on_after(_CLOSE_SECONDS, shield=True):
            # Closing the outer generator would leave the inner ones; a cancelled read ends them all.
            with trio.CancelScope() as scope, suppress(httpx.TransportError):
                scope.cancel()
                async for _ in self._pieces:
                    pass
            await self._stock.aclose()
