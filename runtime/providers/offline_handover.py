"""What the offline actors hand to each other: findings as plain text that a person can read in the log, and back.

Question: How are words split?
- parse.py:2: "return s.split()" under words
- README.md:9-10: "Words are separated by blanks." under Elenco > Words (weak)
2 quotes re-read, 0 dropped.
Read 2 files. Nothing found on: quoting.
"""

from __future__ import annotations

import re

import attrs

from .offline_quotes import Quote, fold

_QUOTE = re.compile(
    r"^- (?P<path>.+?):(?P<line>\d+)(?:-(?P<end>\d+))?: \"(?P<text>.*)\""
    r"(?: under (?P<heading>[^\"]*?))?(?P<weak> \(weak\))?$"
)
_QUESTION = re.compile(r"^Question: (.*)$")
_CLOSING = re.compile(
    r"^(Read|Searched) (\d+) files?\.(?: Not searched, too large: (\d+)\.)?(?: Nothing found on: (.*)\.)?$"
)
_REREAD = re.compile(r"^(\d+) quotes? re-read, (\d+) dropped\.$")


@attrs.frozen
class Findings:
    """What one actor hands to the next.

    `missing` are the words of the question that nothing was found on. `reread` counts the quotes that were read again
    from disk (None: not done), `dropped` those of them that no longer stood there. `closed` tells that a text really
    was a hand-over and not just any text. `left_out` counts the files that were not searched for their size.
    """

    question: str
    quotes: tuple[Quote, ...] = ()
    files_read: int = 0
    files_searched: int = 0
    missing: tuple[str, ...] = ()
    reread: int | None = None
    dropped: int = 0
    closed: bool = False
    left_out: int = 0


def render_findings(findings: Findings, lead: str = "") -> str:
    """Findings as the text of a task or a report; `lead` is a sentence before them."""
    lines = [lead] if lead else []
    lines.append(f"Question: {findings.question}")
    lines.extend(map(_line, findings.quotes))
    if findings.reread is not None:
        lines.append(f"{counted(findings.reread, 'quote')} re-read, {findings.dropped} dropped.")
    lines.append(closing(findings))
    return "\n".join(lines)


def closing(findings: Findings) -> str:
    """How much was looked at, and what was not there."""
    missing = f" Nothing found on: {', '.join(findings.missing)}." if findings.missing else ""
    missing = unsearched(findings) + missing
    if findings.files_read:
        return f"Read {counted(findings.files_read, 'file')}.{missing}"
    return f"Searched {counted(findings.files_searched, 'file')}.{missing}"


def unsearched(findings: Findings) -> str:
    """What the search left out, where it did: an answer may stand there."""
    return f" Not searched, too large: {findings.left_out}." if findings.left_out else ""


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_findings(text: str) -> Findings:
    """Read a hand-over back. Text without a question line is itself the question."""
    question: str | None = None
    quotes: list[Quote] = []
    counts = {"Read": 0, "Searched": 0}
    dropped = left_out = 0
    closed = False
    reread: int | None = None
    missing: tuple[str, ...] = ()
    other: list[str] = []
    for line in text.splitlines():
        if (found := _QUOTE.match(line)) is not None:
            quotes.append(
                Quote(
                    found["path"],
                    int(found["line"]),
                    int(found["end"] or found["line"]),
                    found["text"],
                    found["heading"] or "",
                    found["weak"] is not None,
                )
            )
        elif question is None and (found := _QUESTION.match(line)) is not None:
            question = found[1]
        elif (found := _REREAD.match(line)) is not None:
            reread, dropped = int(found[1]), int(found[2])
        elif (found := _CLOSING.match(line)) is not None:
            counts[found[1]], missing, closed = int(found[2]), _listed(found[4]), True
            left_out = int(found[3] or 0)
        else:
            other.append(line)
    asked = question if question is not None else " ".join(other)
    searched = counts["Searched"]
    return Findings(fold(asked), tuple(quotes), counts["Read"], searched, missing, reread, dropped, closed, left_out)


def _line(quote: Quote) -> str:
    lines = f"{quote.line}-{quote.end}" if quote.end != quote.line else str(quote.line)
    heading = fold(quote.heading.replace('"', "'"))
    under = f" under {heading}" if heading else ""
    return f'- {quote.path}:{lines}: "{quote.text}"{under}{" (weak)" if quote.weak else ""}'


def _listed(words: str | None) -> tuple[str, ...]:
    return tuple(words.split(", ")) if words else ()
