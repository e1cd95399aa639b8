"""When a failed model call is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.model import ErrorKind, ProviderError
from runtime.providers.retry import ATTEMPTS, MOST_RETRY_AFTER, MOST_WAIT, GiveUp, Retry, decide


def error(kind: ErrorKind = "overloaded", retryable: bool = True, after: float | None = None) -> ProviderError:
    return ProviderError(kind, "no", retryable=retryable, retry_after=after)


def test_what_cannot_heal_is_never_tried_again() -> None:
    """What cannot heal is never tried again."""
    assert isinstance(decide(error("auth", retryable=False), 0, 0.5, None), GiveUp)


def test_a_refused_connection_is_over_within_six_seconds() -> None:
    """A refused connection is over within six seconds, three tries in all."""
    waits: list[float] = []
    while isinstance(verdict := decide(error("connect"), len(waits), 0.999, None), Retry):
        waits.append(verdict.wait)
    assert 2 == len(waits)
    assert sum(waits) < 6


def test_the_servers_own_word_counts_up_to_a_cap() -> None:
    """The server's own word on how long to wait counts, up to a cap."""
    verdict = decide(error("rate_limit", after=7), 0, 0, None)
    assert Retry(7.0, ATTEMPTS) == verdict
    assert isinstance(decide(error("rate_limit", after=MOST_RETRY_AFTER + 1), 0, 0, None), GiveUp)


def test_nobody_waits_past_the_deadline() -> None:
    """Nobody waits past the deadline."""
    assert isinstance(decide(error(), 0, 0.5, 0.5), GiveUp)


@given(st.integers(0, 20), st.floats(0, 1, exclude_max=True), st.one_of(st.none(), st.floats(0, 1e4)))
def test_tries_and_waits_are_bounded(attempt: int, chance: float, left: float | None) -> None:
    """Tries and waits are bounded whatever happens."""
    match decide(error(), attempt, chance, left):
        case Retry(wait=wait):
            assert attempt + 1 < ATTEMPTS
            assert 0 <= wait <= MOST_WAIT * 1.25
            assert left is None or wait < left
        case GiveUp(why=why):
            assert why


@pytest.mark.parametrize("attempt", range(ATTEMPTS - 1))
def test_waits_grow(attempt: int) -> None:
    """Waits double from try to try, with jitter around them."""
    verdict = decide(error(), attempt, 0.5, None)
    assert isinstance(verdict, Retry)
    assert 2.0**attempt == pytest.approx(verdict.wait)
