"""The one HTTP provider, for every wire: encode, stream, decode; what a person reads when that fails."""

from __future__ import annotations

import re
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
import httpx
import trio

from runtime import wire
from runtime.messages import AssistantMessage, Message, Reasoning, Text, ToolCall
from runtime.model import Emit, ModelRequest, ProviderError, Reply
from runtime.wire.dialects import Dialect
from runtime.wire.encoder import RequestEncoder
from runtime.wire.endpoint import endpoint

from .redaction import BytesRedactor, DeltaRedactor, redacted, without_secrets
from .retry import CONNECT_ATTEMPTS
from .transport import DEFAULT_TIMEOUTS, ResponseBody, Timeouts, open_stream, with_host


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


LEAST_SECRET = 12
"""Characters; the keys that local servers are given for want of one are shorter, and ordinary words."""
LAST_WORDS = 1.0
"""Seconds a server has to end the body of a reply that is complete; after that its connection is given up."""
DISK_SECONDS = 10.0
UNPACKED_BYTES = 1 << 20
"""What is unpacked at once of a compressed body: a thousandth of it may be on the wire."""
_REFUSED_SCHEMA = re.compile(
    r"response_format|json_schema|json_object|output_config|text\.format|structured.?output|grammar|invalid schema",
    re.IGNORECASE,
)
_REFUSED_OPAQUE = re.compile(r"signature|encrypted|thinking.{0,20}block|reasoning.{0,20}item", re.IGNORECASE)


