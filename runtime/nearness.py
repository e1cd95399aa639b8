"""Which known words a mistyped one was probably meant to be: as few letters apart as can be, and never far.

Compared is what a person reads: case, dashes and a plural s are no difference. difflib's ratio does not do for a hint:
it finds `--model` near `--otel`, for what all flags begin with counts as much there as the word itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

MOST = 3
"""Words worth listing; where more are equally near, the first of them."""
_FURTHEST = 3


def misspelt(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` is a slip of the fingers for, all equally near, at most a letter in three apart."""
    typed = _fold(word)

    def apart(name: str) -> int | None:
        other = _fold(name)
        most = min(_FURTHEST, max(1, max(len(typed), len(other)) // 3))
        if not typed or abs(len(typed) - len(other)) > most:
            return None
        found = letters_apart(typed, other)
        return found if found <= most and found < len(typed) else None

    return _least(known, apart)


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that `word` was probably meant to be: misspelt, or else with a part too few or too many."""
    names = list(known)
    typed = _fold(word)
    parts = typed.split("_")

    def apart(name: str) -> int | None:
        other = _fold(name)
        others = other.split("_")
        fewer, more = sorted((parts, others), key=len)
        if len(typed) < 3 or not other:
            return None
        if all(any(_alike(part, each) for each in more) for part in fewer):
            return len(more) - len(fewer)
        return 1 if other.startswith(typed) or _inflected(typed, other) else None

    return misspelt(word, names) or _least(names, apart)


def resembles(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` looks most like, in a wide sense: where a slip must not pass for a word of its own."""
    import difflib

    names = list(known)
    found = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if found:
        return found[0]
    plain = {_plain(name): name for name in reversed(names)}
    found = difflib.get_close_matches(_plain(word), list(plain), n=1, cutoff=0.75)
    if found:
        return plain[found[0]]
    begun = [name for name in names if len(word) >= 3 and name.startswith(word)]
    return begun[0] if len(begun) == 1 else None


def letters_apart(one: str, other: str) -> int:
    """Letters to add, drop, change or swap with their neighbour (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at]
        for there, wanted in enumerate(other, start=1):
            cost = min(before[there] + 1, row[-1] + 1, before[there - 1] + (letter != wanted))
            if at > 1 and there > 1 and letter == other[there - 2] and one[at - 2] == wanted:
                cost = min(cost, earlier[there - 2] + 1)
            row.append(cost)
    return row[-1]


def _least(known: Iterable[str], apart: Callable[[str], int | None]) -> list[str]:
    found = [(distance, name) for name in dict.fromkeys(known) if (distance := apart(name)) is not None]
    least = min((distance for distance, _ in found), default=0)
    return [name for distance, name in found if distance == least][:MOST]


def _alike(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) > 3 and letters_apart(one, other) == 1)


def _inflected(one: str, other: str) -> bool:
    """Whether two words differ by their ending only, as `denied` and `deny` do."""
    shorter, longer = sorted((one, other), key=len)
    stem = max(3, len(shorter) - 1)
    return len(longer) - len(shorter) <= _FURTHEST and longer[:stem] == shorter[:stem]


def _plain(word: str) -> str:
    return word.casefold().replace("-", "_")


def _fold(word: str) -> str:
    plain = re.sub(r"[^\w]+", "_", word.casefold()).strip("_")
    return plain.removesuffix("s") if len(plain) > 3 else plain
