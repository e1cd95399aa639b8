"""Words of a text as search terms: identifiers are split, endings folded, and words that carry no subject left out."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

import attrs

SOFT_WEIGHT = 0.25
"""What a word such as `project` counts beside a word that names a subject."""

_ASCII_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_UNICODE_WORDS = re.compile(r"[^\W\d_]+|[0-9]+")
_CAPITAL_AFTER_SMALL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CONTRACTED = re.compile(r"(?<=[A-Za-z])['’](?:s|t|re|ve|ll|d|m)\b")
_AROUND = "`'\"“”‘’()[]{}<>,;:?!.…*|"
_VOWEL = re.compile(r"[aeiouy]")

_STOP = """
a about after again all also am an and any are as at be because been before being between both but by can cannot
could did do does doing don done each either else ever every for from had has have having he her here him his how i
if in into is it its itself just may me might mine must my near neither never no nor not now of off often on once one
only or other our out over own per please same shall she should since so some still such than that the their them then
there these they this those through to too under until up upon us very via was we were what whatever when where
whether which while who whom whose why will with within without would yes yet you your
"""
_SOFT = """
able actually answer anything approach bit briefly case code codebase come describe detail details different easy
everything exactly example exist explain explanation file files find folder general generally get give given go
good happen have help important info information kind know like list long look main make many mean much need
new overview part piece place point possible project purpose question quick quickly really repo repository say see
show simple software something sort start sum summarise summarize summary take tell thing think time try two
type understand use used useful usually want way well work workspace
"""
_BENT = """
began begin, begun begin, bought buy, broke break, broken break, brought bring, built build, caught catch,
children child, chose choose, chosen choose, died die, drawn draw, fell fall, found find, gave give,
gone go, grew grow, grown grow, held hold, hidden hide, indices index, kept keep, knew know, known know, left leave,
lost lose, made make, met meet, paid pay, ran run, said say, sent send, shown show, slept sleep, spent spend,
spoken speak, stood stand, taken take, thought think, thrown throw, took take, used use, using use, went go,
woke wake, won win, written write, wrote write
"""

STOP_WORDS = frozenset(_STOP.split())
"""Words that name nothing, whatever the question."""
SOFT_WORDS = frozenset(word + ending for word in _SOFT.split() for ending in ("", "s", "d", "ed", "ing"))
"""Words that name something only in the want of better ones."""
_IRREGULAR = {pair.split()[0]: pair.split()[1] for pair in _BENT.split(",")}


@attrs.frozen
class Term:
    """A word of a question: as it stood there, as it is searched, and what it counts."""

    word: str
    stem: str
    weight: float = 1.0


class _Stems(dict[str, str]):
    """Stems by word, each worked out once: the same few thousand words make up a whole tree."""

    def __missing__(self, word: str) -> str:
        stem = _stem(word.lower())
        if len(self) < 200_000:
            self[word] = stem
        return stem


_STEMS = _Stems()


def stem(word: str) -> str:
    """A word without its ending: test, tests, tested and testing are one."""
    return _STEMS[word]


def beginnings_of(stem: str) -> tuple[str, ...]:
    """What the words of a stem begin with, in lower case: whatever of ASCII holds none of these holds no such word."""
    # Endings are taken off, and a `y` or `i` may have been put in the place of one.
    regular = stem[:-1] if len(stem) > 1 and stem[-1] in "iy" else stem
    return (regular, *_BENT_WORDS.get(stem, ()))


@lru_cache(maxsize=8)
def words_beginning(beginnings: tuple[str, ...]) -> re.Pattern[str]:
    """What finds those words of an ASCII text, split as `split_words` does, that begin like this in any case."""
    forms: list[str] = []
    firsts: set[str] = set()
    for beginning in dict.fromkeys(beginnings):
        first, rest = beginning[:1], beginning[1:]
        if beginning.isascii() and beginning.isdigit():
            forms.append(f"(?<![0-9].)(?<={first}){rest}[0-9]*")
        elif beginning.isascii() and beginning.isalpha():
            forms.append(f"(?<={first})(?<![A-Za-z].){rest}[a-z]*")
            forms.append(f"(?<={first.upper()}){rest}[a-z]{'*' if rest else '+'}")
            forms.append(f"(?<={first.upper()})(?<![A-Z].){rest.upper()}[A-Z]*(?![a-z])")
        else:
            continue
        firsts |= {first, first.upper()}
    # A class of first letters in front is what lets the search run over everything else at once.
    return re.compile(f"[{''.join(sorted(firsts))}](?:{'|'.join(forms)})" if forms else "(?!)")


def split_words(text: str) -> list[str]:
    """The words of prose or code, identifiers taken apart: `readFile_at2` is read, File, at, 2."""
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    words: list[str] = []
    for word in _UNICODE_WORDS.findall(text):
        if word.isascii():
            words.extend(_ASCII_WORDS.findall(word))
        elif _WIDE.search(word):
            words.extend(_pairs(word))
        else:
            words.extend(_CAPITAL_AFTER_SMALL.split(_without_accents(word)))
    return words


def stems_in(text: str) -> Counter[str]:
    """How often each stem occurs in a text."""
    return Counter(map(_STEMS.__getitem__, split_words(text)))


def stems_found(pattern: re.Pattern[str], text: str) -> Counter[str]:
    """How often each stem occurs among the words a pattern finds in a text."""
    return Counter(map(_STEMS.__getitem__, pattern.findall(text)))


def question_terms(question: str) -> tuple[Term, ...]:
    """What a question asks about, in its order, each stem once; without function words."""
    terms: dict[str, Term] = {}
    for token in _CONTRACTED.sub("", question).split():
        shown = token.strip(_AROUND)
        for word in split_words(token):
            lower = word.lower()
            if lower in STOP_WORDS or (len(lower) == 1 and lower.isascii() and not lower.isdigit()):
                continue
            key = stem(word)
            weight = SOFT_WEIGHT if lower in SOFT_WORDS else 1.0
            if key not in terms or terms[key].weight < weight:
                terms[key] = Term(shown, key, weight)
    return tuple(terms.values())


def subjects(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms that name a subject."""
    return tuple(term for term in terms if term.weight == 1.0)


def _pairs(word: str) -> list[str]:
    """Scripts without blanks are searched by pairs of characters."""
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def _without_accents(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))


def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    if len(word) < 4 or not word.isascii() or word.isdigit():
        return word
    word = _singular(word)
    if word.endswith("ied") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("ification"):
        word = word[:-7] + "y"
    for ending, least in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and not word.endswith("eed") and len(rest) >= least and _VOWEL.search(rest):
            word = rest
            break
    if word.endswith("ie"):
        word = word[:-2] + "y"
    elif len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 5 and word.endswith("ur"):
        word = word[:-2]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return f"{word[:-1]}i" if len(word) > 3 and word.endswith("y") else word


_ENDINGS = (
    ("ization", 3), ("isation", 3), ("ation", 4), ("ated", 4), ("ating", 4), ("ate", 4), ("ition", 4), ("ing", 3),
    ("edly", 3), ("ed", 3), ("ness", 4), ("ment", 4), ("able", 4), ("ible", 4), ("ion", 4), ("ally", 4), ("ly", 4),
    ("er", 4), ("or", 4), ("al", 5), ("ity", 4), ("ive", 4),
)  # fmt: skip


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


_BENT_WORDS: dict[str, tuple[str, ...]] = {}
for _word in _IRREGULAR:
    _BENT_WORDS[stem(_word)] = (*_BENT_WORDS.get(stem(_word), ()), _word)
