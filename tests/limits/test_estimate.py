"""Guessing the next request's size from the last one's usage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.limits.estimate import Gauge, byte_length, tokens_of
from runtime.messages import Usage


def test_the_first_call_is_guessed_at_half_its_bytes() -> None:
    """Nothing is known yet: UTF-8 bytes / 2, rounded up."""
    assert 3 == Gauge().add("hello").tokens()
    assert 3 == Gauge().add("häää"[:3]).tokens()
    assert 0 == Gauge().tokens()


def test_after_a_reply_only_what_was_added_is_guessed() -> None:
    """Last reported input and output are known; a result of 100 bytes adds 50."""
    gauge = Gauge().add("x" * 5000).after_reply(Usage(1200, 80)).add("y" * 100)
    assert 1200 + 80 + 50 == gauge.tokens()


def test_an_exact_count_goes_before_every_guess() -> None:
    """A provider that can count is believed."""
    assert 7 == Gauge(known=1000, added=50).tokens(7)
    assert 0 == Gauge(known=1000).tokens(0)


def test_a_reply_without_usage_adds_to_the_guess() -> None:
    """Unreported usage is not nothing: the request's guess stands and the reply comes on top."""
    gauge = Gauge().add("x" * 1000).after_unreported("z" * 20)
    assert 510 == gauge.tokens()


@given(st.lists(st.text(alphabet=st.characters(), max_size=20)))
def test_pieces_add_up_to_the_whole(pieces: list[str]) -> None:
    """Counted piece by piece or at once, the guess is the same; half a surrogate pair does not break it."""
    gauge = Gauge()
    for piece in pieces:
        gauge = gauge.add(piece)
    assert tokens_of("".join(pieces)) == gauge.tokens()


def test_half_a_surrogate_pair_has_a_length() -> None:
    """What cannot be written as UTF-8 is still counted."""
    assert 3 == byte_length("\ud83d")
