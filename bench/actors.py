"""What an actor costs, in memory while idle and in time per ask, beside Trio's own channels and tasks.

python -m bench.actors
"""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs
import trio

from actors import Actor, ActorRef, ChildSpec, Supervisor

ROUNDS = 5
ASKS = 20_000
IDLE = 10_000


class Echo(Actor[int, int]):
    """The smallest actor."""

    async def handle(self, message: int) -> int:
        return message


@attrs.define
class Slot:
    """Where a bare Trio task puts its reply."""

    message: int
    arrived: trio.Event = attrs.field(factory=trio.Event)


async def bare_task(mailbox: trio.MemoryReceiveChannel[Slot]) -> None:
    """The same echo without this library: a task, a channel, an event for each reply."""
    async for slot in mailbox:
        slot.arrived.set()


async def bare_ask(mailbox: trio.MemorySendChannel[Slot], message: int) -> int:
    """Ask it."""
    slot = Slot(message)
    await mailbox.send(slot)
    await slot.arrived.wait()
    return slot.message


async def microseconds(ask: Callable[[int], Awaitable[int]]) -> float:
    """The wall time of one ask."""
    began = time.perf_counter()
    for number in range(ASKS):
        await ask(number)
    return (time.perf_counter() - began) / ASKS * 1e6


def resident() -> int:
    """The memory of this process in bytes, or 0 where the system does not tell."""
    gc.collect()
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


async def asks() -> None:
    """Time both, one round of each in turn, so that the machine's mood is the same for both."""
    async with trio.open_nursery() as nursery, Supervisor() as supervisor:
        send, receive = trio.open_memory_channel[Slot](64)
        nursery.start_soon(bare_task, receive)
        ref = await supervisor.start(ChildSpec("echo", Echo))

        async def relay(asks_of_one_actor: int) -> float:
            assert asks_of_one_actor == ASKS
            return await microseconds(ref.ask)

        inside = await supervisor.start(ChildSpec("relay", lambda: relay))
        bare: list[float] = []
        ours: list[float] = []
        from_actor: list[float] = []
        for _ in range(ROUNDS):
            bare.append(await microseconds(lambda number: bare_ask(send, number)))
            ours.append(await microseconds(ref.ask))
            from_actor.append(await inside.ask(ASKS))
        nursery.cancel_scope.cancel()
    reference = min(bare)
    print(f"ask, bare Trio channel + event     {reference:8.2f} us")
    print(f"ask, from outside                  {min(ours):8.2f} us   {min(ours) / reference:.2f}x")
    print(f"ask, from another actor            {min(from_actor):8.2f} us   {min(from_actor) / reference:.2f}x")


async def idle_bare() -> None:
    """Ten thousand bare tasks, each after one message."""
    async with trio.open_nursery() as nursery:
        before = resident()
        mailboxes: list[trio.MemorySendChannel[Slot]] = []
        for _ in range(IDLE):
            send, receive = trio.open_memory_channel[Slot](64)
            nursery.start_soon(bare_task, receive)
            mailboxes.append(send)
        for send in mailboxes:
            await bare_ask(send, 1)
        print(f"idle, bare task with a channel     {(resident() - before) / IDLE / 1024:8.2f} KB")
        nursery.cancel_scope.cancel()


async def idle_actors() -> None:
    """Ten thousand actors, each after one message, and the time to stop them in order."""
    async with Supervisor() as supervisor:
        before = resident()
        began = time.perf_counter()
        refs: list[ActorRef[int, int]] = [
            await supervisor.start(ChildSpec(f"echo-{number}", Echo)) for number in range(IDLE)
        ]
        spawn = (time.perf_counter() - began) / IDLE * 1e6
        for ref in refs:
            await ref.ask(1)
        print(f"idle, actor                        {(resident() - before) / IDLE / 1024:8.2f} KB")
        print(f"start, until it serves             {spawn:8.2f} us")
        began = time.perf_counter()
    print(f"stop, in order                     {(time.perf_counter() - began) / IDLE * 1e6:8.2f} us")


MEASUREMENTS = {"asks": asks, "idle-bare": idle_bare, "idle-actors": idle_actors}


def main() -> None:
    """Print the figures, or the one named on the command line."""
    if set(sys.argv[1:]) & set(MEASUREMENTS):
        trio.run(MEASUREMENTS[sys.argv[1]])
        return
    for name in MEASUREMENTS:  # each in a process of its own: freed memory used again would flatter the next one
        subprocess.run([sys.executable, "-m", "bench.actors", name], check=True)


if __name__ == "__main__":
    main()
