"""What a word may become, as far as the line itself says: `a=rm; $a x`. Guesses, for deny and ask rules only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from .words import Piece, Word, literal

MOST = 16
_BLANKS = {"IFS": [" "]}


def guessed(words: Sequence[Word], values: Mapping[str, Sequence[str]]) -> list[tuple[Word, ...]]:
    """The commands these words may be; none if the first word stays unknown."""
    heads = _texts(words[0], values)
    found: list[tuple[Word, ...]] = []
    for head in heads:
        fields = [literal(text) for text in head.split()]
        if fields:
            found.append((*fields, *(_settled(word, values) for word in words[1:])))
        elif len(words) > 1:
            found.append(tuple(words[1:]))
    return found


def _settled(word: Word, values: Mapping[str, Sequence[str]]) -> Word:
    texts = [] if word.static else _texts(word, values)
    return literal(texts[0]) if len(texts) == 1 else word


def _texts(word: Word, values: Mapping[str, Sequence[str]]) -> list[str]:
    choices = [_choices(piece, values) for piece in word.pieces]
    return ["".join(parts) for parts in islice(product(*choices), MOST)]


def _choices(piece: Piece, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    if piece.kind == "text":
        return (piece.text,)
    if piece.kind == "opaque":
        return ()
    return [*values.get(piece.name, ()), *piece.otherwise, *_BLANKS.get(piece.name, ())]
