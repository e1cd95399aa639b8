"""A request as bytes: its head, written by h11 once for all that differ in length alone, and its body in pieces."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import lru_cache

import h11
import httpx

SOME_REQUEST = h11.Request(method="POST", target="/", headers=[("Host", "localhost"), ("Content-Length", "1")])
"""Stands for one that was written here, so that h11 waits for a response."""


class PieceStream(httpx.AsyncByteStream):
    """A body that is at hand in pieces, which others may hold as well. It may be read again."""

    __slots__ = ("_length", "_pieces")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._length = sum(map(len, pieces))

    def __len__(self) -> int:
        return self._length

    def whole(self) -> bytes:
        return b"".join(self._pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class WrittenHead:
    """`data` ends before the length's line; `keeps` tells whether the connection may be used again afterwards."""

    __slots__ = ("data", "keeps")

    def __init__(self, data: bytes, keeps: bool) -> None:
        self.data = data
        self.keeps = keeps


def written_head(request: httpx.Request) -> WrittenHead | None:
    """None where the head does not end with its only `Content-Length`: then h11 is to frame the body.

    Raises h11.LocalProtocolError for what may not be sent.
    """
    *headers, (name, _) = request.headers.raw or [(b"", b"")]
    if name != b"Content-Length":
        return None
    return _written(request.method, request.url.raw_path, tuple(headers))


@lru_cache(maxsize=64)
def _written(method: str, target: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> WrittenHead | None:
    head = h11.Request(method=method, target=target, headers=list(headers))
    if any(name in (b"content-length", b"transfer-encoding") for name, _ in head.headers):
        return None
    data = h11.Connection(h11.CLIENT).send(head)
    return WrittenHead(data[:-2], keeps_open(head.http_version, fields_of(head.headers)))


def fields_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Header fields by their name in lower case, those of one name joined."""
    fields: dict[bytes, bytes] = {}
    for name, value in headers:
        key = name.lower()
        fields[key] = value if key not in fields else fields[key] + b", " + value
    return fields


def keeps_open(version: bytes, fields: Mapping[bytes, bytes]) -> bool:
    """Whether this side leaves the connection open after the exchange (RFC 9112, section 9.3)."""
    if version < b"1.1":
        return False
    options = fields.get(b"connection", b"")
    return not any(option.strip().lower() == b"close" for option in options.split(b","))
