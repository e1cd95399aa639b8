"""The head of a response: what most servers send is read at once, everything else by h11.

h11 takes 45 us for a head of thirteen fields, a twentieth of a whole step; what is read here is read as h11 would.
"""

import re
from collections.abc import Mapping

import attrs
import h11
import httpx

from .transport_request import SOME_REQUEST, fields_of

MOST_INTERIM = 100
_HEAD = re.compile(
    rb"HTTP/(1\.1) ([2-9][0-9][0-9]) ([!-~](?:[ -~]*[!-~])?)\r\n"
    rb"((?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [!-~](?:[ -~]*[!-~])?\r\n)*)\r\n"
)
_LENGTH = re.compile(rb"[0-9]{1,20}")


@attrs.frozen
class Head:
    """A final response's head. `headers` are as they were written, `fields` by lower-case name, those of one joined."""

    status: int
    reason: bytes
    version: bytes
    headers: list[tuple[bytes, bytes]]
    fields: Mapping[bytes, bytes]


def read_head(data: bytes, most: int) -> tuple[Head, int] | None:
    """A head that is whole, of the common form and no longer than `most`, and where it ends; None is for h11 to say."""
    found = _HEAD.match(data)
    if found is None or found.end() > most:
        return None
    version, status, reason, lines = found.groups()
    headers: list[tuple[bytes, bytes]] = []
    for line in lines.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b": ")
        headers.append((name, value))
    fields = fields_of(headers)
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if length is not None and (coding is not None or not _LENGTH.fullmatch(length)):
        return None
    if coding is not None and coding != b"chunked":
        return None
    return Head(int(status), reason, version, headers, fields), found.end()


class HeadReader:
    """Reads the head of one response out of pieces, passing over interim ones. `surplus` is what came behind it."""

    __slots__ = ("_interim", "_most", "_parser", "_received", "surplus")

    def __init__(self, most: int) -> None:
        self._most = most
        self._parser: h11.Connection | None = None
        self._interim = 0
        self._received = 0
        self.surplus = b""

    def writer(self) -> h11.Connection:
        """For a request that h11 is to write; it reads the response too."""
        self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._most)
        return self._parser

    def feed(self, data: bytes) -> Head | None:
        """The head, once it is whole; `b""` is the end of the stream. Raises httpx.RemoteProtocolError."""
        if self._parser is None:
            if (found := read_head(data, self._most)) is not None:
                head, end = found
                self.surplus = data[end:]
                return head
            self.writer().send(SOME_REQUEST)
        assert self._parser is not None
        self._received += len(data)
        try:
            self._parser.receive_data(data)
            return self._next(self._parser)
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(_explained(str(error), data)) from error

    def _next(self, parser: h11.Connection) -> Head | None:
        while (event := parser.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                # h11 has measured only heads that came in more than one piece.
                if self._received > self._most and _size(event) > self._most:
                    raise httpx.RemoteProtocolError(f"response headers over {self._most} bytes")
                self.surplus = parser.trailing_data[0]
                headers = event.headers.raw_items()
                return Head(event.status_code, event.reason, event.http_version, headers, fields_of(event.headers))
            if not isinstance(event, h11.InformationalResponse) or self._interim >= MOST_INTERIM:
                raise httpx.RemoteProtocolError(f"expected a response, got {event!r}")
            self._interim += 1
        return None


def _explained(why: str, data: bytes) -> str:
    """h11 speaks of its own states, and takes what is no response for a request."""
    if not data:
        return "the server hung up before the head of its response was whole"
    return "what came is no HTTP/1.1 response" if why == "illegal request line" else why


def _size(head: h11.Response) -> int:
    return sum(len(name) + len(value) for name, value in head.headers)
