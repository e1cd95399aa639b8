"""A text file as it is edited: lines that end in plain newlines to whoever edits, the file's own ends on disk.

What an edit does not touch keeps its very bytes: line ends, even mixed ones, the final newline or its absence, the
byte order mark and the encoding. Offsets are in characters of `plain`, where every line ends with `\\n`.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import attrs

from runtime.policy.paths import looks_like_text

from ._text import SNIFF_BYTES, kind_of


class DocumentError(ValueError):
    """A content that cannot be edited as text, or a text that the file's encoding cannot hold."""


@attrs.frozen
class Span:
    """Characters `start` to `end` (exclusive) of a document's plain text, and what takes their place."""

    start: int
    end: int
    text: str


@attrs.frozen
class Document:
    """A whole file's text with its own line ends, and how it is stored."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    @cached_property
    def plain(self) -> str:
        """The text with every line ended by `\\n` alone."""
        return self.text.replace("\r\n", "\n")

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        lines = self.plain.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins in the plain text, and where the text ends."""
        found, at = [0], 0
        for line in self.lines:
            at += len(line) + 1
            found.append(at)
        found[-1] = len(self.plain)
        return found

    @property
    def ended(self) -> bool:
        """Whether the last line has an end; so has a file without lines."""
        return not self.plain or self.plain.endswith("\n")

    @cached_property
    def _crlf(self) -> list[int]:
        """Where in the plain text the lines that end in CRLF do so."""
        found: list[int] = []
        at = self.text.find("\r\n")
        while at >= 0:
            found.append(at - len(found))
            at = self.text.find("\r\n", at + 2)
        return found

    def line_at(self, offset: int) -> int:
        """The number of the line, from 1, that an offset lies in."""
        return self.plain.count("\n", 0, offset) + 1

    def encode(self) -> bytes:
        """The file's bytes. Raises DocumentError for a character the encoding has no place for."""
        try:
            return self.mark + self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            char = error.object[error.start]
            if "\ud800" <= char <= "\udfff":
                raise DocumentError("the new text is no valid Unicode: it holds half of a surrogate pair") from None
            raise DocumentError(
                f"the file is no UTF-8 and is kept as Latin-1, which has no {char!r}; rewrite it with write_file"
            ) from None

    def replaced(self, spans: Iterable[Span]) -> Document:
        """The document with these spans replaced, each by its text, in which CRLF counts as a newline.

        Spans do not overlap. A new line gets the end that the lines around it have.
        """
        pieces: list[str] = []
        at = 0
        for given in sorted(spans, key=lambda span: (span.start, span.end)):
            span = self._trimmed(attrs.evolve(given, text=given.text.replace("\r\n", "\n")))
            pieces.append(self.text[at : self._raw(span.start)])
            pieces.append(span.text.replace("\n", self._end_near(span.start)))
            at = self._raw(span.end)
        pieces.append(self.text[at:])
        return attrs.evolve(self, text="".join(pieces))

    def _trimmed(self, span: Span) -> Span:
        """The same change without what stays as it is at both its ends."""
        old, new = self.plain[span.start : span.end], span.text
        room = min(len(old), len(new))
        head = 0
        while head < room and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < room - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        return Span(span.start + head, span.end - tail, new[head : len(new) - tail])

    def _raw(self, offset: int) -> int:
        return offset + bisect_left(self._crlf, offset)

    def _end_near(self, offset: int) -> str:
        """How the line at an offset ends; for a last line without an end, how the one before it does."""
        at = self.plain.find("\n", offset)
        if at < 0:
            at = self.plain.rfind("\n", 0, offset)
        place = bisect_left(self._crlf, at)
        return "\r\n" if place < len(self._crlf) and self._crlf[place] == at else "\n"


def read_document(data: bytes) -> Document:
    """The document that bytes stand for: UTF-8 or UTF-16 by its mark, else UTF-8, else Latin-1, which loses nothing.

    Raises DocumentError for what is no text, or is not what its mark says.
    """
    if not looks_like_text(data[:SNIFF_BYTES]):
        raise DocumentError(f"is {kind_of(data)} of {len(data)} bytes, not text")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Document(data[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError as error:
                raise DocumentError(f"is marked as {encoding} but is no valid {encoding}: {error.reason}") from None
    try:
        return Document(data.decode())
    except UnicodeDecodeError:
        return Document(data.decode("latin-1"), "latin-1")


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def exchanged(text: Document, start: int, end: int, new: Sequence[str]) -> Span:
    """Lines `start` to `end`, counted from 1, replaced by new ones; the file's end stays as it is."""
    last = "" if end == len(text.lines) and not text.ended else "\n"
    return Span(text.starts[start - 1], text.starts[end], "\n".join(new) + last)


def inserted(text: Document, after: int, new: Sequence[str]) -> Span:
    """New lines after the line with that number, 0 for the beginning."""
    at = text.starts[after]
    if after == len(text.lines) and not text.ended:
        return Span(at, at, "\n" + "\n".join(new))
    return Span(at, at, "\n".join(new) + "\n")


def removed(text: Document, start: int, end: int) -> Span:
    """Lines `start` to `end` taken out."""
    at = text.starts[start - 1]
    if end == len(text.lines) and not text.ended and start > 1:
        at -= 1  # The line before becomes the last one, which has no end.
    return Span(at, text.starts[end], "")


def in_the_manner_of(before: bytes, text: str) -> bytes:
    """A new whole text stored as the old content was: its mark and encoding, and CRLF where every line had it.

    Raises DocumentError where the old encoding cannot hold the text.
    """
    try:
        old = read_document(before)
    except DocumentError:
        old = Document("")
    if old.encoding == "latin-1":
        old = Document(old.text)  # It was a guess; UTF-8 holds everything.
    plain, newlines = old.text.count("\r\n"), old.text.count("\n")
    if plain and plain == newlines and "\r\n" not in text:
        text = text.replace("\n", "\r\n")
    return Document(text, old.encoding, old.mark).encode()
