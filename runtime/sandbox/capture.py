"""The output of a command as it comes: decoded at any cut of its bytes, its head and its tail kept. Pure."""

from __future__ import annotations

import codecs
from io import StringIO

import attrs

HEAD_CHARS = 8_000_000
TAIL_CHARS = 8_000_000


@attrs.frozen
class Piece:
    """A piece of the output: its text, the offset after it, and how many characters before it are kept no more."""

    text: str
    end: int
    lost: int = 0


class Capture:
    """Feed it bytes; `text` is what is kept. What is no UTF-8 becomes U+FFFD, wherever the bytes were cut."""

    def __init__(self, head: int = HEAD_CHARS, tail: int = TAIL_CHARS) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = StringIO()
        self._head_room = head
        self._before = ""
        self._now = StringIO()
        self._now_size = 0
        self._tail_room = max(1, tail)
        self.bytes = 0
        self.chars = 0

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """Take the next bytes; gives back the text they complete. `final` gives up on a character that is not whole."""
        self.bytes += len(data)
        text = self._decoder.decode(data, final)
        self.chars += len(text)
        if self._head_room:
            head, rest = text[: self._head_room], text[self._head_room :]
            self._head.write(head)
            self._head_room -= len(head)
        else:
            rest = text
        self._now.write(rest)
        self._now_size += len(rest)
        if self._now_size >= self._tail_room:
            self._before = self._now.getvalue()[-self._tail_room :]
            self._now, self._now_size = StringIO(), 0
        return text

    @property
    def text(self) -> str:
        """Head and tail, with a line between them that says what is missing."""
        head, tail = self._head.getvalue(), self._tail()
        lost = self.chars - len(head) - len(tail)
        return head + (f"\n[... {lost} characters were not kept ...]\n" if lost else "") + tail

    def since(self, offset: int, most: int) -> Piece:
        """At most `most` characters from an offset on, counted from 0; pages that follow `end` leave no gap."""
        head = self._head.getvalue()
        offset = min(max(offset, 0), self.chars)
        if offset < len(head):
            text = head[offset : offset + most]
            return Piece(text, offset + len(text))
        tail = self._tail()
        start = self.chars - len(tail)
        at = max(offset, start)
        text = tail[at - start : at - start + most]
        return Piece(text, at + len(text), at - offset)

    def _tail(self) -> str:
        return (self._before + self._now.getvalue())[-self._tail_room :]
