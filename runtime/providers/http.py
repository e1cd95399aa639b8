"""The one HTTP provider, for every wire: encode, stream, decode; what a person reads when that fails."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping

import attrs
import httpx
import trio

from runtime import wire
from runtime.model import Emit, ModelRequest, ProviderError, Reply
from runtime.wire.dialects import Dialect
from runtime.wire.encoder import RequestEncoder
from runtime.wire.endpoint import endpoint

from .retry import CONNECT_ATTEMPTS
from .transport import DEFAULT_TIMEOUTS, Timeouts, open_stream


@attrs.frozen
class Exchange:
    """One request and its response as they went over the wire, for `--record`."""

    model: str
    request: bytes
    status: int
    headers: Mapping[str, str]
    chunks: tuple[bytes, ...]


@attrs.frozen
class Server:
    """Where a provider's models are asked: `base_from` and `key_from` name the flag, file or variable that said so."""

    name: str
    wire: wire.WireName
    dialect: Dialect
    base_url: str
    base_from: str = ""
    key: str | None = attrs.field(default=None, repr=False)
    key_from: str = ""


class HttpProvider:
    """A Provider over HTTP. Connections are the transport's and stay open between calls."""

    def __init__(
        self,
        server: Server,
        transport: httpx.AsyncBaseTransport,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        record: Callable[[Exchange], None] | None = None,
    ) -> None:
        self.server = server
        self._transport = transport
        self._timeouts = timeouts
        self._record = record
        self._encoders: dict[str, RequestEncoder] = {}
        self._since: dict[str, float] = {}
        self._targets: dict[str, tuple[httpx.URL, list[tuple[bytes, bytes]]]] = {}

    @property
    def name(self) -> str:
        return self.server.name

    def count(self, request: ModelRequest) -> int | None:
        return None

    def forget(self, actor: str) -> None:
        self._since.pop(actor, None)
        self._encoders.pop(actor, None)

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Stream one reply. Raises ProviderError; a cancelled call closes its connection."""
        encoder = self._encoders.get(request.actor)
        if encoder is None:
            encoder = RequestEncoder(self.server.wire, self.server.dialect, self.server.name, request.actor)
            self._encoders[request.actor] = encoder
        if not request.attempt:
            self._since[request.actor] = trio.current_time()
        body = encoder.encode(request)
        url, headers = self._target(request.model)
        chunks: list[bytes] = []
        decoder: wire.Decoder | None = None
        status, response_headers = 0, {}
        try:
            async with open_stream(
                self._transport, "POST", url, headers=headers, content=body, timeouts=self._timeouts
            ) as response:
                status = response.status_code
                response_headers = {name.lower(): value for name, value in response.headers.items()}
                decoder = wire.decoder(self.server.wire, status, response_headers, now=time.time())
                assert isinstance(response.stream, httpx.AsyncByteStream)
                async for chunk in response.stream:
                    if self._record is not None:
                        chunks.append(chunk)
                    if deltas := decoder.feed(chunk):
                        emit(deltas)
        except httpx.TransportError as error:
            if decoder is None:
                raise self._unreachable(error, request) from error
            broken: Exception | None = error
        else:
            broken = None
        finally:
            if self._record is not None and status:
                self._record(Exchange(request.model, body, status, response_headers, tuple(chunks)))
        try:
            reply = decoder.close()
            return attrs.evolve(reply, left_out=encoder.left_out) if encoder.left_out else reply
        except ProviderError as error:
            raise self._explained(error) from broken

    def _target(self, model: str) -> tuple[httpx.URL, list[tuple[bytes, bytes]]]:
        found = self._targets.get(model)
        if found is None:
            server = self.server
            url, headers = endpoint(server.wire, server.dialect, server.base_url, model, server.key)
            pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
            found = self._targets[model] = (httpx.URL(url), [*pairs, (b"accept-encoding", b"identity")])
        return found

    def _unreachable(self, error: httpx.TransportError, request: ModelRequest) -> ProviderError:
        base = self.server.base_url
        source = f" (from {self.server.base_from})" if self.server.base_from else ""
        match error:
            case httpx.ConnectTimeout():
                text = f"no connection to {base}{source} within {self._timeouts.connect:g} s"
            case httpx.ConnectError() if _cause(error, ConnectionRefusedError):
                last = request.attempt + 1 >= CONNECT_ATTEMPTS
                text = f"nothing listens at {base}{source}" if last else f"{base} refused the connection"
            case httpx.ConnectError() if _cause(error, socket.gaierror):
                text = f"{base}{source}: there is no host of that name"
            case httpx.ConnectError():
                text = f"no connection to {base}{source}: {_reason(error)}"
            case httpx.ReadTimeout():
                text = f"{base} accepted the request and said nothing for {self._timeouts.first_byte:g} s"
                return ProviderError("truncated", text, retryable=True)
            case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
                return ProviderError("protocol", f"no request can be made to {base}{source}: {error}")
            case _:
                text = f"{base} broke the connection before it answered: {_reason(error)}"
                return ProviderError("truncated", text, retryable=True)
        return ProviderError("connect", text + self._tries(request), retryable=True)

    def _tries(self, request: ModelRequest) -> str:
        """How often and for how long this turn was tried, once it was tried for the last time."""
        if request.attempt + 1 < CONNECT_ATTEMPTS:
            return ""
        seconds = trio.current_time() - self._since.get(request.actor, trio.current_time())
        return f"; {request.attempt + 1} tries in {seconds:.0f} s"

    def _explained(self, error: ProviderError) -> ProviderError:
        if error.kind == "auth":
            status = f" ({error.status})" if error.status else ""
            if self.server.key is None:
                error.message = f"{self.name} wants a key{status}: set {self.server.key_from or 'one'}"
            else:
                error.message = f"{self.name} refused the key in {self.server.key_from}{status}. Not retried."
        elif not error.message.startswith(self.name):
            error.message = f"{self.name}: {error.message}"
        if self.server.key and self.server.key in error.message:
            error.message = error.message.replace(self.server.key, "[key]")
        return error


def _reason(error: Exception) -> str:
    found = next((each for each in _chain(error) if isinstance(each, OSError) and each.strerror), None)
    return str(found.strerror).lower() if found is not None else str(error) or type(error).__name__


def _cause(error: Exception, kind: type[BaseException]) -> bool:
    return any(isinstance(each, kind) for each in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and what is in groups among its causes."""
    while error is not None:
        yield error
        inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
        for each in inside:
            yield from _chain(each)
        error = error.__cause__ or error.__context__
