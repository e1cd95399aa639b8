"""What runs have spent, by day, agent and model, folded from their records; pure.

What a fork or an import copied from another run was spent there, and counts there alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from runtime.events import (
    ActorStarted,
    BudgetSettled,
    ModelRequested,
    Record,
    RunForked,
    RunImported,
)
from runtime.messages import JsonObject

TYPES = tuple(each.type for each in (ActorStarted, BudgetSettled, ModelRequested, RunForked, RunImported))
"""The events that tell what a run has spent."""
QUARTER = 900
"""Seconds; every time zone begins its day at a whole quarter of an hour."""
DAY = 86_400

Place: TypeAlias = tuple[int, str, str]
"""Which quarter of an hour since the epoch, which agent, which model."""


@attrs.frozen
class Spent:
    """Tokens, and USD as far as a price was known; `unpriced` counts the calls of which none was."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Spent) -> Spent:
        mine, theirs = attrs.astuple(self), attrs.astuple(other)
        return Spent(*(one + another for one, another in zip(mine, theirs, strict=True)))


@attrs.define
class RunSpending:
    """One run's spending so far; feed it the run's events of `TYPES` in order."""

    spent: dict[Place, Spent] = attrs.Factory(dict[Place, Spent])
    _agents: dict[str, str] = attrs.Factory(dict[str, str])
    _models: dict[str, str] = attrs.Factory(dict[str, str])

    def add(self, record: Record) -> None:
        """Take the next record."""
        match event := record.event:
            case ActorStarted():
                self._agents[event.actor] = event.agent
                self._models[event.actor] = event.model
            case ModelRequested():
                self._models[event.actor] = event.model
            case RunForked() | RunImported():
                self.spent.clear()
            case BudgetSettled():
                agent = self._agents.get(event.actor, event.actor.rpartition("/")[2])
                place = (int(record.at // QUARTER), agent, self._models.get(event.actor, ""))
                self.spent[place] = self.spent.get(place, Spent()) + _of(event)
            case _:
                pass


def _of(event: BudgetSettled) -> Spent:
    usage = event.usage
    return Spent(
        calls=1,
        input=usage.get("input", 0),
        output=usage.get("output", 0),
        cached=usage.get("cached_input", 0),
        cost_usd=event.cost_usd or 0.0,
        unpriced=int(event.cost_usd is None),
    )


def by_day(runs: Mapping[str, RunSpending], offset: int) -> JsonObject:
    """All runs' spending by day, agent and model, newest day first; the viewer is `offset` minutes east."""
    rows: dict[tuple[int, str, str], Spent] = {}
    seen: dict[tuple[int, str, str], set[str]] = {}
    for run_id, run in runs.items():
        for (quarter, agent, model), spent in run.spent.items():
            place = ((quarter * QUARTER + offset * 60) // DAY, agent, model)
            rows[place] = rows.get(place, Spent()) + spent
            seen.setdefault(place, set()).add(run_id)
    ordered = sorted(rows, key=lambda place: (-place[0], *place[1:]))
    return {
        "offset": offset,
        "rows": [
            {"day": _date(place[0]), "agent": place[1], "model": place[2], **_row(rows[place], seen[place])}
            for place in ordered
        ],
        "total": _row(sum(rows.values(), Spent()), set[str]().union(*seen.values())),
    }


def _row(spent: Spent, runs: Iterable[str]) -> JsonObject:
    return {"runs": len(set(runs)), **attrs.asdict(spent)}


def _date(day: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()
