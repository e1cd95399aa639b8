"""A page of a text file for a model: one line that tells what is shown, then numbered lines.

Files of any size are read in pieces; a line of any length is never held whole.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import IO

import attrs

from runtime.policy.beneath import shown

from ._text import SNIFF_BYTES, counted, decode, decode_lines, kind_of, plain
from ._tool import ToolError

MAX_LINES = 2000
MAX_LINE_CHARS = 2000
MAX_PAGE_CHARS = 28_000
_LINE_BYTES = 4 * MAX_LINE_CHARS
_COUNT_BYTES = 256_000_000
_UTF16_BYTES = 16_000_000
_PIECE_BYTES = 1_000_000
_CHECK_EVERY = 10_000


def _go_on() -> None:
    pass


def read_page(
    file: IO[bytes], path: str, start: int = 1, end: int | None = None, checkpoint: Callable[[], None] = _go_on
) -> str:
    """Lines `start` to `end` (from 1, inclusive) of an open file, as many as fit on a page.

    The first line reads `PATH: lines A-B of TOTAL`, with notes in brackets on what is unusual, and where to go on if
    the page ends before `end`; each further line is the number, a tab and the text. `checkpoint` is called now and then
    and may raise to end it.

    Raises ToolError for binary data and for a start after the last line.
    """
    file, notes = _as_utf8(file, path)
    page = _take(file, start, end, checkpoint)
    if not page.lines:
        if page.total == 0:
            return f"{plain(path)}: empty file"
        raise ToolError(f"{shown(path)} has only {counted(page.total, 'line', 'lines')}; start={start} is after them")
    last = start + len(page.lines) - 1
    texts, note = _decoded(page.lines)
    notes += [note] if note else []
    if page.crlf:
        notes.append("CRLF line ends" if page.crlf >= page.total - 1 else "some CRLF line ends")
    if page.unended and last == page.total:
        notes.append("no newline at the end")
    header = f"{plain(path)}: lines {start}-{last} of {'' if page.exact else 'more than '}{page.total}"
    if notes:
        header += f" ({', '.join(notes)})"
    if last < (page.total if end is None else min(end, page.total)):
        header += f"; go on with start={last + 1}"
    numbered = (f"{number}\t{text}" for number, text in enumerate(texts, start))
    return "\n".join([header, *numbered])


def _as_utf8(file: IO[bytes], path: str) -> tuple[IO[bytes], list[str]]:
    """The file from where its text begins, in UTF-8 or something that also ends its lines with one byte."""
    first = file.read(SNIFF_BYTES)
    decoded = decode(first)
    size = file.seek(0, io.SEEK_END)
    if decoded is None:
        raise ToolError(f"{shown(path)} is {kind_of(first)} of {size} bytes, not text")
    file.seek(0)
    match decoded.note:
        case "UTF-16":
            if size > _UTF16_BYTES:
                raise ToolError(f"{shown(path)} is UTF-16 text of {size} bytes, too large to read here")
            whole = decode(file.read())
            text = whole.text if whole is not None else ""
            return io.BytesIO(text.encode(errors="replace")), ["UTF-16"]
        case "UTF-8 with BOM":
            file.seek(3)
            return file, ["UTF-8 with BOM"]
        case _:
            return file, []


@attrs.frozen
class _Line:
    """The first bytes of a line, how many more it has, and the bytes that end it."""

    head: bytes
    cut: int
    end: bytes


@attrs.frozen
class _Page:
    """The lines taken, and what was counted on the way: `exact` says that the whole file was."""

    lines: list[_Line]
    total: int
    crlf: int
    unended: bool
    exact: bool


def _take(file: IO[bytes], start: int, end: int | None, checkpoint: Callable[[], None]) -> _Page:
    stop = start + MAX_LINES - 1 if end is None else min(end, start + MAX_LINES - 1)
    lines: list[_Line] = []
    chars = total = crlf = 0
    unended = False
    for line in _lines(file):
        total += 1
        crlf += line.end == b"\r\n"
        unended = not line.end
        if total >= start:
            size = min(len(line.head), MAX_LINE_CHARS) + 8
            if lines and chars + size > MAX_PAGE_CHARS:
                break
            lines.append(line)
            chars += size
            if total == stop:
                break
        if total % _CHECK_EVERY == 0:
            checkpoint()
    rest, rest_crlf, exact, rest_unended = _count_rest(file, checkpoint)
    return _Page(lines, total + rest, crlf + rest_crlf, unended or rest_unended, exact)


def _count_rest(file: IO[bytes], checkpoint: Callable[[], None]) -> tuple[int, int, bool, bool]:
    """Lines and CRLF ends in what is left, whether all of it was counted, and whether its last line has no end."""
    lines = crlf = seen = 0
    last = b"\n"
    while piece := file.read(_PIECE_BYTES):
        checkpoint()
        lines += piece.count(b"\n")
        crlf += piece.count(b"\r\n")
        last = piece[-1:]
        seen += len(piece)
        if seen >= _COUNT_BYTES:
            return lines, crlf, False, False
    return lines + (last != b"\n"), crlf, True, last != b"\n"


def _lines(file: IO[bytes]) -> Iterator[_Line]:
    while piece := file.readline(_LINE_BYTES):
        whole = piece.endswith(b"\n") or len(piece) < _LINE_BYTES
        head = piece if whole else _whole_characters(piece)
        cut = len(piece) - len(head)
        while not whole and (piece := file.readline(_PIECE_BYTES)):
            whole = piece.endswith(b"\n")
            cut += len(piece)
        end = b"\r\n" if piece.endswith(b"\r\n") else b"\n" if piece.endswith(b"\n") else b""
        yield _Line(head if cut else head[: len(head) - len(end)], cut, end)


def _whole_characters(piece: bytes) -> bytes:
    """Bytes without the beginning of a UTF-8 character that was cut off at their end."""
    for back in range(1, min(4, len(piece)) + 1):
        byte = piece[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return piece[:-back] if length > back else piece
    return piece


def _decoded(lines: list[_Line]) -> tuple[list[str], str]:
    """The lines as text, all in the same encoding, the long ones cut."""
    decoded = decode_lines(b"\n".join(line.head for line in lines))
    texts = decoded.text.replace("\0", "\N{REPLACEMENT CHARACTER}").split("\n")
    return [_cut(text, line.cut) for text, line in zip(texts, lines, strict=True)], decoded.note


def _cut(text: str, cut: int) -> str:
    rest = max(0, len(text) - MAX_LINE_CHARS) + cut
    return f"{text[:MAX_LINE_CHARS]} [... about {rest} more characters in this line]" if rest else text
