"""A document keeps what an edit does not touch, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools.document import Document, DocumentError, Span, in_the_manner_of, read_document

PIECES = st.sampled_from(["a", "é", "\n", "\r\n", "\r", "\n\n", "\t", "€x", "\x0c", "\u2028"])
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS)
def test_lines_are_what_splitting_at_newlines_gives(text: str) -> None:
    """Lines, their starts and the final newline are those of the plain text."""
    document = Document(text)
    lines = text.replace("\r\n", "\n").split("\n")
    assert document.lines == (lines[:-1] if not lines[-1] else lines)
    assert document.ended == (not lines[-1])
    assert len(document.starts) == len(document.lines) + 1
    for at, line in enumerate(document.lines):
        piece = document.plain[document.starts[at] : document.starts[at + 1]]
        assert line == piece.removesuffix("\n")


@given(
    TEXTS.map(lambda text: text.replace("\r\n", "R").replace("\r", "").replace("R", "\r\n")),
    st.integers(0, 60),
    st.integers(0, 60),
    TEXTS,
)
@settings(max_examples=300)
def test_an_edit_changes_the_plain_text_and_nothing_else(text: str, one: int, two: int, new: str) -> None:
    """The plain text is that of a naive replacement; the raw text before and after the span stays."""
    document = Document(text)
    start, end = sorted((min(one, len(document.plain)), min(two, len(document.plain))))
    new = new.replace("\r", "")
    after = document.replaced([Span(start, end, new)])
    assert after.plain == document.plain[:start] + new + document.plain[end:]
    ends = set(text.replace("\r\n", "R")) & {"R", "\n"}
    if ends == {"R"}:
        assert "\n" not in after.text.replace("\r\n", "")
    if ends == {"\n"}:
        assert "\r\n" not in after.text
    head = document.plain[:start].count("\n")
    tail = document.plain[end:].count("\n")
    assert after.text.split("\n")[:head] == text.split("\n")[:head]
    assert (
        after.text.split("\n")[len(after.text.split("\n")) - tail :] == text.split("\n")[len(text.split("\n")) - tail :]
    )


@given(TEXTS, st.sampled_from(["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"]))
def test_a_file_that_is_not_edited_stays_as_it_is(text: str, encoding: str) -> None:
    """Reading and writing back gives the same bytes, with or without a byte order mark."""
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    data = mark + text.encode(encoding)
    assert read_document(data).encode() == data


@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_a_plain_refusal(data: bytes) -> None:
    """Bytes without NUL are some text that is written back the same; the rest is refused with a reason."""
    try:
        document = read_document(data)
    except DocumentError as error:
        assert "not text" in str(error) or "no valid" in str(error)
    else:
        assert document.encode() == data


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    """What Latin-1 cannot hold is an error that names it, and so is half of a surrogate pair."""
    latin = read_document(b"caf\xe9\n")
    assert latin.encoding == "latin-1"
    with pytest.raises(DocumentError, match="'€'"):
        latin.replaced([Span(0, 0, "€")]).encode()
    with pytest.raises(DocumentError, match="half of a surrogate"):
        Document("").replaced([Span(0, 0, "\ud800")]).encode()


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny", b"x\r\ny"),
        (b"a\r\nb\n", "x\n", b"x\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        ("\ufeffa\n".encode("utf-16-le"), "€", "\ufeff€".encode("utf-16-le")),
        (b"caf\xe9", "€", "€".encode()),
        (b"\0bin", "x\n", b"x\n"),
        (b"", "x", b"x"),
    ],
)
def test_a_whole_new_text_is_stored_as_the_old_one_was(before: bytes, text: str, after: bytes) -> None:
    """Mark, encoding and CRLF ends of the old file hold for a new text; a guessed Latin-1 becomes UTF-8."""
    assert in_the_manner_of(before, text) == after
