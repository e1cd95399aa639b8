"""What the offline policy answers with: fixed phrases around verbatim quotes, each with where it stands.

Every line is a phrase of this file or a quote: nothing here makes a sentence of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from .offline_handover import Findings, closing, counted, unsearched
from .offline_quotes import Quote

COLUMN = 72
QUESTION_CHARS = 200

CONNECT = (
    "To connect a model: export ANTHROPIC_API_KEY=… (or OPENAI_…, OPENROUTER_…), or --base-url URL --wire openai-chat; "
    "elenco doctor tells more."
)
ONLY_QUOTES = f"offline/extract only quotes the files of this workspace. {CONNECT}"
CANNOT = (
    "offline/extract only quotes files; it cannot write, change, translate or calculate anything: connect a model for "
    "that (export ANTHROPIC_API_KEY=…, or --base-url URL --wire openai-chat; elenco doctor tells more)."
)
NO_SCHEMA = (
    "offline/extract only quotes files; it cannot fill in an output schema: connect a model for that "
    "(elenco doctor tells how)."
)
NO_ROLE = (
    "offline/extract only quotes files, and these tools give it no way to find or to check quotes: connect a model "
    "(elenco doctor tells how), or give the agent search_passages and read_file."
)
NO_QUOTES = (
    "offline/extract only quotes files, and this task holds no quotes to work with: ask the coordinator or the "
    "researcher, or connect a model (elenco doctor tells how)."
)
WEAK = "Weaker matches:"
UNCHECKED = "Not done: the quotes were not re-read from disk."
TOO_EARLY = "Not done: nothing had been found yet."


def digest(findings: Findings) -> str:
    """The final answer: the question, its quotes with `[path:line]`, and what was looked at."""
    asked = shown(findings.question)
    if not findings.quotes:
        return "\n".join((asked, nothing_found(findings), ONLY_QUOTES))
    strong = [quote for quote in findings.quotes if not quote.weak]
    weak = [quote for quote in findings.quotes if quote.weak]
    lines = [asked, *_quoted(strong)]
    if weak:
        lines += [WEAK, *_quoted(weak)]
    last = closing(findings)
    if findings.dropped:
        last += f" Dropped on re-reading: {counted(findings.dropped, 'quote')}."
    lines.append(last)
    if findings.reread is None:
        lines.append(UNCHECKED)
    return "\n".join(lines)


def nothing_found(findings: Findings) -> str:
    if findings.dropped:
        dropped = counted(findings.dropped, "quote")
        return f"Nothing found: {dropped} no longer stood in the files when re-read.{unsearched(findings)}"
    words = f" on: {', '.join(findings.missing)}" if findings.missing else ""
    where = f" Searched {counted(findings.files_searched, 'file')}." if findings.files_searched else ""
    return f"Nothing found{words}.{where}{unsearched(findings)}"


def failed(who: str, text: str) -> str:
    """A step that could not be done: who could not, and the first line of why."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return f"{who} could not answer: {first}"


def shown(question: str) -> str:
    """A question as it is told: a long one by its beginning, so that a hand-over is never cut."""
    if len(question) <= QUESTION_CHARS:
        return question
    return question[:QUESTION_CHARS].rsplit(" ", 1)[0] + " […]"


def _quoted(quotes: Sequence[Quote]) -> list[str]:
    """Citations stand in one column behind the quotes that leave room for it."""
    texts = [f'  "{quote.text}"' for quote in quotes]
    column = max((len(text) for text in texts if len(text) <= COLUMN), default=0)
    return [f"{text.ljust(column)}  [{quote.path}:{quote.line}]" for text, quote in zip(texts, quotes, strict=True)]
