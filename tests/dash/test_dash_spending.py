"""Tokens and cost by day, agent and model: counted once, from the journals, in the viewer's days."""

from __future__ import annotations

import datetime
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runtime.dash.spending import RunSpending, by_day
from runtime.dash.usage import Usage as Spending
from runtime.events import (
    ActorStarted,
    BudgetSettled,
    Event,
    ModelRequested,
    Record,
    RunForked,
    RunStarted,
)
from runtime.journal import RunFolder, State, create_run, open_journal, open_state
from runtime.journal.index import delete
from runtime.messages import Usage
from runtime.record import usage_to_json

Node = Callable[..., list[Any]]
NOON = 1_790_000_100.0


def started(actor: str, agent: str, model: str) -> ActorStarted:
    parent = actor.rpartition("/")[0] or None
    return ActorStarted(
        actor=actor,
        agent=agent,
        number=0,
        parent=parent,
        task="t",
        model=model,
        limits={},
        prompt=(),
        tools=(),
    )


def settled(actor: str, tokens: int, cost: float | None) -> BudgetSettled:
    return BudgetSettled(actor=actor, id=0, usage=usage_to_json(Usage(tokens, 1, cached_input=2)), cost_usd=cost)


async def write(folder: RunFolder, at: float, *events: Event) -> None:
    async with open_journal(folder, clock=lambda: at) as journal:
        for event in events:
            journal.append(event)


BEGUN = (RunStarted(task="t", agent="lead", model="m/x", limits={}), started("lead", "lead", "m/x"))
SETTLEMENTS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.floats(0, 2e9),
        st.sampled_from(["lead", "lead/worker-1"]),
        st.sampled_from(["m/x", "m/y"]),
        st.integers(0, 1000),
        st.one_of(st.none(), st.floats(0, 5)),
    ),
    max_size=20,
)


@given(SETTLEMENTS, st.integers(-14 * 4, 14 * 4).map(lambda quarters: quarters * 15))
def test_every_settlement_counts_in_the_viewers_day(
    made: Sequence[tuple[str, float, str, str, int, float | None]], offset: int
) -> None:
    """Each settlement counts once: on the viewer's day, for the actor's agent, for the model that was asked last."""
    runs = {"a": RunSpending(), "b": RunSpending()}
    expected: dict[tuple[str, str, str], list[int]] = {}
    for run in runs.values():
        run.add(Record(1, 0, started("lead", "lead", "m/x")))
        run.add(Record(2, 0, started("lead/worker-1", "worker", "m/x")))
    zone = datetime.timezone(datetime.timedelta(minutes=offset))
    for run_id, at, actor, model, tokens, cost in made:
        runs[run_id].add(Record(3, at, ModelRequested(actor=actor, turn=0, model=model)))
        runs[run_id].add(Record(4, at, settled(actor, tokens, cost)))
        day = datetime.datetime.fromtimestamp(at, zone).date().isoformat()
        counted = expected.setdefault((day, "lead" if actor == "lead" else "worker", model), [0, 0, 0, 0])
        for place, more in enumerate((1, tokens, 1, int(cost is None))):
            counted[place] += more
    found = by_day(runs, offset)
    assert expected == {
        (row["day"], row["agent"], row["model"]): [row["calls"], row["input"], row["output"], row["unpriced"]]
        for row in found["rows"]
    }
    assert [row["day"] for row in found["rows"]] == sorted((row["day"] for row in found["rows"]), reverse=True)
    assert sum(each[4] for each in made) == found["total"]["input"]
    assert len({each[0] for each in made}) == found["total"]["runs"]


async def test_a_run_that_goes_on_is_read_on(tmp_path: Path) -> None:
    """What a live run spends is added to what was counted, and nothing is counted twice."""
    state = open_state(str(tmp_path / "state"))
    folder = create_run(state, random.Random(1))
    usage = Spending(state)
    async with open_journal(folder, clock=lambda: NOON) as journal:
        for event in (*BEGUN, settled("lead", 100, 0.25)):
            journal.append(event)
        await journal.barrier()
        assert total(usage) == (1, 100, 0.25)
        assert total(usage) == (1, 100, 0.25)
        journal.append(settled("lead", 7, 0.5))
        await journal.barrier()
        assert total(usage) == (2, 107, 0.75)
    assert total(usage) == (2, 107, 0.75)


async def test_a_change_within_one_tick_of_the_file_systems_clock_is_seen(tmp_path: Path) -> None:
    """A long run writes over zeros in its log, so neither size nor, for a moment, time tells of what is new."""
    state = open_state(str(tmp_path / "state"))
    folder = create_run(state, random.Random(1))
    usage = Spending(state)
    tick = time.time_ns() + 10**11
    async with open_journal(folder, clock=lambda: NOON) as journal:
        for event in BEGUN:
            journal.append(event)
        for count in range(1, 60):
            journal.append(settled("lead", 1, 0.0))
            await journal.barrier()
            for path in folder.path.glob("journal.db*"):
                os.utime(path, ns=(tick, tick))
            assert total(usage) == (count, count, 0.0)


