"""A ranking of passages for a question: BM25 over text, headings and path, with some files ranked below others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias

import attrs

from .passages import Passage, split_file
from .terms import Term, beginnings_of, question_terms, stems_found, stems_in, subjects, words_beginning

K1 = 1.2
B = 0.4
WORD_CHARS = 5
"""Letters and marks of a word, in prose as in code; blanks would count the indentation."""
HEADING_WEIGHT = 1.0
PATH_WEIGHT = 0.5
OPENING = 1.15
FENCED = 0.85
LEAST_WEIGHT = 0.5
"""What a word weighs at least: one that is in nearly every passage may still be what was asked about."""
NAMED_FILE = 2.0
"""What the passages of a file count more whose name the question mentions."""

LOW = 0.2
"""The rank of licences, lock files, change logs and test data."""

_DATA = re.compile(r"(^|/)(cases|fixtures|testdata|corpus|corpora|vendor|third_party|node_modules|snapshots)/", re.I)
_LOW = re.compile(
    r"(^|/)(licen[cs]e|copying|notice|authors|changelog|changes|history|news|code_of_conduct)(\.\w+)?$"
    r"|(^|/)(package-lock\.json|pnpm-lock\.yaml|go\.sum)$|\.lock$|\.min\.\w+$|\.svg$",
    re.I,
)
_TESTS = re.compile(r"(^|/)(tests?|spec|__tests__)/|(^|/)(test_[^/]*|[^/]*_test|[^/]*\.(test|spec))\.\w+$", re.I)
_SIDE = re.compile(r"(^|/)(bench|benchmarks|examples?|scripts|\.github|\.ci)/", re.I)
_README = re.compile(r"^readme(\.\w+)?$", re.I)
_IDENTIFIER = re.compile(r"\w_\w|[a-z][A-Z]|\w\.\w|^-{1,2}\w|\w\(")
_PROSE = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ".org", ".mdx"})


def prior(path: str) -> float:
    """How likely a file is to explain: a README most, licences, lock files and test data least."""
    if _DATA.search(path) or _LOW.search(path):
        return LOW
    if _TESTS.search(path):
        return 0.65
    if _SIDE.search(path):
        return 0.8
    if _README.match(path):
        return 1.2
    return 1.1 if is_prose(path) else 0.9


def is_prose(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in _PROSE


Counted: TypeAlias = tuple[int, Counter[str], Counter[str]]


@attrs.frozen(eq=False)
class IndexedFile:
    """A file's passages, and about how many words each holds. The words are counted when they are first asked for."""

    path: str
    prior: float
    path_words: Counter[str]
    passages: tuple[Passage, ...]
    sizes: tuple[int, ...]
    _counted: dict[tuple[Term, ...], list[Counted]] = attrs.field(
        factory=dict[tuple[Term, ...], "list[Counted]"], repr=False
    )

    def counted(self, terms: tuple[Term, ...], pattern: re.Pattern[str], beginnings: Sequence[str]) -> list[Counted]:
        """The number of each passage that may hold a term, with the terms in its text and in its heading counted.

        `pattern` finds the words that begin as the terms do, and `beginnings` are those. The last answer is kept.
        """
        found = self._counted.get(terms)
        if found is None:
            found = list[Counted]()
            headings: dict[str, Counter[str]] = {}
            for number, passage in enumerate(self.passages):
                words = _words(passage.text, pattern, beginnings)
                heading = headings.get(passage.heading)
                if heading is None:
                    heading = headings[passage.heading] = _words(passage.heading, pattern, beginnings)
                if words or heading:
                    found.append((number, words, heading))
            self._counted.clear()
            self._counted[terms] = found
        return found


_NO_WORDS: Counter[str] = Counter()


def _words(text: str, pattern: re.Pattern[str], beginnings: Sequence[str]) -> Counter[str]:
    if not text.isascii():
        return stems_in(text)
    lower = text.lower()
    for beginning in beginnings:
        if beginning in lower:
            return stems_found(pattern, text)
    return _NO_WORDS


