"""The bytes of a file as text, told honestly: which encoding was read, and what is no text at all."""

from __future__ import annotations

import codecs

import attrs

from runtime.policy.paths import looks_like_text

SNIFF_BYTES = 8192


@attrs.frozen
class Decoded:
    """Text, and a note to the reader where it is not plain UTF-8."""

    text: str
    note: str = ""


def decode(data: bytes) -> Decoded | None:
    """A whole file as text; None for what is no text."""
    if not looks_like_text(data[:SNIFF_BYTES]):
        return None
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return Decoded(data[2:].decode(name, errors="replace"), "UTF-16")
    if data.startswith(codecs.BOM_UTF8):
        return attrs.evolve(decode_lines(data[3:]), note="UTF-8 with BOM")
    return decode_lines(data)


def decode_lines(data: bytes) -> Decoded:
    """Bytes without any mark: UTF-8, or else Latin-1, which at least loses nothing."""
    try:
        return Decoded(data.decode())
    except UnicodeDecodeError:
        return Decoded(data.decode("latin-1"), "not UTF-8, shown as Latin-1")


def kind_of(data: bytes) -> str:
    """What binary data probably is, from its first bytes."""
    for start, name in _MAGIC:
        if data.startswith(start):
            return name
    return "binary data"


def plain(path: str) -> str:
    """A path as it can be shown in one line; almost always just itself."""
    text = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program (ELF)"),
    (b"SQLite format 3", "an SQLite database"),
)
