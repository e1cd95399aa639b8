"""What an actor costs, in memory while idle and in time per ask, beside Trio's own channels and tasks.

python -m bench.actors [asks|idle-bare|idle-actors] [--json]
"""

import gc
import json
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


async def asks() -> dict[str, float]:
    """Microseconds of an ask; one round of each kind in turn, so that the machine's mood is the same for all."""
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
    return {"ask_bare_us": min(bare), "ask_us": min(ours), "ask_from_actor_us": min(from_actor)}


async def idle_bare() -> dict[str, float]:
    """Kilobytes of ten thousand bare tasks, each after one message."""
    async with trio.open_nursery() as nursery:
        before = resident()
        mailboxes: list[trio.MemorySendChannel[Slot]] = []
        for _ in range(IDLE):
            send, receive = trio.open_memory_channel[Slot](64)
            nursery.start_soon(bare_task, receive)
            mailboxes.append(send)
        for send in mailboxes:
            await bare_ask(send, 1)
        held = (resident() - before) / IDLE / 1024
        nursery.cancel_scope.cancel()
    return {"idle_bare_kb": held}


async def idle_actors() -> dict[str, float]:
    """Kilobytes of ten thousand actors, each after one message, and the time to start and to stop them in order."""
    async with Supervisor() as supervisor:
        before = resident()
        began = time.perf_counter()
        refs: list[ActorRef[int, int]] = [
            await supervisor.start(ChildSpec(f"echo-{number}", Echo)) for number in range(IDLE)
        ]
        spawn = (time.perf_counter() - began) / IDLE * 1e6
        for ref in refs:
            await ref.ask(1)
        held = (resident() - before) / IDLE / 1024
        began = time.perf_counter()
    return {"idle_kb": held, "start_us": spawn, "stop_us": (time.perf_counter() - began) / IDLE * 1e6}


MEASUREMENTS = {"asks": asks, "idle-bare": idle_bare, "idle-actors": idle_actors}
WORDS = {
    "ask_bare_us": "ask, bare Trio channel + event",
    "ask_us": "ask, from outside",
    "ask_from_actor_us": "ask, from another actor",
    "idle_bare_kb": "idle, bare task with a channel",
    "idle_kb": "idle, actor",
    "start_us": "start, until it serves",
    "stop_us": "stop, in order",
}


def main() -> None:
    """Print the figures, or those of the measurement named on the command line."""
    if set(sys.argv[1:]) & set(MEASUREMENTS):
        figures = trio.run(MEASUREMENTS[sys.argv[1]])
        if "--json" in sys.argv:
            print(json.dumps(figures))
            return
        for name, value in figures.items():
            print(f"{WORDS[name]:34} {value:8.2f} {'KB' if name.endswith('_kb') else 'us'}")
        return
    for name in MEASUREMENTS:  # each in a process of its own: freed memory used again would flatter the next one
        subprocess.run([sys.executable, "-m", "bench.actors", name], check=True)


if __name__ == "__main__":
    main()
