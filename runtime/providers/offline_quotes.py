"""Quotes: verbatim pieces of files, how they are cut out and told apart from what has changed.

A quote is what stands in the file with its white space folded; what was left out inside it is marked `[…]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

import attrs

from runtime.context.terms import question_terms, stems_in, subjects

CUT = "[…]"
MOST_CHARS = 220
CELL_CHARS = 140

_PROSE = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ".mdx", ""})
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(`*\[]*[A-Z0-9])")
_REMARK = re.compile(r"^\s*(?:\"\"\"|'\'\'|#|//|/\*|\*\s|--\s|;)")
_REMARK_START = re.compile(r"^(?:\"\"\"|'\'\'|#+|//+|/\*+|--)\s*")
_REMARK_END = re.compile(r"\s*(?:\"\"\"|'\'\'|\*/)$")
_IMPORT = re.compile(r"^(?:from\s+\S+\s+import\b|import\s|#include\b|using\s+[\w.:]+;|use\s+[\w:{]+.*;)")
_MARK = re.compile(r"^(?:[-*+]|\d{1,3}[.)]|>|#{1,6})\s+")


@attrs.frozen
class Quote:
    """`text` stands in lines `line` to `end` of `path`; `heading` is what stands above it there."""

    path: str
    line: int
    end: int
    text: str
    heading: str = ""
    weak: bool = False


def fold(text: str) -> str:
    """The text with every run of white space made one blank."""
    return " ".join(text.split())


def is_verbatim(quote: str, text: str) -> bool:
    """Whether the pieces of a quote stand in this text, in order."""
    folded = fold(text)
    at = 0
    for piece in quote.split(CUT):
        if not piece.strip():
            continue
        found = folded.find(piece.strip(), at)
        if found < 0:
            return False
        at = found + len(piece.strip())
    return bool(quote.replace(CUT, "").strip())


def share(question: str, quote: Quote) -> float:
    """The share of a question's subjects that a quote or its headings name; 1 where a question names none."""
    terms = subjects(question_terms(question))
    if not terms:
        return 1.0
    words = stems_in(f"{quote.text} {quote.heading} {quote.path}")
    return sum(term.stem in words for term in terms) / len(terms)


def cut_quote(path: str, lines: Mapping[int, str], heading: str, weights: Mapping[str, float]) -> Quote | None:
    """The piece of these lines that covers most of the weighted words, or None where they hold no text."""
    numbers = [number for number in sorted(lines) if lines[number].strip()]
    fenced = bool(numbers) and lines[numbers[0]].lstrip().startswith(("```", "~~~"))
    if fenced:
        numbers = [number for number in numbers if not lines[number].lstrip().startswith(("```", "~~~"))]
    numbers = [number for number in numbers if number not in _imports(lines)]
    if not numbers:
        return None
    if lines[numbers[0]].lstrip().startswith("|"):
        return Quote(path, numbers[0], numbers[0], _row(lines[numbers[0]]), heading)
    if PurePosixPath(path).suffix.lower() in _PROSE and not fenced:
        start, end, text = _prose([(number, lines[number]) for number in numbers], weights)
    else:
        above = stems_in(heading)
        left = {stem: weight / 2 if stem in above else weight for stem, weight in weights.items()}
        start, end, text = _code([(number, lines[number]) for number in numbers], left)
    return Quote(path, start, end, text, heading)


def _row(line: str) -> str:
    cells = [fold(cell) for cell in fold(line).strip("| ").split(" | ")]
    return " | ".join(_cut(cell, {}, CELL_CHARS) for cell in cells)


