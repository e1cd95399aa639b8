"""What a parent's model reads below a child's text: what the child read, which of its results can be opened. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.report import Report

MOST_CHARS = 1200
"""Of each of the two lines."""
_HEAD = "-- on record of "
_DULL = "- on record of "


def with_brief(name: str, text: str, report: Report) -> str:
    """The text of child `name` with the lines the runtime adds; a text cannot bring such lines of its own."""
    text = text.replace(_HEAD, _DULL)
    lines: list[str] = []
    if report.sources:
        lines.append(f"read: {listed(map(str, report.sources), cut=report.sources_cut)}")
    if report.handles:
        kept = listed(f"{each.handle} {each.call}" for each in reversed(report.handles))
        lines.append(f"kept whole, for read_result and attach: {kept}")
    if not lines:
        return text
    return "\n".join((text, "", f"{_HEAD}{name} --", *lines))


def without_brief(text: str) -> str:
    """The text without those lines."""
    return text.partition(f"\n\n{_HEAD}")[0]


def listed(words: Iterable[str], *, cut: bool = False) -> str:
    """As many as there is room for, and how many are left out."""
    shown: list[str] = []
    left, more = MOST_CHARS, 0
    for word in map(_flat, words):
        if more or len(word) + 2 > left:
            more += 1
        else:
            shown.append(word)
            left -= len(word) + 2
    if cut or more:
        shown.append("more that is not listed" if cut else f"{more} more")
    return "; ".join(shown)


def _flat(word: str) -> str:
    """A name as it can stand in one line."""
    return word if word.isprintable() else "".join(char if char.isprintable() else "?" for char in word)
