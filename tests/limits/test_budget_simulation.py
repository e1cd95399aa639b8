"""A small share of the million simulated calls of `bench/budget.py`, with a new seed each time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bench.budget import growth, simulate


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32))
def test_nothing_is_overspent_in_thousands_of_calls_with_honest_counts(seed: int) -> None:
    """Trees of actors with random limits never spend more than allowed, wait for ever, or lose their last turn."""
    figures = simulate(seed, 300)
    assert 0 == figures.overruns


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32))
def test_wrong_estimates_overspend_no_more_than_their_error(seed: int) -> None:
    """With inputs of half to twice their estimate, the excess is told, bounded, and the last of its scope."""
    assert simulate(seed, 300, wrong=(0.5, 2.0)).calls >= 300


def test_a_long_run_does_not_grow_its_ledger() -> None:
    """A thousand children that came and went leave nothing but their sums."""
    assert growth(1000) < 20_000
