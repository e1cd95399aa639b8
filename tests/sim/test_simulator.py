"""Thousands of worlds in which everything goes wrong, and every promise holds; `python -m bench.simulate` goes on."""

from __future__ import annotations

import os
import random
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import MockClock

from runtime.definitions import Caps
from runtime.simulate import Broken, Tally, simulate
from runtime.simulate.schedule import Unrest, seeded
from runtime.simulate.simulation import Play
from runtime.simulate.world import Manner, draw

SEEDS = 2000
CORNERS = (
    "blocks",
    "background reports",
    "cancelled",
    "compactions",
    "failed stores",
    "guard stops",
    "holds",
    "killed",
    "nudges",
    "overruns",
    "questions",
    "refusals",
    "results interrupted",
    "results unknown",
    "retries",
    "steers entered",
    "stopped context_window",
    "stopped cost_budget",
    "stopped deadline",
    "stopped length",
    "stopped loop",
    "stopped max_steps",
    "stopped max_tool_calls",
    "stopped token_budget",
    "stopped total_steps",
    "summaries",
    "suspended",
    "tool retries",
    "wrap-ups",
)


def test_every_world_ends_inside_its_limits() -> None:
    """In two thousand worlds the run ends and every promise holds; the full run takes ten thousand new ones."""
    tally = Tally()
    first, count = (random.randrange(1 << 40), 5 * SEEDS) if os.environ.get("ELENCO_FULL") else (0, SEEDS)
    for seed in range(first, first + count):
        simulate(seed, tally)
    missed = [corner for corner in CORNERS if not tally.seen[corner]]
    assert not missed, f"the adversary never reached: {', '.join(missed)}"


def test_every_world_with_a_small_window_ends_inside_it() -> None:
    """Where conversations outgrow their windows again and again, they are compacted, and every promise holds."""
    tally = Tally()
    first, count = (random.randrange(1 << 40), 5000) if os.environ.get("ELENCO_FULL") else (0, 24)
    for seed in range(first, first + count):
        world = draw(seed)
        limits = attrs.evolve(world.limits, max_steps=60, total_steps=120, token_budget=4_000_000, timeout=60_000.0)
        agents = tuple(
            attrs.evolve(agent, caps=Caps(), loops="off", tools=("look", "flood", "act"), max_output_tokens=2_000)
            for agent in world.agents
        )
        manners: dict[str, Manner] = dict.fromkeys(world.manners, "worker")
        world = attrs.evolve(world, window=2_500, limits=limits, agents=agents, manners=manners, errors=0.0)
        simulate(seed, tally, world)
    assert tally.seen["compactions"] >= count // 4
    assert tally.seen["summaries"] >= count // 8


def records_of(seed: int, folder: Path) -> list[str]:
    play = Play(draw(seed), Tally())
    with seeded(seed):
        trio.run(play.run, folder, clock=MockClock(autojump_threshold=0), instruments=[play.unrest])
    return [str(record) for record in play.records]


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_a_seed_gives_the_same_run_again(seed: int, tmp_path: Path) -> None:
    """The same seed gives the same record, event by event, so that a fault can be looked at."""
    assert records_of(seed, tmp_path) == records_of(seed, tmp_path)


def test_a_seed_that_breaks_says_how_to_play_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken promise is told with the command that shows it again."""

    def unhappy(*_: object) -> None:
        raise AssertionError("never content")

    monkeypatch.setattr("runtime.simulate.simulation.at_the_end", unhappy)
    with pytest.raises(Broken, match=r"never content\n  python -m bench\.simulate --seed 1"):
        simulate(1)


def test_unrest_changes_the_order_and_loses_nobody() -> None:
    """Tasks are held back by chance, in an order that follows from the seed, and each of them runs to its end."""

    def order(seed: int) -> list[int]:
        done: list[int] = []

        async def work(number: int) -> None:
            for _ in range(number % 3 + 1):
                await trio.lowlevel.checkpoint()
            done.append(number)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in range(8):
                    nursery.start_soon(work, number)

        unrest = Unrest(random.Random(seed), 0.5, 10_000, lambda: None)
        with seeded(seed):
            trio.run(main, clock=MockClock(autojump_threshold=0), instruments=[unrest])
        return done

    orders = {tuple(order(seed)) for seed in range(6)}
    assert len(orders) > 1
    assert all(sorted(each) == list(range(8)) for each in orders)
    assert order(3) == order(3)
