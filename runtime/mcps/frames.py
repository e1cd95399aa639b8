"""Bytes of a stream cut into lines, each of bounded length: what MCP over pipes and sockets is made of. Pure."""

from __future__ import annotations

import re
from typing import TypeAlias

import attrs

LONGEST_LINE = 16 * 1024 * 1024
_HEAD = 4096
_ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")\s*[,}]')


@attrs.frozen
class Overlong:
    """A line that was longer than it may be; `head` is its beginning."""

    head: bytes
    size: int

    @property
    def id(self) -> int | str | None:
        """The id of the JSON-RPC message it was, where its beginning tells."""
        found = _ID.search(self.head)
        if found is None:
            return None
        written = found[1].decode(errors="replace")
        return written[1:-1] if written.startswith('"') else int(written)


Line: TypeAlias = bytes | Overlong


class Frames:
    """The lines of one stream, however its bytes are cut; what comes after the last line end stays inside."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Line]:
        """The lines that these bytes complete, without their ends; empty ones are left out."""
        found: list[Line] = []
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._keep(piece)
            if (line := self._take()) is not None:
                found.append(line)
        self._keep(rest)
        return found

    def _keep(self, piece: bytes) -> None:
        """Of a line that is too long, its beginning is all that is worth keeping."""
        if self._size <= self._longest < self._size + len(piece):
            self._pieces = [b"".join([*self._pieces, piece])[:_HEAD]]
        elif self._size <= self._longest:
            self._pieces.append(piece)
        elif (missing := _HEAD - sum(map(len, self._pieces))) > 0:
            self._pieces.append(piece[:missing])
        self._size += len(piece)

    def _take(self) -> Line | None:
        line, size = b"".join(self._pieces), self._size
        self._pieces, self._size = [], 0
        if size > self._longest:
            return Overlong(line[:_HEAD], size)
        return line.strip() or None
