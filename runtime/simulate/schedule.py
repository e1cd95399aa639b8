"""Trio's task order from a seed, with extra delays, moments at which something happens, and an end to patience."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Any

import trio
from trio.abc import Instrument

_SCHEDULER: Any = importlib.import_module("trio._core._run")


class Unrest(Instrument):
    """Holds back tasks that could run, now and then, by chance; counts steps. Only for a clock that jumps.

    `at(step, act)` calls `act` once before that step of the scheduler. After `most` steps `worn_out` is called, once.
    `broken` stays true when what was called has raised: Trio then goes on without the instrument.
    """

    def __init__(self, random: Random, rate: float, most: int, worn_out: Callable[[], None]) -> None:
        self.steps = 0
        self.broken = False
        self._random = random
        self._rate = rate
        self._held: list[trio.lowlevel.Task] = []
        self._moments: list[tuple[int, int, Callable[[], None]]] = [(most, 0, worn_out)]

    def at(self, step: int, act: Callable[[], None]) -> None:
        self._moments.append((step, len(self._moments), act))
        self._moments.sort(key=lambda moment: moment[:2], reverse=True)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        while self._moments and self._moments[-1][0] <= self.steps:
            self.broken = True
            self._moments.pop()[2]()
            self.broken = False

    def before_io_wait(self, timeout: float) -> None:
        if self._held:
            _queue().extend(self._held)
            self._held.clear()

    def after_io_wait(self, timeout: float) -> None:
        queue = _queue()
        if self._rate and len(queue) > 1:
            ready = sorted(queue, key=_number)
            ready.remove(self._random.choice(ready))  # one must run, or time goes on without the others
            for task in ready:
                if self._random.random() < self._rate:
                    queue.remove(task)
                    self._held.append(task)


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """While inside, the order in which Trio runs tasks follows from the seed.

    Trio offers this to Hypothesis under the same names; a test of ours breaks when they go.
    """
    before = _SCHEDULER._ALLOW_DETERMINISTIC_SCHEDULING, _SCHEDULER._r
    _SCHEDULER._ALLOW_DETERMINISTIC_SCHEDULING, _SCHEDULER._r = True, Random(seed)
    try:
        yield
    finally:
        _SCHEDULER._ALLOW_DETERMINISTIC_SCHEDULING, _SCHEDULER._r = before


def _queue() -> deque[trio.lowlevel.Task]:
    found: deque[trio.lowlevel.Task] = _SCHEDULER.GLOBAL_RUN_CONTEXT.runner.runq
    return found


def _number(task: trio.lowlevel.Task) -> int:
    """The tasks of a run, counted as they were begun."""
    number: int = getattr(task, "_counter")  # noqa: B009  it is Trio's own, and asked for by name
    return number
