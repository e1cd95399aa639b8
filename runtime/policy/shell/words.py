"""A word of a command line: its text after quote removal, and how much of it is known before the shell runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

PieceKind: TypeAlias = Literal["text", "variable", "opaque"]


@attrs.frozen
class Piece:
    """A stretch of a word: known text, a variable, or an expansion known only at run time (`text` is its source).

    `shaped`: the expansion may give a text the line itself chose, as `${x:-text}` and `${x/a/text}` do; `otherwise` are
    such texts.
    """

    kind: PieceKind
    text: str
    quoted: bool = False
    name: str = ""
    otherwise: tuple[str, ...] = ()
    shaped: bool = False


@attrs.frozen
class Word:
    """One word. `text` has quotes removed and expansions as their source; `raw` is as written.

    `static`: `text` is what the command gets, but for file name patterns (`glob`). `plain`: no quoting at all, so that
    it may be a reserved word. `braced`: a brace expansion makes several words, or other ones, of it.
    """

    pieces: tuple[Piece, ...]
    raw: str
    text: str
    static: bool
    plain: bool
    glob: bool = False
    braced: bool = False


def word_of(pieces: list[Piece], raw: str) -> Word:
    """Put a word together from its pieces."""
    text = "".join(piece.text for piece in pieces)
    static = all(piece.kind == "text" for piece in pieces)
    unquoted = "".join(piece.text for piece in pieces if piece.kind == "text" and not piece.quoted)
    glob = "*" in unquoted or "?" in unquoted or 0 <= unquoted.find("[") < unquoted.rfind("]")
    plain = static and text == raw
    return Word(tuple(pieces), raw, text, static, plain, glob)


def begins_shaped(word: Word) -> bool:
    """Whether a text the line chose may stand where an option would be."""
    start = True
    for piece in word.pieces:
        if piece.shaped and (start or not piece.quoted):
            return True
        start = start and piece.kind == "text" and not piece.text
    return False


def names(given: str | frozenset[str]) -> frozenset[str]:
    """A set of words, as one writes a table of them."""
    return frozenset(given.split()) if isinstance(given, str) else given


def literal(text: str) -> Word:
    """A word that is known and quoted."""
    return Word((Piece("text", text, quoted=True),), text, text, static=True, plain=False)