def index_file(path: str, text: str) -> IndexedFile:
    """Split a file; its words are not counted yet, only about how many there are."""
    passages = tuple(split_file(path, text))
    sizes = tuple(1 + (len(each.text) - each.text.count(" ")) // WORD_CHARS for each in passages)
    return IndexedFile(path, prior(path), stems_in(path), passages, sizes)


@attrs.frozen(eq=False)
class Index:
    """What can be searched: files and their passages. The same files in any order give the same answers."""

    files: tuple[IndexedFile, ...]

    @classmethod
    def build(cls, files: Iterable[tuple[str, str]]) -> Index:
        """An index of `(path, text)` pairs; paths are relative, with `/` between their parts."""
        return cls.of(index_file(path, text) for path, text in files)

    @classmethod
    def of(cls, files: Iterable[IndexedFile]) -> Index:
        return cls(tuple(sorted(files, key=lambda file: file.path)))

    @property
    def passage_count(self) -> int:
        return sum(len(file.passages) for file in self.files)

    def frequencies(self, query: str) -> tuple[tuple[Term, int], ...]:
        """Each term of the query with the number of passages that hold it in their text or heading."""
        terms = question_terms(query)
        return tuple(zip(terms, self._frequencies(terms), strict=True))

    def search(self, query: str, top: int = 8) -> list[Passage]:
        """The passages that fit the query best, best first; ties go by path and line.

        A query that names no subject ("what is this?") is answered from the beginning of the page that explains most.
        """
        terms = question_terms(query)
        named = self._named(query)
        searched = self.files if not named else tuple(file for file in self.files if file.path in named)
        if not _beyond(subjects(terms), searched if named else ()):
            return _overview(searched, top)
        weights = [
            term.weight * max(LEAST_WEIGHT, idf(count, self.passage_count))
            for term, count in zip(terms, self._frequencies(terms), strict=True)
        ]
        average = max(1.0, sum(sum(file.sizes) for file in self.files) / max(1, self.passage_count))
        found: list[Passage] = []
        for file in self.files:
            factor = file.prior * (NAMED_FILE if file.path in named else 1.0)
            for passage, score in _scores(file, terms, weights, average):
                found.append(attrs.evolve(passage, score=score * factor))
        found.sort(key=lambda passage: (-passage.score, passage.path, passage.start_line))
        return found[:top]

    def _frequencies(self, terms: Sequence[Term]) -> list[int]:
        counts = [0] * len(terms)
        stems = [term.stem for term in terms]
        beginnings = _beginnings(terms)
        pattern = words_beginning(beginnings)
        for file in self.files:
            for _, words, heading in file.counted(tuple(terms), pattern, beginnings):
                for position, stem in enumerate(stems):
                    if stem in words or stem in heading:
                        counts[position] += 1
        return counts

    def _named(self, query: str) -> frozenset[str]:
        """The files a query mentions by path or name."""
        mentioned = {word.strip("`'\"()[]<>,;:?!").removesuffix(".").removeprefix("./") for word in query.split()}
        mentioned = {word for word in mentioned if "." in word or "/" in word}
        whole = frozenset(file.path for file in self.files if file.path in mentioned)
        return whole or frozenset(file.path for file in self.files if file.path.rsplit("/", 1)[-1] in mentioned)


def idf(count: int, passages: int) -> float:
    """How much a word tells that `count` of all passages hold."""
    return math.log(1 + (passages - count + 0.5) / (count + 0.5))


def _beginnings(terms: Sequence[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(beginning for term in terms for beginning in beginnings_of(term.stem)))


def _beyond(terms: Sequence[Term], named: Sequence[IndexedFile]) -> bool:
    """Whether terms are left beside those that merely spell the names of these files."""
    return any(not any(term.stem in file.path_words for file in named) for term in terms)


def _scores(
    file: IndexedFile, terms: Sequence[Term], weights: Sequence[float], average: float
) -> Iterable[tuple[Passage, float]]:
    in_path = [PATH_WEIGHT if term.stem in file.path_words else 0.0 for term in terms]
    total = sum(weights)
    whole = _identifiers(terms, weights)
    beginnings = _beginnings(terms)
    for number, words, heading in file.counted(tuple(terms), words_beginning(beginnings), beginnings):
        passage = file.passages[number]
        score = 0.0
        covered = 0.0
        length = K1 * (1 - B + B * file.sizes[number] / average)
        for position, term in enumerate(terms):
            inside = words.get(term.stem, 0)
            above = heading.get(term.stem, 0)
            if not inside and not above:
                continue
            count = inside + (HEADING_WEIGHT * (1 + above) / 2 if above else 0.0) + in_path[position]
            score += weights[position] * count * (K1 + 1) / (count + length)
            covered += weights[position]
        for name, weight in whole:
            if name in passage.text:
                score += weight
        if covered:
            yield passage, score * (0.4 + 0.6 * covered / total) * _form(passage, terms)


def _form(passage: Passage, terms: Sequence[Term]) -> float:
    """A sentence is about what it begins with; a fenced example shows more than it tells."""
    first = passage.text.lstrip()[:60]
    if first.startswith(_FENCES):
        return FENCED
    opening = stems_in(" ".join(first.split()[:3]))
    return OPENING if any(term.stem in opening for term in terms if term.weight == 1.0) else 1.0


def _identifiers(terms: Sequence[Term], weights: Sequence[float]) -> list[tuple[str, float]]:
    """The names a question spells as code does, with what their parts weigh: whoever has the very name comes first."""
    names: dict[str, float] = {}
    for term, weight in zip(terms, weights, strict=True):
        if _IDENTIFIER.search(term.word):
            names[term.word.removesuffix("()")] = names.get(term.word.removesuffix("()"), 0.0) + weight
    return list(names.items())


def _overview(files: Sequence[IndexedFile], top: int) -> list[Passage]:
    """The first paragraphs of the page that explains most, then the first one of each further page."""
    pages = [file for file in files if is_prose(file.path) and file.prior > LOW] or files
    ranked = sorted(pages, key=lambda file: (-file.prior, file.path.count("/"), file.path))
    found: list[Passage] = []
    for place, file in enumerate(ranked[:top]):
        explaining = [passage for passage in file.passages if _explains(passage)] or list(file.passages)
        found.extend(
            attrs.evolve(passage, score=file.prior / (1 + place))
            for passage in explaining[: max(1, top // 2) if place == 0 else 1]
        )
    return found[:top]


def _explains(passage: Passage) -> bool:
    first = passage.text.lstrip()
    return len(passage.text.split()) >= 8 and not first.startswith(_NO_PARAGRAPH)


_FENCES = ("```", "~~~")
_NO_PARAGRAPH = (*_FENCES, "|", "<", "[!", "![", "#!", "- ", "* ", "+ ")
