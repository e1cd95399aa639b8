"""Thousands of worlds in which everything goes wrong, and every promise holds; `python -m bench.simulate` goes on."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from runtime.simulate import Broken, Tally, simulate
from runtime.simulate.schedule import Unrest, seeded
from runtime.simulate.simulation import Play
from runtime.simulate.world import draw

SEEDS = 2000
CORNERS = (
    "blocks",
    "background reports",
    "cancelled",
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
    "stopped cost_budget",
    "stopped deadline",
    "stopped length",
    "stopped loop",
    "stopped max_steps",
    "stopped max_tool_calls",
    "stopped token_budget",
    "stopped total_steps",
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
