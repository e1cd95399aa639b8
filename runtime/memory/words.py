"""What facts are searched by: the stems of their words. Any text is a question, none is query syntax. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from runtime.context.terms import question_terms, split_words, stem, subjects

How: TypeAlias = Literal["any", "all"]


def indexed(text: str) -> str:
    """A fact's stems, one blank between two."""
    return " ".join(_split(stem(word) for word in split_words(text)))


def asked(question: str) -> tuple[str, ...]:
    """The stems a question is about, each once: words that name a subject, else those that do least, else all."""
    terms = question_terms(question)
    return tuple(dict.fromkeys(_split(term.stem for term in subjects(terms) or terms))) or every(question)


def every(question: str) -> tuple[str, ...]:
    """All stems of a question, each once, however little they say."""
    return tuple(dict.fromkeys(_split(stem(word) for word in split_words(question))))


def match(stems: tuple[str, ...], how: How) -> str:
    """What FTS5 is asked: facts with any of the stems, or with all of them. There must be one at least."""
    return (" OR " if how == "any" else " AND ").join('"' + each.replace('"', '""') + '"' for each in stems)


def _split(stems: Iterable[str]) -> list[str]:
    # A ligature may come apart into several words.
    return [piece for each in stems for piece in each.split()]
