"""Why a text is not in a file, told so that the next try finds it: what differs, and the lines that come closest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

SHOWN_LINES = 12
MOST_PLACES = 3
_CANDIDATES = 40
_COMPARED_CHARS = 2000
_MOST_LINES = 200_000
_SHOWN_CHARS = 300
_NUMBERED = re.compile(r"\s*\d+\t")
_WORD = re.compile(r"\w+")
_ESCAPE = re.compile(r"\\(.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r"}


def hint(lines: Sequence[str], wanted: str) -> str:
    """What a person would say who sees both: `wanted` is not in the text of `lines` as it stands."""
    looked = wanted.strip("\n").split("\n")
    if not any(line.strip() for line in looked):
        return "It is only white space."
    if (found := _without_numbers(lines, looked)) is not None:
        return f"It holds the line numbers that read_file puts in front; without them it is at {_range(found)}."
    if (found := _unescaped(lines, wanted)) is not None:
        return f"It is escaped once too often: as plain text it is at {_range(found)}."
    blank = list(_places([_squeezed(line) for line in lines], [_squeezed(line) for line in looked]))
    if blank:
        more = f" (and {len(blank) - 1} more places)" if len(blank) > 1 else ""
        return f"Only white space differs from {_range((blank[0], len(looked)))}{more}:\n" + _shown(
            lines, blank[0], len(looked)
        )
    closest = _closest(lines, looked)
    if not closest:
        return "Nothing in the file is like it."
    texts = [_shown(lines, at, len(looked)) for at in closest]
    return "The closest lines are:\n" + "\n…\n".join(texts)


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last`, counted from 1, as read_file shows them; a long stretch is cut in the middle."""
    return _shown(lines, first - 1, last - first + 1)


def _range(found: tuple[int, int]) -> str:
    at, count = found
    return f"line {at + 1}" if count == 1 else f"lines {at + 1}-{at + count}"


def _shown(lines: Sequence[str], at: int, count: int) -> str:
    count = min(count, len(lines) - at)
    rows = [f"{at + i + 1}\t{_cut(lines[at + i])}" for i in range(min(count, SHOWN_LINES))]
    if count > SHOWN_LINES:
        rows.append(f"[{count - SHOWN_LINES} more lines]")
    return "\n".join(rows)


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + f" [... {len(line) - _SHOWN_CHARS} more]"


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _places(lines: Sequence[str], looked: Sequence[str]) -> Iterator[int]:
    """Where `looked` stands in `lines`, line by line."""
    count = len(looked)
    for at in range(len(lines) - count + 1):
        if lines[at] == looked[0] and list(lines[at : at + count]) == list(looked):
            yield at


def _without_numbers(lines: Sequence[str], looked: Sequence[str]) -> tuple[int, int] | None:
    if not all(_NUMBERED.match(line) for line in looked):
        return None
    return _found(lines, "\n".join(line.partition("\t")[2] for line in looked))


def _unescaped(lines: Sequence[str], wanted: str) -> tuple[int, int] | None:
    plain = _ESCAPE.sub(lambda found: _PLAIN.get(found[1], found[1]), wanted)
    return None if plain == wanted else _found(lines, plain)


def _found(lines: Sequence[str], wanted: str) -> tuple[int, int] | None:
    """Where a text stands: the index of its first line and how many it has."""
    looked = wanted.strip("\n")
    text = "\n".join(lines)
    at = text.find(looked) if looked.strip() else -1
    return None if at < 0 else (text.count("\n", 0, at), looked.count("\n") + 1)


def _closest(lines: Sequence[str], looked: Sequence[str]) -> list[int]:
    """Where the lines begin that are most like `looked`, best first; those that are hardly like it are left out."""
    weight = _weights(looked)
    scores = [sum(weight.get(word, 0.0) for word in set(_WORD.findall(line))) for line in lines[:_MOST_LINES]]
    count = len(looked)
    windows = _sums(scores, count)
    best = sorted((at for at, score in enumerate(windows) if score > 0), key=lambda at: -windows[at])[:_CANDIDATES]
    text = _compared(looked)
    rated = [(SequenceMatcher(None, text, _compared(lines[at : at + count])).ratio(), at) for at in best]
    found: list[int] = []
    for ratio, at in sorted(rated, key=lambda each: (-each[0], each[1])):
        if ratio >= 0.5 and all(abs(at - other) >= count for other in found) and len(found) < MOST_PLACES:
            found.append(at)
    return found


def _weights(looked: Iterable[str]) -> dict[str, float]:
    words = [word for line in looked for word in _WORD.findall(line)]
    return {word: float(len(word)) for word in words}


def _sums(scores: Sequence[float], count: int) -> list[float]:
    """The sum over each window of `count` lines; a file shorter than that is one window."""
    total = sum(scores[:count])
    sums = [total]
    for at in range(1, len(scores) - count + 1):
        total += scores[at + count - 1] - scores[at - 1]
        sums.append(total)
    return sums


def _compared(lines: Sequence[str]) -> str:
    return "\n".join(_squeezed(line) for line in lines)[:_COMPARED_CHARS]
