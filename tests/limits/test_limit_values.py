"""Limits of several sources: how they compose, change, are written down and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import UsageError
from runtime.limits.limits import (
    CHILD_DEFAULTS,
    LIMIT_NAMES,
    ROOT_DEFAULTS,
    LimitName,
    Limits,
    amount_text,
    changed,
    count_text,
    needs_price,
    per_actor,
    stop_reason,
    tightest,
)

numbers = st.none() | st.integers(1, 1000)


def _limits(source: str, values: dict[str, Any]) -> Limits:
    return Limits(**values).said_by(source)


some_limits = st.builds(
    _limits,
    st.sampled_from(["--flag", "agents/a.md", "elenco.yaml", ""]),
    st.fixed_dictionaries(dict.fromkeys(LIMIT_NAMES, numbers)),
)


@given(st.lists(some_limits, max_size=4))
def test_the_tightest_wins_and_says_whose_it_is(several: list[Limits]) -> None:
    """Of each limit the smallest is kept, with the source of one that said so; none where nobody said anything."""
    found = tightest(*several)
    for name in LIMIT_NAMES:
        values = [value for limits in several if (value := limits.get(name)) is not None]
        assert min(values, default=None) == found.get(name)
        if values:
            assert found.source(name) in {each.source(name) for each in several if each.get(name) == min(values)}


@given(some_limits, some_limits)
def test_a_default_fills_gaps_and_tightens_nothing(chosen: Limits, default: Limits) -> None:
    """`--max-steps 300` is not held to the built-in 90."""
    found = chosen.or_else(default)
    for name in LIMIT_NAMES:
        wanted = chosen if chosen.get(name) is not None else default
        assert (wanted.get(name), wanted.source(name)) == (found.get(name), found.source(name))


@given(some_limits)
def test_limits_survive_json(limits: Limits) -> None:
    """What an event says of limits can be read back, sources included."""
    assert limits == Limits.from_json(json.loads(json.dumps(limits.as_json())))


def test_limits_of_a_newer_version_are_left_out() -> None:
    """An unknown name in a journal does not stop a resume."""
    assert Limits(max_steps=3) == Limits.from_json({"max_steps": 3, "max_smell": 4})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_steps", 0),
        ("max_steps", -1),
        ("max_steps", True),
        ("max_steps", 2.5),
        ("token_budget", "many"),
        ("max_depth", -1),
        ("timeout", 0),
        ("timeout", "long"),
        ("timeout", float("inf")),
        ("cost_budget", float("nan")),
        ("cost_budget", -0.01),
    ],
)
def test_what_can_be_no_limit_is_refused_by_name(name: str, value: Any) -> None:
    """A wrong value is an error that names the limit and the value."""
    values: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=name):
        Limits(**values)


def test_depth_width_tools_and_money_may_be_none_at_all() -> None:
    """Zero is a limit where nothing is a way to work."""
    assert Limits(max_depth=0, max_children=0, max_total_children=0, max_tool_calls=0, cost_budget=0) is not None


def test_changes_are_absolute_or_relative() -> None:
    """`+20` is that much more than now; a plain number is the new limit; the rest stays."""
    limits = Limits(max_steps=90, timeout=60.0, cost_budget=0.5).said_by("default")
    new = changed(limits, {"max_steps": "+20", "timeout": 90, "cost_budget": "+0.25"}, "resume")
    assert (110, 90, 0.75) == (new.max_steps, new.timeout, new.cost_budget)
    assert "resume" == new.source("max_steps")
    assert 50 == changed(limits, {"token_budget": "50"}, "resume").token_budget


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_stps": 3}, "unknown limit 'max_stps'; did you mean 'max_steps'"),
        ({"max_steps": "many"}, "max_steps must be a number, not 'many'"),
        ({"max_steps": "1.5"}, "max_steps must be a whole number"),
        ({"max_steps": "-3"}, "max_steps must be a whole number of at least 1"),
        ({"timeout": "nan"}, "timeout must be a positive number"),
        ({"token_budget": "+5"}, "token_budget has no limit that .5 could raise"),
    ],
)
def test_a_wrong_change_says_what_is_wrong(changes: dict[str, float | str], message: str) -> None:
    """Every mistake in a change of limits is a usage error that names it."""
    with pytest.raises(UsageError, match=message):
        changed(Limits(max_steps=90), changes, "resume")


def test_the_defaults_read_as_a_newcomer_sees_them() -> None:
    """90 steps, 200k tokens, 10 min."""
    assert "90 steps, 200k tokens, 10 min" == str(ROOT_DEFAULTS)
    assert "default" == ROOT_DEFAULTS.source("max_total_children")
    assert 90 == CHILD_DEFAULTS.max_steps


def test_each_actor_takes_over_what_counts_for_one_actor() -> None:
    """Of a run's own limits an actor gets steps and width; the sums are kept by the root for all."""
    run = Limits(max_steps=5, total_steps=9, token_budget=10, max_children=2).said_by("--max-steps")
    assert Limits(max_steps=5, max_children=2).said_by("--max-steps") == per_actor(run)


def test_every_limit_that_can_end_an_actor_has_a_reason() -> None:
    """Depth, width and concurrency refuse or make wait; all others have a reason a report can give."""
    ends = {name for name in LIMIT_NAMES if stop_reason(name) is not None}
    assert set(LIMIT_NAMES) - ends == {
        "max_depth",
        "max_children",
        "max_total_children",
        "max_concurrent_calls",
    }
    assert ("deadline", "token_budget") == (stop_reason("timeout"), stop_reason("input_budget"))


def test_a_cost_budget_anywhere_needs_a_price() -> None:
    """The predicate a run asks before it begins."""
    assert needs_price(Limits(), Limits(cost_budget=0.5))
    assert not needs_price(Limits(token_budget=3))


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_steps", 1, "1 step"),
        ("total_steps", 300, "300 steps in all"),
        ("token_budget", 18_400, "18.4k tokens"),
        ("token_budget", 1, "1 token"),
        ("input_budget", 950, "950 input tokens"),
        ("output_budget", 1, "1 output token"),
        ("output_budget", 1_200_000, "1.2M output tokens"),
        ("cost_budget", 0.2, "$0.20"),
        ("cost_budget", 0.0041, "$0.0041"),
        ("cost_budget", 0, "$0"),
        ("timeout", 600, "10 min"),
        ("timeout", 90, "90 s"),
        ("max_tool_calls", 2, "2 tool calls"),
        ("max_children", 1, "1 child at once"),
        ("max_total_children", 64, "64 children in all"),
        ("max_depth", 3, "3 levels below"),
        ("max_concurrent_calls", 2, "2 calls at once"),
    ],
)
def test_amounts_read_naturally(name: LimitName, value: float, text: str) -> None:
    """Each limit has its unit."""
    assert text == amount_text(name, value)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1000, "1k"), (31_249, "31.2k"), (999_949, "999.9k"), (999_950, "1M")]
)
def test_counts_keep_about_three_digits(value: int, text: str) -> None:
    """A count is as short as it can be read."""
    assert text == count_text(value)
