"""The histograms of the GenAI conventions, counted from finished spans; pure."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from itertools import accumulate, repeat
from operator import mul

import attrs

from .spans import Attributes, Span, Value


@attrs.frozen
class Instrument:
    """One histogram: its name, unit and the upper bounds of its buckets."""

    name: str
    unit: str
    words: str
    bounds: tuple[float, ...]


def _doubling(first: float, count: int, factor: float = 2) -> tuple[float, ...]:
    return tuple(round(bound, 6) for bound in accumulate(repeat(factor, count - 1), mul, initial=first))


TOKENS = Instrument(
    "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", _doubling(1, 14, 4)
)
CALLS = Instrument("gen_ai.client.operation.duration", "s", "GenAI operation duration.", _doubling(0.01, 14))
FIRST = Instrument(
    "gen_ai.client.operation.time_to_first_chunk", "s", "Time to the first chunk of a response.", _doubling(0.01, 14)
)
AGENTS = Instrument("gen_ai.invoke_agent.duration", "s", "Duration of an agent's work.", _doubling(0.1, 13))
TOOLS = Instrument("gen_ai.execute_tool.duration", "s", "Duration of a tool call.", _doubling(0.01, 14))

_OF_CALLS = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model")
_OF_AGENTS = ("gen_ai.agent.name",)
_OF_TOOLS = ("gen_ai.tool.name", "gen_ai.tool.type")


@attrs.define
class Point:
    """What one histogram has counted for one set of attributes; `counts` has one more entry than there are bounds."""

    counts: list[int]
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, bounds: tuple[float, ...], value: float) -> None:
        self.counts[bisect.bisect_left(bounds, value)] += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)

    @property
    def count(self) -> int:
        return sum(self.counts)


class Metrics:
    """All histograms of one process, cumulative since it began."""

    def __init__(self) -> None:
        self._points: dict[tuple[Instrument, tuple[tuple[str, Value], ...]], Point] = {}

    def count(self, span: Span) -> None:
        """Take a finished span into account. Guessed tokens are not counted."""
        match span.operation:
            case "chat":
                self._record(CALLS, span.seconds, span, _OF_CALLS)
                if span.first is not None:
                    self._record(FIRST, span.first, span, _OF_CALLS)
                if "elenco.usage.estimated" not in span.attributes:
                    for kind in ("input", "output"):
                        if (tokens := span.attributes.get(f"gen_ai.usage.{kind}_tokens")) is not None:
                            self._record(TOKENS, float(str(tokens)), span, _OF_CALLS, {"gen_ai.token.type": kind})
            case "invoke_agent":
                self._record(AGENTS, span.seconds, span, _OF_AGENTS)
            case _:
                self._record(TOOLS, span.seconds, span, _OF_TOOLS)

    def points(self) -> Iterator[tuple[Instrument, list[tuple[Attributes, Point]]]]:
        """What has been counted, by instrument."""
        found: dict[Instrument, list[tuple[Attributes, Point]]] = {}
        for (instrument, attributes), point in self._points.items():
            found.setdefault(instrument, []).append((dict(attributes), point))
        yield from found.items()

    def _record(
        self,
        instrument: Instrument,
        value: float,
        span: Span,
        names: tuple[str, ...],
        more: Mapping[str, Value] | None = None,
    ) -> None:
        error = ("error.type",) if instrument is not TOKENS else ()
        attributes = {name: span.attributes[name] for name in (*names, *error) if name in span.attributes}
        key = (instrument, tuple(sorted({**attributes, **(more or {})}.items())))
        point = self._points.get(key)
        if point is None:
            point = self._points[key] = Point([0] * (len(instrument.bounds) + 1))
        point.add(instrument.bounds, value)
