"""Restart intensity and strategies as pure values, beside the naive model: a list of all times, counted anew."""

from hypothesis import given
from hypothesis import strategies as st

from actors import Intensity, Strategy
from actors._restart import RestartWindow, affected

gaps = st.lists(st.integers(min_value=0, max_value=8).map(float), max_size=30)


@given(gaps, st.integers(min_value=0, max_value=4), st.sampled_from([1.0, 3.0, 10.0]))
def test_a_restart_is_granted_exactly_while_the_period_has_room(
    gaps: list[float], restarts: int, period: float
) -> None:
    """A restart is granted exactly while fewer than `restarts` of them lie within the last `period` seconds."""
    window = RestartWindow(Intensity(restarts, period))
    granted: list[float] = []
    now = 100.0
    for gap in gaps:
        now += gap
        expected = len([time for time in granted if now - time < period]) < restarts
        after = window.after_failure(now)
        assert expected == (after is not None)
        if after is not None:
            granted.append(now)
            window = after
    assert len(window.times) <= restarts


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True), st.data())
def test_who_is_restarted_follows_the_strategy_and_keeps_the_order(order: list[str], data: st.DataObject) -> None:
    """Who is restarted follows the strategy, in start order."""
    crashed = data.draw(st.sampled_from(order))
    assert (crashed,) == affected(Strategy.ONE_FOR_ONE, order, crashed)
    assert tuple(order) == affected(Strategy.ONE_FOR_ALL, order, crashed)
    later = [name for name in order if order.index(name) >= order.index(crashed)]
    assert tuple(later) == affected(Strategy.REST_FOR_ONE, order, crashed)
