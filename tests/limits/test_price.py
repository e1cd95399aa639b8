"""What tokens cost: each once, at its own rate, and never more than was foreseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.limits.price import Price, to_pico, to_usd
from runtime.messages import Usage

rates = st.floats(0, 200).map(lambda rate: round(rate, 4))
prices = st.builds(Price, rates, rates, st.none() | rates, st.none() | rates)


def test_cached_tokens_are_billed_once_at_their_own_rate() -> None:
    """Of 2000 prompt tokens, 500 read from and 300 written to a cache, 1200 cost the plain rate."""
    price = Price(input=2.0, output=8.0, cached_input=0.5, cache_write=2.5)
    usage = Usage(input=2000, output=100, cached_input=500, cache_write=300)
    assert price.cost(usage) == pytest.approx((1200 * 2.0 + 500 * 0.5 + 300 * 2.5 + 100 * 8.0) / 1e6)


def test_without_cache_rates_a_cached_token_costs_the_plain_rate() -> None:
    """An unknown discount is none."""
    assert Price(2.0, 8.0).cost(Usage(1_000_000, 0, 400_000, 300_000)) == pytest.approx(2.0)


def test_usage_whose_parts_exceed_it_never_costs_less_than_nothing() -> None:
    """A provider that counts cached tokens beside the input does not make the rest negative."""
    assert Price(2.0, 8.0, 0.5).cost(Usage(10, 0, 9000)) == pytest.approx(9000 * 0.5 / 1e6)


@given(prices, st.integers(0, 10**6), st.integers(0, 10**5), st.floats(0, 1), st.floats(0, 1))
def test_no_usage_costs_more_than_its_worst_case(
    price: Price, tokens: int, output: int, cached: float, written: float
) -> None:
    """Whatever a cache did, the reservation in picodollars covers the bill."""
    read = int(tokens * cached)
    usage = Usage(tokens, output, read, int((tokens - read) * written))
    assert to_pico(price.cost(usage)) <= tokens * price.worst_input + output * price.worst_output


@given(st.integers(0, 10**15))
def test_money_survives_its_way_to_dollars_and_back(pico: int) -> None:
    """Up to a thousand dollars not a picodollar is lost."""
    assert pico == to_pico(to_usd(pico))
