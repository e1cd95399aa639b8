"""How words become search terms."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.terms import _ENDINGS as ENDINGS  # pyright: ignore[reportPrivateUsage]
from runtime.context.terms import _IRREGULAR as IRREGULAR  # pyright: ignore[reportPrivateUsage]
from runtime.context.terms import (
    beginnings_of,
    question_terms,
    split_words,
    stem,
    stems_found,
    stems_in,
    subjects,
    words_beginning,
)


@pytest.mark.parametrize(
    "family",
    [
        "test tests tested testing",
        "retry retries retried retrying",
        "configure configures configured configuration configurable",
        "migrate migration migrations",
        "verify verifies verified verification",
        "cancel cancelled cancelling cancellation",
        "write writes writing written wrote writer",
        "fail fails failed failing failure",
        "exceed exceeds exceeded",
        "keep kept",
        "run ran running",
    ],
)
def test_the_forms_of_a_word_are_one(family: str) -> None:
    """The forms of a word are one term."""
    assert 1 == len({stem(word) for word in family.split()})


@pytest.mark.parametrize("pair", ["use user", "status state", "process processor_count", "order orchard"])
def test_different_words_stay_apart(pair: str) -> None:
    """Words that only begin alike stay apart."""
    one, other = pair.split()
    assert stem(one) != stem(other)


def test_identifiers_are_taken_apart() -> None:
    """Identifiers are taken apart at underscores, capitals and digits."""
    assert ["read", "File", "at", "2", "HTTP", "Server", "x"] == split_words("readFile_at2 HTTPServer.x")


def test_accents_and_other_scripts_are_searchable() -> None:
    """Accents are folded, and scripts without blanks are searched by pairs."""
    assert stems_in("café") == stems_in("cafe")
    assert ["日本", "本語"] == split_words("日本語")


def test_function_words_carry_nothing_and_common_ones_little() -> None:
    """Function words carry nothing, and words like `project` little."""
    terms = question_terms("What doors does this project make, and where are they painted?")
    assert ["doors", "project", "make", "painted"] == [term.word for term in terms]
    assert ["doors", "painted"] == [term.word for term in subjects(terms)]
    assert () == question_terms("What is it, and why don't they?")


def test_a_term_is_shown_as_it_was_written() -> None:
    """A term is shown as the whole name it was part of."""
    assert {"read_file", "OAuth"} == {term.word for term in question_terms("`read_file`, OAuth?")}


@given(st.text(max_size=60))
def test_every_question_has_each_term_once(question: str) -> None:
    """Every text at all gives terms, each stem once, each found in the text itself."""
    terms = question_terms(question)
    assert len(terms) == len({term.stem for term in terms})
    assert {term.stem for term in terms} <= set(stems_in(question)) | set(stems_in(question.replace("’", "'")))


@settings(max_examples=500)
@given(
    st.text("abcdefghiklmnoprstuvxyz", min_size=1, max_size=6),
    st.sampled_from([*(each for each, _ in ENDINGS), "ied", "ies", "s", "xes", "ification", ""]),
)
def test_every_word_begins_as_its_stem_says(start: str, ending: str) -> None:
    """A word begins with one of its stem's beginnings, so a text that holds none of them does not hold the word."""
    assert (start + ending).startswith(beginnings_of(stem(start + ending)))


@pytest.mark.parametrize("word", sorted({*IRREGULAR, *IRREGULAR.values(), "tries", "verification", "movies", "a", "y"}))
def test_every_bent_word_begins_as_its_stem_says(word: str) -> None:
    """Bent words are among the beginnings of their stem, and so are the words they are bent from."""
    assert word.startswith(beginnings_of(stem(word)))


@settings(max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            [
                "fail",
                "Fail",
                "FAIL",
                "failing",
                "a",
                "A",
                "ed",
                "i",
                "x",
                "X",
                "1",
                "12",
                "retries",
                "_",
                ".",
                "\n",
                "-",
                "é",
                "model",
                "cal",
                "call",
            ]
        )
    ).map("".join)
    | st.text("aAbB1_ ", max_size=12),
    st.sampled_from(["fail", "a", "x", "12", "1", "retri", "model", "b", "ab", "call", "aa"]),
)
def test_only_the_words_of_a_stem_are_counted_and_all_of_them(text: str, wanted: str) -> None:
    """Counting the words that begin as a stem's do gives as many of it as counting all words."""
    if text.isascii():
        assert stems_found(words_beginning(beginnings_of(wanted)), text)[wanted] == stems_in(text)[wanted]
