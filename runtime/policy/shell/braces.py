"""Brace expansion: `{rm,-rf,x}` is three words, and the shell makes them before it looks for a command."""

from __future__ import annotations

import itertools
import re
from typing import TypeAlias

from .words import Piece, Word, word_of

MOST_WORDS = 64
MOST_GROUPS = 12
LONGEST = 4000

Unit: TypeAlias = "str | Piece"
"""An unquoted character, or a piece that is taken as it is."""

_SEQUENCE = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?")


class TooManyWords(ValueError):
    """More words than anybody writes out: the line is not worth reading further."""


def has_braces(word: Word) -> bool:
    """Whether a brace expansion would change the word."""
    if "{" not in word.raw:
        return False
    units = _units(word)
    try:
        return len(units) > LONGEST or bool(_groups(units))
    except TooManyWords:
        return True


def expanded(word: Word) -> tuple[Word, ...]:
    """The words a word becomes; itself if there is nothing to expand. Raises TooManyWords."""
    if not word.braced:
        return (word,)
    units = _units(word)
    if len(_groups(units)) > MOST_GROUPS or len(units) > LONGEST:
        raise TooManyWords
    return tuple(_joined(made) for made in _expanded(units))


def _units(word: Word) -> list[Unit]:
    units: list[Unit] = []
    for piece in word.pieces:
        units.extend(piece.text if piece.kind == "text" and not piece.quoted else [piece])
    return units


def _joined(units: list[Unit]) -> Word:
    pieces: list[Piece] = []
    for is_text, run in itertools.groupby(units, key=lambda unit: isinstance(unit, str)):
        if is_text:
            pieces.append(Piece("text", "".join(str(unit) for unit in run)))
        else:
            pieces.extend(unit for unit in run if isinstance(unit, Piece))
    return word_of(pieces, "".join(piece.text for piece in pieces))


def _expanded(units: list[Unit]) -> list[list[Unit]]:
    groups = _groups(units)
    made: list[list[Unit]] = [[]]
    at = 0
    for start in sorted(groups):
        if start < at:
            continue
        end, choices = groups[start]
        middles = [middle for choice in choices for middle in _expanded(choice)]
        if len(made) * len(middles) > MOST_WORDS:
            raise TooManyWords
        made = [[*before, *units[at:start], *middle] for before in made for middle in middles]
        at = end
    return [[*before, *units[at:]] for before in made]


def _groups(units: list[Unit]) -> dict[int, tuple[int, list[list[Unit]]]]:
    """Every group that expands, by where it opens: where it ends, and its alternatives. One pass."""
    found: dict[int, tuple[int, list[list[Unit]]]] = {}
    opened: list[list[int]] = []
    for at, unit in enumerate(units):
        if unit == "{":
            opened.append([at])
        elif unit == "," and opened:
            opened[-1].append(at)
        elif unit == "}" and opened:
            marks = [*opened.pop(), at]
            if len(marks) > 2:
                found[marks[0]] = (at + 1, [units[a + 1 : b] for a, b in itertools.pairwise(marks)])
            elif (sequence := _sequence(units[marks[0] + 1 : at])) is not None:
                found[marks[0]] = (at + 1, sequence)
    return found


def _sequence(inside: list[Unit]) -> list[list[Unit]] | None:
    if not 4 <= len(inside) <= 32 or not all(isinstance(unit, str) for unit in inside):
        return None
    found = _SEQUENCE.fullmatch("".join(str(unit) for unit in inside))
    if found is None:
        return None
    first, last, step = found.groups()
    if first.isalpha() != last.isalpha():
        return None
    start, end = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = max(1, abs(int(step or 1)))
    if abs(end - start) // stride >= MOST_WORDS:
        raise TooManyWords
    numbers = range(start, end + 1, stride) if start <= end else range(start, end - 1, -stride)
    if first.isalpha():
        return [[chr(number)] for number in numbers]
    wide = [each for each in (first, last) if each.lstrip("-").startswith("0") and len(each.lstrip("-")) > 1]
    width = max(map(len, (first, last))) if wide else 0
    return [list(f"{number:0{width}d}") for number in numbers]
