"""The researcher of the offline policy: search, read what was found, keep the quotes that add something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from runtime.context.found import Found, read_found, read_numbered
from runtime.context.passages import Passage
from runtime.context.terms import question_terms, stems_in, subjects
from runtime.messages import JsonObject

from .offline_choice import Weights, choose, overview, ranges, weigh, with_whole_tables
from .offline_digest import failed
from .offline_handover import Findings
from .offline_quotes import Quote, cut_quote, without_repeats
from .offline_transcript import Done, Transcript

SEARCH = "search_passages"
READ = "read_file"
TOP = 16
MOST_READS = 8
MOST_MISSING = 20
"""Words that nothing was found on, as far as they are told."""
WORD_CHARS = 60

_PUNCTUATION = "`'\"“”‘’()[]{}<>,;:?!.…*|"


@attrs.frozen
class Wanted:
    """Calls to make before there is more to say."""

    calls: tuple[tuple[str, JsonObject], ...]


@attrs.frozen
class Stuck:
    """Nothing can be found out; `text` says why."""

    text: str


def research(question: str, transcript: Transcript, *, reads: bool, last: bool = False) -> Wanted | Findings | Stuck:
    """The next calls, or what was found. `reads` tells whether files can be read, `last` that no call is possible."""
    searches = transcript.of(SEARCH)
    if not searches:
        if last:
            return Findings(question)
        return Wanted(((SEARCH, {"query": search_words(question), "top": TOP}),))
    answered = [read_found(done.result.content) for done in searches if done.ok]
    if not answered:
        return Stuck(failed(SEARCH, searches[-1].result.content))
    first = answered[0]
    terms = question_terms(search_words(question))
    weights = weigh(terms, [count for _, count in first.counts], first.passage_count, question)
    passages = _merged(answered)
    if len(searches) == 1 and not last:
        forgotten = _forgotten(question, first, passages)
        if forgotten:
            return Wanted(((SEARCH, {"query": forgotten, "top": TOP // 2}),))
    kept = overview(passages) if _asks_overview(question, passages) else choose(passages, weights)
    done = transcript.of(READ)
    if kept and reads and not done and not last:
        return Wanted(tuple((READ, arguments) for arguments in ranges(kept, weights)[:MOST_READS]))
    if kept and done and not any(each.ok for each in done):
        return Stuck(failed(READ, done[-1].result.content))
    lines = _lines_read(done)
    if lines:
        kept = with_whole_tables(kept, lines, weights)
    quotes = _quotes(kept, lines or _lines_found(passages), weights)
    return Findings(
        question,
        quotes,
        files_read=len(lines),
        files_searched=first.file_count,
        missing=_missing(question, quotes, first),
        left_out=first.left_out,
    )


def search_words(question: str) -> str:
    """The words of a question worth searching for, as they stand in it."""
    kept: list[str] = []
    for token in question.split():
        word = token.strip(_PUNCTUATION)
        if question_terms(word) and word not in kept:
            kept.append(word)
    return " ".join(kept) or "overview"


def _asks_overview(question: str, passages: Sequence[Passage]) -> bool:
    """Whether a question names no subject, or only the file that was found."""
    words = {term.word for term in subjects(question_terms(question))}
    return all(("." in word or "/" in word) and passages and passages[0].path.endswith(word) for word in words)


def _forgotten(question: str, found: Found, passages: Sequence[Passage]) -> str:
    """Words that some passage holds, but none of those found."""
    terms = question_terms(search_words(question))
    if len(found.counts) != len(terms):
        return ""
    seen = stems_in("\n".join(f"{passage.text}\n{passage.heading}" for passage in passages))
    return " ".join(
        term.word
        for term, (_, count) in zip(terms, found.counts, strict=True)
        if count and term.weight == 1.0 and term.stem not in seen
    )


def _merged(answers: Iterable[Found]) -> list[Passage]:
    """All passages found, those of the first search first, each once."""
    merged: dict[tuple[str, int, int], Passage] = {}
    for answer in answers:
        for passage in answer.passages:
            merged.setdefault((passage.path, passage.start_line, passage.end_line), passage)
    return list(merged.values())


def _lines_read(reads: Iterable[Done]) -> dict[str, dict[int, str]]:
    lines: dict[str, dict[int, str]] = {}
    for done in reads:
        path = (done.call.arguments or {}).get("path")
        if done.ok and isinstance(path, str):
            lines.setdefault(path, {}).update(read_numbered(done.result.content))
    return lines


def _lines_found(passages: Iterable[Passage]) -> dict[str, dict[int, str]]:
    lines: dict[str, dict[int, str]] = {}
    for passage in passages:
        lines.setdefault(passage.path, {}).update(enumerate(passage.text.split("\n"), start=passage.start_line))
    return lines


def _quotes(passages: Iterable[Passage], lines: Mapping[str, Mapping[int, str]], weights: Weights) -> tuple[Quote, ...]:
    quotes: list[Quote] = []
    for passage in passages:
        read = lines.get(passage.path, {})
        inside = {
            number: text
            for number in range(passage.start_line, passage.end_line + 1)
            if (text := read.get(number)) is not None and not weights.repeats(text)
        }
        quote = cut_quote(passage.path, inside, passage.heading, weights.each)
        if quote is not None:
            quotes.append(quote)
    return without_repeats(quotes)


def _missing(question: str, quotes: Sequence[Quote], found: Found) -> tuple[str, ...]:
    """The subjects no quote is about; without any quote, those no passage holds, or all of them."""
    seen = stems_in("\n".join(f"{quote.text}\n{quote.heading}\n{quote.path}" for quote in quotes))
    absent = [term for term in subjects(question_terms(question)) if term.stem not in seen]
    if not quotes:
        counts = dict(zip((term.stem for term in question_terms(search_words(question))), found.counts, strict=False))
        unknown = [term for term in absent if term.stem in counts and not counts[term.stem][1]]
        absent = unknown or absent
    words = list(dict.fromkeys(term.word.replace(",", "") for term in absent))
    told = [word if len(word) <= WORD_CHARS else f"{word[:WORD_CHARS]}…" for word in words[:MOST_MISSING]]
    return (*told, "…") if len(words) > MOST_MISSING else tuple(told)
