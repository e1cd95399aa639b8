"""Where a response body ends: by its length, by chunks, or with the connection. Pure bytes in, bytes out.

h11's body events cost 7 µs a chunk, which for a model's answer, one delta a chunk, is most of
the work; these readers take all the chunks of a piece at once.
"""

import enum
import re
from collections.abc import Mapping
from typing import Protocol

_MAX_LINE_BYTES = 16384
_MAX_TRAILER_BYTES = 65536

_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00\r\n]*)?\r\n")
_TRAILER_LINE = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00\r\n]*\r\n")


class Body(Protocol):
    """Takes apart what comes after the head. Once complete or at fault it takes nothing more."""

    surplus: bytes  # What came after the end, which nobody asked for.
    fault: str | None  # What is wrong with the bytes, or with their end. What was returned before is good.

    @property
    def is_complete(self) -> bool:
        """Whether the end has come."""
        ...

    def feed(self, data: bytes) -> bytes:
        """The next piece of the stream, `b""` for its end; returns the body in it."""
        ...


def body_of(method: str, status: int, fields: Mapping[bytes, bytes]) -> Body:
    """How the body of this response is framed (RFC 9112, section 6.3).

    `fields` are by lower-case name and already checked: one length at most, and no transfer coding but `chunked`.
    """
    if method == "HEAD" or status in (204, 304):
        return SizedBody(0)
    if b"transfer-encoding" in fields:
        return ChunkedBody()
    if (length := fields.get(b"content-length")) is not None:
        return SizedBody(int(length))
    return BodyUntilClosed()


class SizedBody:
    """So many bytes."""

    __slots__ = ("_missing", "fault", "is_complete", "surplus")

    def __init__(self, length: int) -> None:
        self._missing = length
        self.is_complete = length == 0
        self.surplus = b""
        self.fault: str | None = None

    def feed(self, data: bytes) -> bytes:
        if not data and not self.is_complete:
            self.fault = f"the server hung up {self._missing} bytes before the end of the response"
        body, self.surplus = data[: self._missing], data[self._missing :]
        self._missing -= len(body)
        self.is_complete = self._missing == 0
        return body


class BodyUntilClosed:
    """All there is until the server closes the connection."""

    __slots__ = ("fault", "is_complete", "surplus")

    def __init__(self) -> None:
        self.is_complete = False
        self.surplus = b""
        self.fault: str | None = None

    def feed(self, data: bytes) -> bytes:
        self.is_complete = not data
        return data


class _Part(enum.Enum):
    """What the next byte of a chunked body belongs to."""

    SIZE = enum.auto()
    DATA = enum.auto()
    DATA_END = enum.auto()
    TRAILER = enum.auto()
    END = enum.auto()


class ChunkedBody:
    """Chunks up to one of size zero, and the trailer, which is dropped."""

    __slots__ = ("_held", "_missing", "_part", "_trailer_bytes", "fault", "surplus")

    def __init__(self) -> None:
        self._part = _Part.SIZE
        self._held = b""  # The start of a line, whose end has not come.
        self._missing = 0  # Bytes of the present chunk.
        self._trailer_bytes = 0
        self.surplus = b""
        self.fault: str | None = None

    @property
    def is_complete(self) -> bool:
        return self._part is _Part.END

    def feed(self, data: bytes) -> bytes:
        if not data:
            if not self.is_complete:
                self.fault = "the server hung up in the middle of a chunked response"
            return b""
        if self._held:
            data, self._held = self._held + data, b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and self.fault is None:
            match self._part:
                case _Part.SIZE:
                    at = self._read_chunks(data, at, pieces)
                case _Part.DATA:
                    piece = data[at : at + self._missing]
                    pieces.append(piece)
                    at += len(piece)
                    self._missing -= len(piece)
                    if not self._missing:
                        self._part = _Part.DATA_END
                case _Part.DATA_END:
                    at = self._read_data_end(data, at)
                case _Part.TRAILER:
                    at = self._read_trailer(data, at)
                case _Part.END:
                    self.surplus = data[at:]
                    break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_chunks(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """Read whole chunks for as long as they last; then begin the one that is not whole."""
        while line := _SIZE_LINE.match(data, at):
            size = int(line[1], 16)
            start = line.end()
            stop = start + size
            if size and data[stop : stop + 2] == b"\r\n":
                pieces.append(data[start:stop])
                at = stop + 2
                continue
            self._missing = size
            self._part = _Part.DATA if size else _Part.TRAILER
            return start
        return self._hold_line(data, at, "size of a chunk")

    def _read_data_end(self, data: bytes, at: int) -> int:
        end = data[at : at + 2]
        if end == b"\r\n":
            self._part = _Part.SIZE
        elif end == b"\r":
            self._held = end
        else:
            self.fault = "a chunk of the response is longer than its size says"
        return at + 2

    def _read_trailer(self, data: bytes, at: int) -> int:
        if data.startswith(b"\r\n", at):
            self._part = _Part.END
            return at + 2
        line = _TRAILER_LINE.match(data, at)
        if line is None:
            return self._hold_line(data, at, "trailer of the response")
        self._trailer_bytes += line.end() - at
        if self._trailer_bytes > _MAX_TRAILER_BYTES:
            self.fault = "the trailer of the response is too long"
        return line.end()

    def _hold_line(self, data: bytes, at: int, what: str) -> int:
        """Keep a line's start for the next piece, unless it can only be wrong."""
        self._held = data[at:]
        if b"\n" in self._held or len(self._held) > _MAX_LINE_BYTES:
            self.fault = f"malformed {what}"
        return len(data)
