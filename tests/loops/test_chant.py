"""When a stream is cut: text that repeats itself, found at any cut of the stream, and nothing else."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.limits.loops import ChantGuard, Stop

BLOCKS = [
    "Let me search for the function in the code. I will look at the caller next. ",
    "I need to check this again.\n\nThen I need to check that.\n\n",
    "No, wait. ",
    "the the the ",
    "I am looking for the place where rates are rounded, which should be in the module for rates, and then I will "
    "read the tests for it to see what they expect, before I change anything at all. ",
]
LEGIT = [
    "| id | state |\n|---|---|\n" + "".join(f"| {n} | ok |\n" for n in range(80)),
    "=" * 3000,
    "-----|-----|-----\n" * 60,
    "0, 0, 0, 0, " * 100,
    "```python\n" + "".join(f"    assert parse({n}) == {n * n}\n" for n in range(60)) + "```",
    "".join(f"{n}. Rename the field in part {n * 7 % 31} and run its tests.\n" for n in range(60)),
    "\n" * 2000,
    "".join(f"- src/module_{n}.py: reads the file, checks it and writes the result back\n" for n in range(50)),
]


def feed(text: str, cuts: list[int]) -> Stop | None:
    guard = ChantGuard()
    ends = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for start, end in pairwise(ends):
        found = guard.feed(text[start:end])
        if found is not None:
            return found
    return None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(BLOCKS), st.lists(st.integers(0, 10**6), max_size=60))
def test_chant_is_found_at_any_cut(block: str, cuts: list[int]) -> None:
    """Whatever pieces a chanting stream comes in, it is cut."""
    found = feed("Now I begin to work on the task. " + block * (2400 // len(block) + 12), cuts)
    assert isinstance(found, Stop)
    assert "repeats itself" in found.why


@pytest.mark.parametrize("text", LEGIT, ids=range(len(LEGIT)))
def test_tables_lists_and_code_are_no_chant(text: str) -> None:
    """What is regular without being stuck passes, whole and in small pieces."""
    assert feed(text, []) is None
    assert feed(text, list(range(0, len(text), 5))) is None


@pytest.mark.parametrize("block", BLOCKS)
def test_chant_is_cut_before_it_costs_much(block: str) -> None:
    """A stream is cut within two and a half thousand characters of chant."""
    guard = ChantGuard()
    text = block * 400
    cut = next(n for n, letter in enumerate(text) if guard.feed(letter) is not None)
    assert cut < 2500


def test_sentences_in_any_order_are_a_chant() -> None:
    """A handful of sentences that come again and again without an order is being stuck too."""
    said = ["Let me check the file.", "I should verify this once more.", "Now I look at the test."]
    text = "\n".join(said[(n * n + n // 3) % 3] for n in range(90))
    assert feed(text, []) is not None


def test_chant_in_the_middle_of_a_long_reply_is_found() -> None:
    """What was stuck is seen although the reply went on afterwards."""
    prose = "".join(f"Sentence {n} says something about part {n * 37 % 101}. " for n in range(60))
    assert feed(prose + BLOCKS[0] * 20 + prose, []) is not None


def test_stop_stays() -> None:
    """Whoever goes on feeding a stream that should be cut is told again."""
    guard = ChantGuard()
    assert guard.feed(BLOCKS[0] * 40) is not None
    assert guard.feed("and on") is not None