class HttpProvider:
    """A Provider over HTTP. Connections are the transport's and stay open between calls.

    `record` is called in a thread with each exchange; what it raises OSError for fails the call. `secrets` beside the
    server's key never get out of a response. Raises ValueError for a base URL nobody can be asked at.
    """

    def __init__(
        self,
        server: Server,
        transport: httpx.AsyncBaseTransport,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        record: Callable[[Exchange], None] | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        self.server = server
        self._transport = transport
        self._timeouts = timeouts
        self._record = record
        self._secrets = [secret for secret in {server.key or "", *secrets} if len(secret) >= LEAST_SECRET]
        self._encoders: dict[str, RequestEncoder] = {}
        self._since: dict[str, float] = {}
        self._targets: dict[str, tuple[httpx.URL, httpx.Headers]] = {}
        self._parts: dict[tuple[str, tuple[tuple[bytes, bytes], ...]], tuple[httpx.URL, httpx.Headers]] = {}
        self._target("any")

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
            encoder = self._encoders[request.actor] = self._encoder(request.actor)
        if not request.attempt:
            self._since[request.actor] = trio.current_time()
        body = encoder.pieces(request)
        url, headers = self._target(request.model)
        chunks: list[bytes] = []
        decoder: wire.Decoder | None = None
        status, response_headers = 0, {}
        try:
            async with open_stream(
                self._transport, "POST", url, headers=headers, content=body, timeouts=self._timeouts
            ) as response:
                status = response.status_code
                response_headers = _plain(response.headers)
                decoder = wire.decoder(self.server.wire, status, response_headers, now=time.time())
                unpacked = _unpacking(response_headers.get("content-encoding", "").strip().lower())
                await self._read(response.stream, unpacked, decoder, emit, chunks)
        except (httpx.TransportError, zlib.error) as error:
            if decoder is None:
                raise self._unreachable(error, request) from error
            broken: Exception | None = error
        else:
            broken = None
        finally:
            unkept = ""
            if self._record is not None and status:
                unkept = await _keep(
                    self._record, Exchange(request.model, b"".join(body), status, response_headers, tuple(chunks))
                )
        if unkept:
            raise ProviderError("protocol", f"the exchange could not be recorded: {unkept}")
        try:
            reply = without_secrets(decoder.close(), self._secrets)
        except ProviderError as error:
            if error.status in (400, 422) and _asks_for_less(encoder, request, error.message):
                error.retryable, error.retry_after = True, 0.0
            raise self._explained(error, broken) from broken
        return attrs.evolve(reply, left_out=encoder.left_out) if encoder.left_out else reply

    def _encoder(self, actor: str) -> RequestEncoder:
        return RequestEncoder(self.server.wire, self.server.dialect, self.server.name, actor)

    async def _read(
        self,
        body: httpx.SyncByteStream | httpx.AsyncByteStream,
        unpacked: Callable[[bytes], Iterable[bytes]],
        decoder: wire.Decoder,
        emit: Emit,
        chunks: list[bytes],
    ) -> None:
        """Feed the decoder to the body's end, which is not waited for long once the reply is complete."""
        redactor = BytesRedactor(self._secrets)
        veil = DeltaRedactor(self._secrets)

        def take(piece: bytes) -> None:
            if self._record is not None and piece:
                chunks.append(piece)
            if deltas := veil.feed(decoder.feed(piece)):
                emit(deltas)

        def take_packed(packed: bytes) -> bool:
            for piece in unpacked(packed):
                take(redactor.feed(piece))
                if decoder.full:
                    return False  # Its end may never come: the connection is closed as it stands.
            return True

        assert isinstance(body, httpx.AsyncByteStream)
        pieces = aiter(body)
        async for packed in pieces:
            if not take_packed(packed):
                return
            if decoder.done:
                break
        if not (isinstance(body, ResponseBody) and body.has_ended):
            with trio.move_on_after(LAST_WORDS):
                async for packed in pieces:
                    if not take_packed(packed):
                        return
        take(redactor.close())
        if deltas := veil.close():
            emit(deltas)

    def _target(self, model: str) -> tuple[httpx.URL, httpx.Headers]:
        found = self._targets.get(model)
        if found is None:
            server = self.server
            url, headers = endpoint(server.wire, server.dialect, server.base_url, model, server.key)
            pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
            found = self._targets[model] = self._parsed(url, (*pairs, (b"accept-encoding", b"identity")))
        return found

    def _parsed(self, url: str, headers: tuple[tuple[bytes, bytes], ...]) -> tuple[httpx.URL, httpx.Headers]:
        """The same ones for every model asked at the same address: reading it takes a third of a millisecond."""
        found = self._parts.get((url, headers))
        if found is None:
            try:
                parsed = httpx.URL(url)
            except httpx.InvalidURL as error:
                raise ValueError(f"no usable base URL: {url!r}: {error}") from None
            found = self._parts[url, headers] = (parsed, with_host(parsed, headers))
        return found

    def _unreachable(self, error: Exception, request: ModelRequest) -> ProviderError:
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

    def _explained(self, error: ProviderError, broken: Exception | None) -> ProviderError:
        if error.kind == "auth":
            status = f" ({error.status})" if error.status else ""
            if self.server.key is None:
                error.message = f"{self.name} wants a key{status}: set {self.server.key_from or 'one'}"
            else:
                error.message = f"{self.name} refused the key in {self.server.key_from}{status}. Not retried."
        elif not error.message.startswith(self.name):
            error.message = f"{self.name}: {error.message}"
            if error.status == 404:  # servers rarely say which of the two is wrong
                error.message += f"; check the model's name and the address {self.server.base_url}"
        if error.kind == "truncated" and broken is not None:
            error.message = f"{error.message}: {_reason(broken)}"
        error.message = redacted(error.message, [*self._secrets, *([self.server.key] if self.server.key else [])])
        return error


def _plain(headers: httpx.Headers) -> dict[str, str]:
    """Headers by their name in lower case."""
    found: dict[str, str] = {}
    for name, value in headers.raw:
        if not name.isascii() or not value.isascii():
            return dict(headers.items())
        key, text = name.decode("ascii").lower(), value.decode("ascii")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _asks_for_less(encoder: RequestEncoder, request: ModelRequest, refusal: str) -> bool:
    """Whether the next request goes without what the server may have refused."""
    if request.output_schema is not None and _REFUSED_SCHEMA.search(refusal) and encoder.leave_out_schema():
        return True
    return bool(_REFUSED_OPAQUE.search(refusal)) and _without_opaque(encoder, request)


def _without_opaque(encoder: RequestEncoder, request: ModelRequest) -> bool:
    """Whether the next request says less than this one: the server may have refused what another server wrote."""
    return any(map(_holds_opaque, request.messages)) and encoder.leave_out_opaque()


def _holds_opaque(message: Message) -> bool:
    if not isinstance(message, AssistantMessage):
        return False
    for part in message.parts:
        match part:
            case ToolCall(extra=opaque) | Reasoning(opaque=opaque) | Text(opaque=opaque) if opaque is None:
                pass
            case _:
                return True
    return False


def _unpacking(coding: str) -> Callable[[bytes], Iterable[bytes]]:
    """Plain bytes out of a body that a proxy has compressed although it was asked for plain, in pieces of bounded size.

    The pieces may raise zlib.error.
    """
    if coding not in ("gzip", "x-gzip", "deflate"):
        return lambda data: (data,)
    unpacker = zlib.decompressobj(47)

    def unpacked(data: bytes) -> Iterator[bytes]:
        full = True
        while (data or full) and not unpacker.eof:
            piece = unpacker.decompress(data, UNPACKED_BYTES)
            yield piece
            data, full = unpacker.unconsumed_tail, len(piece) >= UNPACKED_BYTES

    return unpacked


async def _keep(record: Callable[[Exchange], None], exchange: Exchange) -> str:
    """Why an exchange could not be recorded, or nothing. A cancelled call records it all the same."""
    with trio.move_on_after(DISK_SECONDS, shield=True):
        try:
            await trio.to_thread.run_sync(record, exchange, abandon_on_cancel=True)
        except OSError as error:
            return error.strerror or str(error)
        return ""
    return "the disk does not answer"


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
