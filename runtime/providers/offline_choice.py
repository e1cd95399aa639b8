"""Which of the passages that were found the researcher of the offline policy reads and quotes: pure weighing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from runtime.context.bm25 import LEAST_WEIGHT, idf
from runtime.context.passages import Passage
from runtime.context.terms import Term, stems_in
from runtime.messages import JsonObject

MOST_QUOTES = 7
MOST_ROWS = 12
"""Rows of one table, or items of one list, that answer together are kept together up to this many."""
OVERVIEW = 3
"""How many paragraphs tell what a project or a file is about, before a glance at other pages."""
FOUND_SHARE = 0.45
"""A best passage that covers less of the question's weight than this is no find."""
LEAST_COUNT = 3
"""A word in fewer passages than this tells no more: one the files lack must not drown all others."""
MOST_SUBJECTS = 6
NEAR_LINES = 60
LEAST_QUESTION = 3
"""Fewer words are no question that somebody would write down word for word."""

_LIST_MARKS = ("|", "-", "*", "+")


@attrs.frozen
class Weights:
    """What each word of a question tells.

    `total` is what the MOST_SUBJECTS heaviest subjects tell together: other words only add to a share, and nobody
    answers a page of questions in one paragraph.
    """

    each: Mapping[str, float]
    subjects: frozenset[str]
    question: str = ""

    @property
    def total(self) -> float:
        return sum(sorted((self.each[stem] for stem in self.subjects), reverse=True)[:MOST_SUBJECTS])

    def share(self, stems: Iterable[str]) -> float:
        return sum(self.each[stem] for stem in stems) / self.total if self.subjects else 0.0

    def covered(self, text: str) -> frozenset[str]:
        """The words of the question that a text holds; one that repeats the question itself answers nothing by that."""
        if self.question:
            text = " ".join(text.split()).replace(self.question, "")
        words = stems_in(text)
        return frozenset(stem for stem in self.each if stem in words)

    def repeats(self, line: str) -> bool:
        """Whether a line only writes the question down."""
        return bool(self.question) and self.question in " ".join(line.split())


def weigh(terms: Sequence[Term], counts: Sequence[int], passages: int, question: str = "") -> Weights:
    """The rarer among all passages, the heavier; without counts all subjects are equal."""
    if len(counts) == len(terms):
        each = {
            term.stem: term.weight * max(LEAST_WEIGHT, idf(max(count, LEAST_COUNT), passages))
            for term, count in zip(terms, counts, strict=True)
        }
    else:
        each = {term.stem: term.weight for term in terms}
    folded = " ".join(question.split())
    return Weights(
        each,
        frozenset(term.stem for term in terms if term.weight == 1.0),
        folded if len(terms) >= LEAST_QUESTION else "",
    )


def choose(passages: Sequence[Passage], weights: Weights) -> list[Passage]:
    """The passages to quote, best first. Each adds coverage: words not yet covered, or not yet covered often.

    Rows of one table and items of one list that fit equally well stay together, in their own order.
    """
    covers = {passage: weights.covered(f"{passage.text}\n{passage.heading}") for passage in passages}
    shares = {passage: weights.share(covers[passage]) for passage in passages}
    most = max(shares.values(), default=0.0)
    if most < FOUND_SHARE:
        return []
    kept: list[Passage] = []
    counts = dict.fromkeys(weights.each, 0)
    for passage in passages:
        if passage in kept or len(kept) >= MOST_QUOTES:
            continue
        if passage.score < 0.3 * passages[0].score or shares[passage] < 0.55 * most:
            continue
        gain = sum(weights.each[stem] * 0.5 ** counts[stem] for stem in covers[passage])
        if gain < 0.2 * weights.total:
            continue
        for each in _equals(passage, passages, shares):
            if each not in kept:
                kept.append(each)
            for stem in covers[each]:
                counts[stem] += 1
    return kept


def overview(passages: Sequence[Passage]) -> list[Passage]:
    """What to quote where a question names no subject: the first page found, and the beginning of two more."""
    first = [passage for passage in passages if passage.path == passages[0].path]
    return [*first[:OVERVIEW], *(passage for passage in passages if passage not in first)][: OVERVIEW + 2]


def _equals(passage: Passage, passages: Iterable[Passage], shares: Mapping[Passage, float]) -> list[Passage]:
    """The passage with the other rows of its table, or items of its list, that fit as well."""
    mark = passage.text.lstrip()[:1]
    if not passage.heading or mark not in _LIST_MARKS:
        return [passage]
    equal = [
        each
        for each in passages
        if (each.path, each.heading, each.text.lstrip()[:1]) == (passage.path, passage.heading, mark)
        and shares[each] >= 0.8 * shares[passage]
    ][:MOST_ROWS]
    return sorted(equal, key=lambda each: each.start_line) if passage in equal else [passage]


# --- reading -----------------------------------------------------------------------------------------------------


def ranges(passages: Sequence[Passage], weights: Weights) -> list[JsonObject]:
    """The lines to read: passages that lie near each other in one file are read at once, rows with those around."""
    found: list[tuple[str, int, int]] = []
    for passage in sorted(passages, key=lambda each: (each.path, each.start_line)):
        around = MOST_ROWS if _found_by_heading(passage, weights) else 0
        start, end = max(1, passage.start_line - around), passage.end_line + around
        if found and found[-1][0] == passage.path and start - found[-1][2] <= NEAR_LINES:
            found[-1] = (passage.path, found[-1][1], max(found[-1][2], end))
        else:
            found.append((passage.path, start, end))
    rank = {passage.path: place for place, passage in reversed(list(enumerate(passages)))}
    found.sort(key=lambda each: (rank[each[0]], each[1]))
    return [{"path": path, "start": start, "end": end} for path, start, end in found]


def with_whole_tables(
    passages: Sequence[Passage], lines: Mapping[str, Mapping[int, str]], weights: Weights
) -> list[Passage]:
    """The passages, with the rows around those found by what stands above them, each table in its own order."""
    whole: list[Passage] = []
    for passage in passages:
        if any((each.path, each.start_line) == (passage.path, passage.start_line) for each in whole):
            continue
        if not _found_by_heading(passage, weights):
            whole.append(passage)
            continue
        read = lines.get(passage.path, {})
        whole.extend(
            attrs.evolve(passage, start_line=number, end_line=number, text=read[number])
            for number in _rows_around(read, passage.start_line)
            if number in read
        )
    return whole


def _found_by_heading(passage: Passage, weights: Weights) -> bool:
    """Whether a table row fits mostly by its headings, so that its neighbours fit just as well."""
    if not passage.text.lstrip().startswith("|"):
        return False
    above = weights.covered(passage.heading) & weights.subjects
    covered = weights.covered(f"{passage.text}\n{passage.heading}") & weights.subjects
    return bool(above) and weights.share(above) >= 0.5 * weights.share(covered)


def _rows_around(lines: Mapping[int, str], row: int) -> list[int]:
    """The rows of a table below its header, MOST_ROWS of them at most, `row` among them."""
    first = last = row
    while _is_row(lines.get(first - 1)) and last - first < MOST_ROWS - 1:
        first -= 1
    while _is_row(lines.get(last + 1)) and last - first < MOST_ROWS - 1:
        last += 1
    return list(range(first, last + 1))


def _is_row(line: str | None) -> bool:
    """Whether this is a row, and neither the rule below a header nor anything outside of a table."""
    return line is not None and line.lstrip().startswith("|") and bool(line.strip(" |:-"))
