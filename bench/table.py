"""Measured figures as a table: ours, the reference's, their ratio and what was aimed at; pure.

Nothing here judges: a target missed is a word in the table, never an error.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import attrs

Key: TypeAlias = tuple[str, str]
"""Subject and workload."""


@attrs.frozen
class Target:
    """One line: the figure `name` of `workload`, and what it should be at most.

    `most` bounds the ratio to the reference where `ratio` is set, else the figure itself; None only shows it.
    """

    workload: str
    name: str
    words: str
    most: float | None = None
    ratio: bool = False
    subject: str = "elenco"
    digits: int = 2


TARGETS = (
    Target("W1", "cpu_ms", "W1  CPU a step, durable journal, ms", 1.5, ratio=True),
    Target("W1", "cpu_ms", "W1  CPU a step, journal in memory, ms", 1.0, ratio=True, subject="elenco-memory"),
    Target("W1", "one_step_run_ms", "W1  a run of one step in all, ms"),
    Target("W6", "at_10_ms", "W6  CPU of step 10 of 200, ms"),
    Target("W6", "growth", "W6  step 190 to step 10", 1.2),
    Target("W2", "crowd_wall", "W2  200 children of one root, wall to the ideal", 2.2),
    Target("W2", "crowd_cpu_s", "W2  their CPU, s"),
    Target("W2", "connections", "W2  connections opened for 200 at once", 200, digits=0),
    Target("W2", "crowd_kb", "W2  memory a running agent, KB", 55, digits=0),
    Target("W2-runs", "crowd_wall", "W2  200 runs in one process, wall to the ideal"),
    Target("W2-runs", "crowd_cpu_s", "W2  their CPU, s"),
    Target("W2-runs", "crowd_kb", "W2  memory a run, KB", digits=0),
    Target("W3", "wall", "W3  three children at once, wall to the ideal", 1.06),
    Target("W3", "wall_in_all", "W3  the same, opening and closing the run included"),
    Target("W3", "call_steps", "W3  a child call beyond the child's own work, in steps", 0.3),
    Target("W3", "call_steps_in_all", "W3  a child call beyond the child's steps alone, in steps"),
    Target("W3", "round_ms", "W3  CPU of the round, ms"),
    Target("W4", "burst_us", "W4  CPU a delta of 20,000 at once, us", 1.6, ratio=True),
    Target("W4", "paced_us", "W4  CPU a delta that comes alone, us"),
    Target("actors", "idle_kb", "10,000 idle actors, KB each", 8, subject="actors"),
    Target("actors", "ask_us", "an ask beside a bare Trio slot and event, us", 2.0, ratio=True, subject="actors"),
    Target("imports", "runtime", "import runtime, ms", 1.7, ratio=True, subject="imports", digits=1),
    Target("imports", "help", "elenco --help, ms", 1.7, ratio=True, subject="imports", digits=1),
    Target("imports", "library", "from runtime import open_runtime, tool, ms", subject="imports", digits=1),
    Target("imports", "slow", "slow packages loaded by the first two", 0, subject="imports", digits=0),
)


@attrs.frozen
class Line:
    """What one target has come to. `range` are the least and the most of all repeats.

    `ratio` is the median of the repeats' own ratios: what was measured at about the same time is compared.
    """

    target: Target
    value: float
    range: tuple[float, float]
    reference: float | None
    ratio: float | None

    @property
    def kept(self) -> bool | None:
        """Whether the target was reached; None where nothing was aimed at or there is nothing to compare with."""
        reached = self.ratio if self.target.ratio else self.value
        return None if self.target.most is None or reached is None else reached <= self.target.most


def lines(runs: Mapping[Key, Sequence[Mapping[str, float]]], reference: str) -> list[Line]:
    """A line for each target that was measured, medians over the repeats, beside those of the subject `reference`.

    The figures of two subjects are compared in their order: the first repeat's with the first's.
    """
    found: list[Line] = []
    for target in TARGETS:
        values = _values(runs.get((target.subject, target.workload), ()), target.name)
        if not values:
            continue
        own = {"ask_us": "ask_bare_us", "idle_kb": "idle_bare_kb"}
        if target.subject in ("actors", "imports"):
            name = own.get(target.name, "reference" if target.ratio or target.name == "library" else "")
            others = _values(runs[target.subject, target.workload], name)
        else:
            others = _values(runs.get((reference, target.workload), ()), target.name)
        beside = statistics.median(others) if others else None
        ratios = [value / other for value, other in zip(values, others, strict=False) if other]
        ratio = statistics.median(ratios) if ratios else None
        found.append(Line(target, statistics.median(values), (min(values), max(values)), beside, ratio))
    return found


def _values(figures: Iterable[Mapping[str, float]], name: str) -> list[float]:
    return [each[name] for each in figures if name in each]


def text(lines: Iterable[Line], reference: str) -> str:
    """The table for a terminal; it is valid Markdown as well."""
    rows = [("", "Elenco", "range", reference, "ratio", "target", "")]
    for line in lines:
        target, digits = line.target, line.target.digits
        low, high = line.range
        most = "" if target.most is None else f"<= {target.most:g}{'x' if target.ratio else ''}"
        rows.append(
            (
                target.words,
                f"{line.value:,.{digits}f}",
                f"{low:,.{digits}f} to {high:,.{digits}f}" if high > low else "",
                "" if line.reference is None else f"{line.reference:,.{digits}f}",
                "" if line.ratio is None else f"{line.ratio:.2f}x",
                most,
                {True: "yes", False: "no", None: ""}[line.kept],
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def shown(row: Sequence[str]) -> str:
        first, *rest = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        return "| " + " | ".join(cells) + " |"

    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([shown(rows[0]), f"|{rule}|", *map(shown, rows[1:])])
