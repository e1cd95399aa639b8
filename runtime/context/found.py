"""What a search for passages answers, as text a model reads well, and the way back from the text to values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from .passages import Passage
from .terms import Term

LINE_CHARS = 400

_HEAD = re.compile(r"^(.+):(\d+)-(\d+)  (\d+\.\d+)(?:  (.*))?$")
_LINE = re.compile(r"^\s*(\d+)\t(.*)$")
_WORDS = re.compile(r"^Words: (.*); of (\d+) passages\.$")
_LEFT_OUT = re.compile(r"^Not searched, too large: (\d+)\.$")
_SEARCHED = re.compile(r"^Searched (\d+) files?\.$")


@attrs.frozen
class Found:
    """The passages of one search, how many of `passage_count` hold each word, how many files were searched.

    `left_out` counts the files that were not, for their size.
    """

    passages: tuple[Passage, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    passage_count: int = 0
    file_count: int = 0
    left_out: int = 0


def render_found(
    passages: Sequence[Passage],
    frequencies: Iterable[tuple[Term, int]],
    passage_count: int,
    file_count: int,
    left_out: int = 0,
) -> str:
    """Each passage as `path:start-end  score  heading` with its numbered lines; what was searched at the end."""
    lines: list[str] = []
    for passage in passages:
        head = f"{passage.path}:{passage.start_line}-{passage.end_line}  {passage.score:.2f}"
        lines.append(f"{head}  {passage.heading}" if passage.heading else head)
        lines.extend(
            f"{number}\t{_shortened(text)}"
            for number, text in enumerate(passage.text.split("\n"), start=passage.start_line)
        )
        lines.append("")
    if not passages:
        lines += ["No passage matches.", ""]
    counted = ", ".join(f"{term.word} {count}" for term, count in frequencies)
    if counted:
        lines.append(f"Words: {counted}; of {passage_count} passages.")
    if left_out:
        lines.append(f"Not searched, too large: {left_out}.")
    lines.append(f"Searched {file_count} {'file' if file_count == 1 else 'files'}.")
    return "\n".join(lines)


def read_found(text: str) -> Found:
    """The values a rendered search stands for; what is not understood is skipped."""
    passages: list[Passage] = []
    counts: list[tuple[str, int]] = []
    passage_count = file_count = left_out = 0
    body: list[str] = []

    def close() -> None:
        if passages:
            passages[-1] = attrs.evolve(passages[-1], text="\n".join(body))
        body.clear()

    for line in text.split("\n"):
        if numbered := _LINE.match(line):
            body.append(numbered[2])
        elif head := _HEAD.match(line):
            close()
            passages.append(Passage(head[1], int(head[2]), int(head[3]), head[5] or "", "", float(head[4])))
        elif words := _WORDS.match(line):
            pairs = (pair.rsplit(" ", 1) for pair in words[1].split(", "))
            counts = [(pair[0], int(pair[1])) for pair in pairs if len(pair) == 2 and pair[1].isdigit()]
            passage_count = int(words[2])
        elif unsearched := _LEFT_OUT.match(line):
            left_out = int(unsearched[1])
        elif searched := _SEARCHED.match(line):
            file_count = int(searched[1])
    close()
    return Found(tuple(passages), tuple(counts), passage_count, file_count, left_out)


def read_numbered(text: str) -> dict[int, str]:
    """The lines of a file as `read_file` shows them: a number, a tab, the line."""
    return {int(found[1]): found[2] for found in map(_LINE.match, text.split("\n")) if found}


def _shortened(line: str) -> str:
    return line if len(line) <= LINE_CHARS else line[:LINE_CHARS] + " […]"
