"""One workload of one subject in a process of its own: prints its figures as one line of JSON.

python -m bench.workloads SUBJECT WORKLOAD URL
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import trio

from .subject import MARKS, Subject, Timer

Figures: TypeAlias = dict[str, float]
LOOPS = 4
ROUNDS = 12
AGENTS = 200
DELTAS = 20_000
PACED = 1000
CROWD_MS = 200
ROUND_MS = 100
"""Milliseconds the model takes for each answer."""


class Server:
    """The fake model server's own counts."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, page: str) -> dict[str, Any]:
        with self._opener.open(f"{self.base}/{page}") as response:
            counts: dict[str, Any] = json.loads(response.read())
            return counts


async def tool_loop(subject: Subject, server: Server) -> Figures:
    """W1: fifty steps, one call of a tool each; the whole run counts, its beginning and its end included."""
    await subject.loop("loop-4")
    await subject.loop("loop-9")
    timers: list[Timer] = []
    empty: list[float] = []
    for _ in range(LOOPS):
        with Timer() as timer:
            await subject.loop("loop-49")
        timers.append(timer)
        with Timer() as alone:
            await subject.loop("loop-0")
        empty.append(alone.cpu)
    cpu = statistics.median(timer.cpu for timer in timers)
    wall = statistics.median(timer.wall for timer in timers)
    return {"cpu_ms": cpu / 50 * 1e3, "wall_ms": wall / 50 * 1e3, "one_step_run_ms": statistics.median(empty) * 1e3}


async def long_loop(subject: Subject, server: Server) -> Figures:
    """W6: two hundred steps, and what one costs at the beginning and near the end."""
    await subject.loop("loop-9")
    MARKS.times.clear()
    server.ask("reset")
    with Timer() as timer:
        await subject.loop("loop-199")
    steps = [(after - before) * 1e3 for before, after in zip(MARKS.times, MARKS.times[1:], strict=False)]

    def at(step: int) -> float:
        return statistics.median(steps[max(0, step - 8) : step + 8])

    sent = server.ask("stats")["bytes_in"] / 1e6
    return {"at_10_ms": at(10), "at_190_ms": at(190), "growth": at(190) / at(10), "cpu_s": timer.cpu, "sent_mb": sent}


async def team(subject: Subject, server: Server) -> Figures:
    """W2: two hundred children of one root at once, five steps each, 200 ms a step."""
    await subject.delegate(2, f"loop-4@{CROWD_MS}")
    return await _crowd(server, 7, subject.delegate(AGENTS, f"loop-4@{CROWD_MS}", f"@{CROWD_MS}"))


async def runs(subject: Subject, server: Server) -> Figures:
    """W2 with two hundred agents that have nothing to do with one another."""
    await subject.loop("loop-4")
    return await _crowd(server, 5, subject.crowd(f"loop-4@{CROWD_MS}", AGENTS))


async def _crowd(server: Server, answers: int, work: Awaitable[object]) -> Figures:
    server.ask("reset")
    gc.collect()
    base = resident()
    watch = Watch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        with Timer() as timer:
            await work
        nursery.cancel_scope.cancel()
    return {
        "crowd_wall": timer.wall / (answers * CROWD_MS / 1000),
        "crowd_cpu_s": timer.cpu,
        "crowd_kb": (watch.most - base) / AGENTS,
        "connections": server.ask("stats")["connections"] - 1,  # the question for the counts is one
    }


async def delegation(subject: Subject, server: Server) -> Figures:
    """W3: three children side by side, in wall time against the ideal; what a child call costs in CPU beside an agent.

    A call costs what the round takes beyond a round of three small tools and beyond three agents that do the children's
    work alone, one after the other.
    """
    spent: dict[str, list[float]] = {}

    async def measure(name: str, work: Awaitable[object]) -> None:
        await work
        spent.setdefault(name, []).append(subject.work.cpu * 1e3)

    for round in range(ROUNDS + 1):
        await measure("round", subject.delegate(3, "loop-2"))
        await measure("long", subject.delegate(3, "loop-12"))
        await measure("fan", subject.fan("fan-3:note(task)"))
        await measure("alone", subject.loop("loop-2"))
        if not round:
            spent.clear()
    taken = {name: statistics.median(each) for name, each in spent.items()}
    step = (taken["long"] - taken["round"]) / 30
    call = (taken["round"] - taken["fan"]) / 3
    walls: list[Timer] = []
    for _ in range(3):
        with Timer() as whole:
            await subject.delegate(3, f"loop-2@{ROUND_MS}", f"@{ROUND_MS}")
        walls += [subject.work, whole]
    ideal = 5 * ROUND_MS / 1000
    return {
        "round_ms": taken["round"],
        "step_ms": step,
        "call_steps": (call - taken["alone"]) / step,
        "call_steps_in_all": (call - 3 * step) / step,
        "wall": min(timer.wall for timer in walls[::2]) / ideal,
        "wall_in_all": min(timer.wall for timer in walls[1::2]) / ideal,
    }


async def deltas(subject: Subject, server: Server) -> Figures:
    """W4: one long answer at once, then one that comes a piece a millisecond; with a reader of every event."""
    await subject.stream("burst-200")
    burst: list[float] = []
    for _ in range(3):
        with Timer() as timer:
            got = await subject.stream(f"burst-{DELTAS}")
        if got != DELTAS:
            raise RuntimeError(f"{got} deltas of {DELTAS} came")
        burst.append(timer.cpu)
    with Timer() as paced:
        await subject.stream(f"paced-{PACED}")
    return {"burst_us": min(burst) / DELTAS * 1e6, "paced_us": paced.cpu / PACED * 1e6}


class Watch:
    """The most memory this process has held, in KB, looked at every 20 ms."""

    def __init__(self) -> None:
        self.most = 0

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.most = max(self.most, resident())
            await trio.sleep(0.02)


def resident() -> int:
    """This process's memory in KB."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


WORKLOADS: Mapping[str, Callable[[Subject, Server], Awaitable[Figures]]] = {
    "W1": tool_loop,
    "W2": team,
    "W2-runs": runs,
    "W3": delegation,
    "W4": deltas,
    "W6": long_loop,
}


def subject_named(name: str, base: str, folder: Path) -> Subject:
    """Make one; imports only what it stands on, so that each process holds one library."""
    match name:
        case "elenco" | "elenco-memory":
            from .product import ElencoSubject

            return ElencoSubject(base, folder, durable=name == "elenco")
        case "raw-httpx2":
            from .peer import PeerSubject

            return PeerSubject(base)
        case "raw-httpx":
            from .raw import Httpx, RawSubject

            return RawSubject(Httpx(base))
        case "raw-h11":
            from .raw import H11, RawSubject

            return RawSubject(H11(base))
        case _:
            raise SystemExit(f"no such subject: {name}")


async def measure(subject: str, workload: str, base: str, folder: Path) -> Figures:
    """The figures of one workload."""
    made = subject_named(subject, base, folder)
    figures = await WORKLOADS[workload](made, Server(base))
    await made.aclose()
    return figures


def main() -> None:
    """Measure what the command line names."""
    name, workload, base = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        figures = trio.run(measure, name, workload, base, Path(folder))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