async def test_what_a_fork_copied_counts_where_it_was_spent(tmp_path: Path) -> None:
    """A fork's own spending counts, the copied part counts for the run it was copied from alone."""
    state = open_state(str(tmp_path / "state"))
    first, second = create_run(state, random.Random(1)), create_run(state, random.Random(2))
    await write(first, NOON, *BEGUN, settled("lead", 100, 0.25))
    forked = RunForked(of=first.id, at=3)
    await write(second, NOON, *BEGUN, settled("lead", 100, 0.25), forked, settled("lead", 5, None))
    usage = Spending(state)
    assert total(usage) == (2, 105, 0.25)
    delete(state, first.id)
    assert total(usage) == (1, 5, 0.0)


async def test_a_journal_that_cannot_be_read_is_named_and_stops_nothing(tmp_path: Path) -> None:
    """A damaged journal is named with the reason; the others are counted."""
    state = open_state(str(tmp_path / "state"))
    good, bad = create_run(state, random.Random(1)), create_run(state, random.Random(2))
    await write(good, NOON, *BEGUN, settled("lead", 100, 0.25))
    bad.journal.write_bytes(b"no database at all" * 100)
    found = Spending(state).as_json(0)
    assert list(found["damaged"]) == [bad.id]
    assert 100 == found["total"]["input"]


def total(usage: Spending) -> tuple[int, int, float]:
    found = usage.as_json(60)["total"]
    return found["calls"], found["input"], found["cost_usd"]


def test_a_state_folder_without_runs_has_spent_nothing(tmp_path: Path) -> None:
    """Where there is no run there is no row."""
    assert [] == Spending(State(tmp_path)).as_json(0)["rows"]


MEASURES = {"tokens": ("input", "output"), "cost": ("cost_usd",), "model calls": ("calls",)}


def test_a_page_lays_out_what_the_server_counted(node: Node) -> None:
    """By day and group, the biggest first and the small ones together, the page's sums are those of the rows."""
    chance = random.Random(7)
    days = ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]
    tasks: list[dict[str, Any]] = []
    for _ in range(40):
        rows = [
            {
                "day": chance.choice(days),
                "agent": chance.choice("abcdefghij"),
                "model": chance.choice("xy"),
                **{name: chance.randrange(1000) for name in ("input", "output", "calls", "unpriced")},
                "cost_usd": chance.randrange(64) / 64,
            }
            for _ in range(chance.randrange(30))
        ]
        shape = {"measure": chance.choice(list(MEASURES)), "by": chance.choice(["agent", "model", ""])}
        tasks.append({"task": "spending", "rows": rows, **shape, "today": "2026-03-02", "days": 3})
    for task, found in zip(tasks, node(*tasks), strict=True):
        assert days[1:] == found["days"]
        within = [row for row in task["rows"] if row["day"] != days[0]]
        value = {id(row): sum(row[name] for name in MEASURES[task["measure"]]) for row in within}
        for group in found["groups"]:
            if group["name"] != "others":
                mine = [row for row in within if not task["by"] or row[task["by"]] == group["name"]]
                sums = [sum(value[id(row)] for row in mine if row["day"] == day) for day in days[1:]]
                assert (sums, sum(sums)) == (group["values"], group["total"])
        assert sum(value.values()) == sum(group["total"] for group in found["groups"])
        assert sum(row["unpriced"] for row in within) == found["unpriced"]
        named = [group["total"] for group in found["groups"] if group["name"] != "others"]
        assert sorted(named, reverse=True) == named
        assert len(found["groups"]) <= 6
        if found["groups"]:
            tops = [sum(column) for column in zip(*(group["values"] for group in found["groups"]), strict=True)]
            assert tops == found["stacked"][-1]


def test_a_page_asks_for_the_key_that_the_model_needs(node: Node) -> None:
    """The page asks for a key where the model's provider needs one, and names its variable."""
    providers = [{"name": "openai", "variable": "OPENAI_API_KEY"}, {"name": "ollama", "variable": None}]
    asked = [["openai/x", ""], ["ollama/x", ""], ["offline/extract", ""], ["scripted/a.yaml", ""], ["my-lab/x", "u"]]
    asked += [["x", "http://127.0.0.1"], ["x", ""]]
    (found,) = node({"task": "keys", "asked": asked, "providers": providers})
    assert ["OPENAI_API_KEY", "", "", "", "MY_LAB_API_KEY", "SERVER_API_KEY", ""] == found
