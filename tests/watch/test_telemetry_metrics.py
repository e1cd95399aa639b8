"""Histograms of spans: what the conventions ask for, counted as one would by hand."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from runtime.telemetry.metrics import AGENTS, CALLS, TOKENS, TOOLS, Metrics
from runtime.telemetry.spans import Span

SECONDS = st.lists(st.sampled_from([0.0, 0.01, 0.010001, 0.5, 1.28, 81.92, 1e4]), max_size=20)


def test_buckets_are_those_of_the_conventions() -> None:
    """The bounds are the published ones."""
    assert (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864) == TOKENS.bounds
    assert (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92) == CALLS.bounds
    assert (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6) == AGENTS.bounds


@given(SECONDS)
def test_every_span_is_in_the_bucket_it_fits(seconds: list[float]) -> None:
    """A value is counted in the first bucket whose bound it does not pass."""
    metrics = Metrics()
    for each in seconds:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
        metrics.count(Span(name="x", trace=b"", id=b"", start=0.0, end=each, attributes=attributes))
    counts = {instrument: points[0][1].counts for instrument, points in metrics.points()}
    bounds = (-1.0, *TOOLS.bounds, float("inf"))
    expected = [sum(low < each <= high for each in seconds) for low, high in itertools.pairwise(bounds)]
    assert ({TOOLS: expected} if seconds else {}) == counts
