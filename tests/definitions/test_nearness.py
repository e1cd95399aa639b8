"""Which known words a mistyped one was meant to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.parser import COMMANDS
from runtime.errors import did_you_mean
from runtime.nearness import letters_apart, misspelt, nearest


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("rn", COMMANDS, ["run", "runs"]),
        ("chek", COMMANDS, ["check"]),
        ("tial", COMMANDS, ["tail"]),
        ("agent", COMMANDS, ["agents"]),
        ("--model", ["--otel", "--help", "--json"], []),
        ("--Max_Step", ["--max-steps", "--total-steps"], ["--max-steps"]),
        ("--steps", ["--max-steps", "--total-steps", "--yes"], ["--max-steps", "--total-steps"]),
        ("serch", ["search_text", "search_web", "shell"], ["search_text", "search_web"]),
        ("file_read", ["read_file", "write_file"], ["read_file"]),
        ("desc", ["description", "model"], ["description"]),
        ("denied", ["allow", "ask", "deny"], ["deny"]),
        ("runtime", COMMANDS, []),
        ("nope", ["openai", "ollama"], []),
        ("x", ["y", "z"], []),
    ],
)
def test_the_words_that_are_nearest_are_all_named_and_none_that_is_far(
    word: str, known: list[str], meant: list[str]
) -> None:
    """All words that are equally near are named, and none that is far."""
    assert meant == nearest(word, known)


def test_a_hint_lists_what_is_equally_near() -> None:
    """A hint joins what is equally near, and is nothing where nothing is."""
    assert "; did you mean 'tail'?" == did_you_mean("tial", COMMANDS)
    assert "; did you mean 'run' or 'runs'?" == did_you_mean("rn", COMMANDS)
    assert "; did you mean 'a1', 'a2' or 'a3'?" == did_you_mean("a9", ["a1", "a2", "a3", "a4"])
    assert "" == did_you_mean("halt", COMMANDS)


@given(st.text(max_size=8), st.lists(st.text(max_size=8)))
def test_no_word_whatever_breaks_a_hint(word: str, known: list[str]) -> None:
    """Whatever is typed, what is named is known, and at most three words are."""
    found = nearest(word, known)
    assert set(found) <= set(known)
    assert len(found) <= 3
    assert not misspelt(word, known) or misspelt(word, known) == found


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_the_way_back_is_as_long(one: str, other: str) -> None:
    """Two words are as far apart one way as the other, and only equal ones not at all."""
    assert letters_apart(one, other) == letters_apart(other, one)
    assert (one == other) == (letters_apart(one, other) == 0)
