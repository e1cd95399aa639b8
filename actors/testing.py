"""For tests of actors: a probe to talk to, a recorder of events, unrest for the scheduler, a check for leaks."""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

import trio

from ._actor import Actor, Handler
from ._events import Event

M = TypeVar("M")
R = TypeVar("R")
E = TypeVar("E", bound=Event)


class Probe(Actor[M, R], Generic[M, R]):
    """An actor that notes what it receives and answers by a plain function; closed, it holds back.

    `Probe(len)` answers each message with its length. Keep the probe and start it with
    `ChildSpec("probe", lambda: probe)`. An exception from the function is the probe's crash.
    """

    def __init__(self, answer: Callable[[M], R]) -> None:
        self.received: list[M] = []
        self._answer = answer
        self._news = trio.lowlevel.ParkingLot()
        self._gate = trio.Event()
        self._gate.set()

    async def handle(self, message: M) -> R:
        """Note the message; answer it once the gate is open."""
        self.received.append(message)
        self._news.unpark_all()
        await self._gate.wait()
        return self._answer(message)

    def close(self) -> None:
        """Hold the message in work, and those after it, until `open`."""
        if self._gate.is_set():
            self._gate = trio.Event()

    def open(self) -> None:
        """Let the messages through again."""
        self._gate.set()

    async def has_received(self, count: int) -> list[M]:
        """Wait until `count` messages have been begun, and return them. A cancelled wait leaves nothing behind."""
        while len(self.received) < count:
            await self._news.park()
        return self.received[:count]


class Recorder:
    """An observer that keeps what it is told: `Supervisor(observers=[recorder])`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]


class Unrest:
    """Random, seeded checkpoints, to find what depends on the order in which tasks happen to run."""

    def __init__(self, seed: int, most: int = 3) -> None:
        self._random = random.Random(seed)
        self._most = most

    async def __call__(self) -> None:
        """Let the others run between zero and `most` times. Changes nothing when cancelled."""
        for _ in range(self._random.randint(0, self._most)):
            await trio.lowlevel.checkpoint()

    def around(self, handler: Handler[M, R]) -> Callable[[M], Awaitable[R]]:
        """The same handler with unrest before and after each message."""

        async def handle(message: M) -> R:
            await self()
            reply = await handler(message)
            await self()
            return reply

        return handle


def living_tasks() -> list[trio.lowlevel.Task]:
    """All tasks of this Trio run, Trio's own included."""
    found = [trio.lowlevel.current_root_task() or trio.lowlevel.current_task()]
    for task in found:  # grows while we walk
        for nursery in task.child_nurseries:
            found.extend(nursery.child_tasks)
    return found


@asynccontextmanager
async def no_task_survives() -> AsyncGenerator[None]:
    """Fail with AssertionError if a task begun inside the block is alive at its end."""
    before = set(living_tasks())
    yield
    survivors = [task.name for task in living_tasks() if task not in before]
    assert not survivors, f"still running: {', '.join(survivors)}"
