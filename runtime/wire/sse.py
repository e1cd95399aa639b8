"""Server-sent events out of bytes, whatever way they were cut (the WHATWG rules).

httpx-sse is what the project names for this, and it is not used here for reasons found in its 0.4.3: it takes text
that httpx has already decoded by the charset of the header, so a wrong header garbles the text; it loses the first
event behind a byte order mark; once an `id:` was seen it yields an event without data for every blank line; and it
refuses every content type but text/event-stream. A decoder fed with bytes is also one that a test can cut anywhere.

Two liberties beyond the rules, both needed in practice: a field named `error` is an event of that name (llama.cpp
until September 2025), and `close` hands out an event whose closing blank line never came, marked by being there.
"""

from __future__ import annotations

from typing import TypeAlias

Event: TypeAlias = tuple[str, str]
"""The event's name ("" when it has none) and its data."""

_BOM = b"\xef\xbb\xbf"
_LINE_COST = 32
"""Bytes that a line takes in memory beside its own."""


class EventStream:
    """Feed it reads of a body in order; it hands back the events each one completes."""

    __slots__ = ("_after_cr", "_data", "_first", "_held", "_name", "_tail")

    def __init__(self) -> None:
        self._tail = bytearray()
        self._data: list[bytes] = []
        self._held = 0
        self._name = ""
        self._first = True
        self._after_cr = False

    @property
    def pending(self) -> int:
        """Bytes held of an event whose end has not come; whoever feeds a stranger's bytes must end it at some size."""
        return self._held + len(self._tail)

    def feed(self, data: bytes) -> list[Event]:
        """The events that end within `data`. Events without data are none."""
        if self._after_cr and data:
            # The CR before was taken as a line's end at once; its LF, if it comes, is the same end.
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        if b"\n" not in data and b"\r" not in data:
            self._tail += data
            return []
        if self._tail:
            self._tail += data
            data = bytes(self._tail)
            self._tail.clear()
        lines = data.splitlines()  # of bytes: LF, CR and CRLF, and nothing else
        if data.endswith(b"\r"):
            self._after_cr = True
        elif not data.endswith(b"\n"):
            self._tail += lines.pop()
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        return self._events(lines)

    def close(self) -> list[Event]:
        """What the end of the body left unfinished: at most one event, perhaps cut in the middle."""
        line = bytes(self._tail)
        self._tail.clear()
        if self._first:
            line = line.removeprefix(_BOM)
        return self._events([line, b""] if line else [b""])

    def _events(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"data: "):
                self._data.append(line[6:])
                self._held += len(line) + _LINE_COST
            elif not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    if data and not data.isspace():
                        events.append((self._name, data.decode("utf-8", "replace")))
                    self._data.clear()
                    self._held = 0
                self._name = ""
            elif not line.startswith(b":"):
                field, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if field == b"data":
                    self._data.append(value)
                    self._held += len(line) + _LINE_COST
                elif field == b"event":
                    self._name = value.decode("utf-8", "replace")
                elif field == b"error" and value:
                    events.append(("error", value.decode("utf-8", "replace")))
        return events