def _prose(lines: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> tuple[int, int, str]:
    """Whole sentences, the best ones first to be kept, as many neighbours as there is room for."""
    places: list[int] = []
    words: list[str] = []
    for number, line in lines:
        for word in line.split():
            places.append(number)
            words.append(word)
    text = " ".join(words)
    mark = _MARK.match(text)
    first = len(mark[0].split()) if mark else 0
    if len(words) > first and len(" ".join(words[first:])) <= MOST_CHARS:
        return places[first], places[-1], " ".join(words[first:])
    sentences: list[tuple[int, int]] = []
    at = first
    for sentence in _SENTENCE.split(" ".join(words[first:])):
        size = len(sentence.split())
        sentences.append((at, at + size))
        at += size
    best = max(range(len(sentences)), key=lambda each: (_covered(words, sentences[each], weights), -each))
    low, high = best, best
    while high + 1 < len(sentences) and _size(words, sentences[low][0], sentences[high + 1][1]) <= MOST_CHARS:
        high += 1
    while low > 0 and _size(words, sentences[low - 1][0], sentences[high][1]) <= MOST_CHARS:
        low -= 1
    start, end = sentences[low][0], sentences[high][1]
    return places[start], places[end - 1], _cut(" ".join(words[start:end]), weights, MOST_CHARS)


def _covered(words: Sequence[str], span: tuple[int, int], weights: Mapping[str, float]) -> float:
    inside = stems_in(" ".join(words[span[0] : span[1]]))
    return sum(weight for stem, weight in weights.items() if stem in inside)


def _size(words: Sequence[str], start: int, end: int) -> int:
    return sum(len(word) + 1 for word in words[start:end]) - 1


def _code(lines: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> tuple[int, int, str]:
    """One to three lines that cover most, fewer rather than more, remarks rather than statements."""
    unit = max(weights.values(), default=1.0)
    best = (float("-inf"), 0, 1)
    for start in range(len(lines)):
        for size in (1, 2, 3):
            window = lines[start : start + size]
            if len(window) < size or window[-1][0] - window[0][0] >= size + 1:
                break
            inside = stems_in(" ".join(line for _, line in window))
            value = sum(weight for stem, weight in weights.items() if stem in inside) - 0.55 * unit * (size - 1)
            value += 0.4 * unit * any(_REMARK.match(line) for _, line in window)
            if value > best[0] + 1e-9:
                best = (value, start, size)
    window = lines[best[1] : best[1] + best[2]]
    text = _bare(fold(" ".join(line for _, line in window)))
    return window[0][0], window[-1][0], _cut(text, weights, MOST_CHARS)


def _imports(lines: Mapping[int, str]) -> frozenset[int]:
    """The lines that only name what is used from elsewhere: they hold many words and say nothing."""
    found: set[int] = set()
    closing = ""
    for number in sorted(lines):
        line = lines[number].strip()
        if closing:
            found.add(number)
            closing = "" if closing in line else closing
        elif _IMPORT.match(line):
            found.add(number)
            closing = {"(": ")", "{": "}"}.get(line[-1:], "")
    return frozenset(found)


def _bare(text: str) -> str:
    """Code without the marks a remark begins and ends with."""
    bare = _REMARK_END.sub("", _REMARK_START.sub("", text))
    return bare or text


def _cut(text: str, weights: Mapping[str, float], most: int) -> str:
    """At most `most` characters of a text, from its first important word on if that lies too far behind."""
    if len(text) <= most:
        return text
    words = text.split(" ")
    start = 0
    wanted = next((at for at, word in enumerate(words) if any(stem in weights for stem in stems_in(word))), 0)
    if _size(words, 0, wanted + 1) > most * 2 // 3:
        start = max(0, wanted - 8)
    end = start + 1
    while end < len(words) and _size(words, start, end + 1) <= most:
        end += 1
    piece = " ".join(words[start:end])[:most].rstrip()
    return f"{CUT + ' ' if start else ''}{piece}{' ' + CUT if end < len(words) or len(piece) == most else ''}"


def without_repeats(quotes: Iterable[Quote]) -> tuple[Quote, ...]:
    """Quotes of which none is contained in an earlier one."""
    kept: list[Quote] = []
    for quote in quotes:
        if not any(quote.text.casefold() in each.text.casefold() for each in kept):
            kept.append(quote)
    return tuple(kept)
