"""The guard against the recorded runs: every loop ended in time, no work stopped."""

from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest


@pytest.mark.parametrize("veto", [False, True], ids=["open", "veto"])
def test_every_loop_is_ended_in_time_and_no_work_is_stopped(
    traces: list[dict[str, Any]], replay: Callable[..., Any], veto: bool
) -> None:
    """Every recorded loop is nudged and ended within its bounds; no recorded work is blocked or stopped."""
    scores = [replay(trace, veto) for trace in traces]
    assert [] == [score for score in scores if not score.right]
    assert 63 == sum(score.loop for score in scores)
    assert 87 == sum(not score.loop for score in scores)


def test_work_is_hardly_ever_nudged(traces: list[dict[str, Any]], replay: Callable[..., Any]) -> None:
    """Where a careful person would not ask either, at most two runs in a hundred get a nudge."""
    scores = [replay(trace) for trace in traces if trace["label"] == "legit"]
    assert 0.02 >= mean(score.nudged_wrongly for score in scores)


def test_few_calls_are_wasted_before_the_end(traces: list[dict[str, Any]], replay: Callable[..., Any]) -> None:
    """A loop costs eight calls on average before the guard has ended it."""
    scores = [replay(trace) for trace in traces if trace["label"] == "loop"]
    assert 8 >= mean(score.wasted for score in scores)
