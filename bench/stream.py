"""What watching costs a run: `python -m bench.stream [--seconds N]` prints a table.

A run in a process of its own, with its journal on disk, whose model says 5,000 pieces a second; readers in processes of
their own, one on Trio as a terminal is, one on asyncio as the dashboard is. Scheduling lag is how late a task beside it
wakes that sleeps 10 ms at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trio

from runtime.app import open_run
from runtime.definitions import Definition
from runtime.events import ModelDelta
from runtime.journal import RunFolder, create_run, open_journal, open_state
from runtime.messages import Text, Usage
from runtime.model import Delta, Emit, ModelRequest, Reply
from runtime.outline import RunOptions
from runtime.simulate.stage import staged
from runtime.steering import Steering
from runtime.watch import connect, on_asyncio, serve
from runtime.watch.exchange import place_of

RATE = 5000
TICK = 0.002
PIECE = "00000 "
CLIENTS = 100


class Talker:
    """A model that says so many pieces a second, each of them alone, for a while; or nothing for as long."""

    name = "talker"

    def __init__(self, seconds: float, rate: int) -> None:
        self._seconds = seconds
        self._rate = rate

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        del request
        start, said = trio.current_time(), 0
        while (passed := trio.current_time() - start) < self._seconds:
            while said < passed * self._rate:
                emit((Delta("text", f"{said:05d} "),))
                said += 1
            await trio.sleep(TICK)
        return Reply((Text("".join(f"{number:05d} " for number in range(said))),), "stop", Usage(10, 10))

    def count(self, request: ModelRequest) -> int | None:
        del request
        return None

    def forget(self, actor: str) -> None:
        del actor


async def _lag(late: list[float]) -> None:
    while True:
        due = trio.current_time() + 0.01
        await trio.sleep_until(due)
        late.append(trio.current_time() - due)


async def _bare(seconds: float) -> None:
    """The lag of a process that does nothing else: what the machine is to blame for."""
    late: list[float] = []
    with trio.move_on_after(seconds):
        await _lag(late)
    print(1e3 * sorted(late)[int(0.99 * len(late))])


async def _run(state: str, workspace: str, seconds: float, rate: int) -> None:
    """The run's own process: prints where it is, waits for a line, talks, prints what it took."""
    folder = create_run(open_state(state), random.Random())
    root = Definition("root", "The root.", "Talk.", path="agents/root.md")
    talker = Talker(seconds, rate)
    plan = staged(
        RunOptions(agent="root", task="t", workspace=Path(workspace)),
        [root],
        model="scripted/talker",
        providers={"scripted/talker": talker},
    )
    late: list[float] = []
    async with open_journal(folder) as journal, open_run(plan, journal, folder.id, folder) as live:
        live.run.holds.hold("", "the bench")
        async with serve(live.stream, Steering(live), folder):
            print(folder.path, flush=True)
            await trio.to_thread.run_sync(sys.stdin.readline)
            live.run.holds.release("")
            before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_lag, late)
                await live.report()
                nursery.cancel_scope.cancel()
            after, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - start
            ended = time.perf_counter()
    left = time.perf_counter() - ended
    late.sort()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    pieces = sum(len(each.event.text) for each in journal_records(folder)) // len(PIECE)
    print(
        json.dumps(
            {
                "cpu": 100 * cpu / wall,
                "p50": 1e3 * statistics.median(late),
                "p99": 1e3 * late[int(0.99 * len(late))],
                "max": 1e3 * late[-1],
                "exit": left,
                "pieces": pieces,
            }
        )
    )


def journal_records(folder: RunFolder) -> list[Any]:
    from runtime.events import ModelFinished
    from runtime.journal.read import RunReader

    with RunReader(folder) as reader:
        return [record for record in reader.records() if isinstance(record.event, ModelFinished)]


async def _read_on_trio(folder: RunFolder) -> None:
    """A terminal: counts the pieces, prints how many."""
    size = 0
    async with connect(folder) as client, client.subscribe(1) as records:
        print("ready", flush=True)
        async for record in records:
            if isinstance(record.event, ModelDelta):
                size = (0 if record.event.reset else size) + len(record.event.text)
    print(size // len(PIECE), flush=True)


async def _read_on_asyncio(folder: RunFolder) -> None:
    """A dashboard: likewise."""
    size = 0
    async with on_asyncio.connect(folder) as client, client.subscribe(1) as frames:
        print("ready", flush=True)
        async for frame in frames:
            if frame["type"] == "model.delta":
                size = (0 if frame["reset"] else size) + len(frame["text"])
    print(size // len(PIECE), flush=True)


async def _crowd(folder: RunFolder, *, subscribe: bool) -> None:
    """So many clients at once that send what they have to, read its answer if they must, and then read nothing more."""
    place = place_of(folder)
    op = {"op": "subscribe", "from": 1} if subscribe else {"op": "status"}
    streams: list[trio.SocketStream] = []
    for _ in range(CLIENTS):
        stream = await trio.open_unix_socket(place.socket)
        await stream.send_all(json.dumps({"re": 1, "token": place.token, **op}).encode() + b"\n")
        await stream.receive_some(1)
        streams.append(stream)
    print("ready", flush=True)
    await trio.to_thread.run_sync(sys.stdin.readline)


READERS = ("terminal", "dashboard")


def measure(seconds: float, rate: int, others: Sequence[str]) -> Mapping[str, float]:
    """One run with so many others attached; the figures of its process, and whether each reader got every piece."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        run = _process("run", f"{folder}/state", str(workspace), str(seconds), str(rate))
        assert run.stdout is not None
        path = run.stdout.readline().strip()
        attached = [_process(other, path) for other in others]
        for each in attached:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
        beside = _process("bare", str(seconds))
        told = run.stdout.read()
        gone = time.perf_counter()
        run.wait()
        figures: dict[str, float] = json.loads(told)
        figures["exit"] += time.perf_counter() - gone
        got = [each.communicate("stop\n")[0].strip() for each in attached]
    counts = [int(count) for other, count in zip(others, got, strict=True) if other in READERS]
    figures["bare"] = float(beside.communicate()[0])
    return {**figures, "lost": float(sum(figures["pieces"] - count for count in counts))}


def _process(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.stream", *arguments]
    root = Path(__file__).resolve().parents[1]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


CASES: Sequence[tuple[str, int, Sequence[str]]] = (
    ("nobody watches", RATE, ()),
    ("a dashboard", RATE, ("dashboard",)),
    ("a terminal and a dashboard", RATE, READERS),
    (f"{CLIENTS} idle clients", RATE, ("idle",)),
    (f"{CLIENTS} stalled watchers", RATE, ("stalled",)),
    ("nobody, a quiet model", 0, ()),
    (f"{CLIENTS} watchers, a quiet model", 0, ("stalled",)),
)


FIGURES = ("cpu", "p50", "p99", "max", "bare", "lost", "exit")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.stream")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the model talks in each case")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    runs: dict[str, list[Mapping[str, float]]] = {}
    for _ in range(options.repeats):
        for name, rate, others in CASES:
            runs.setdefault(name, []).append(measure(options.seconds, rate, others))
    load = os.getloadavg()[0]
    print(f"{RATE:,} pieces a second for {options.seconds:g} s, medians of {options.repeats}; load {load:.1f}\n")
    print("| | CPU of the run, % of a core | lag p50, ms | p99 | max | p99 of a bare process | pieces lost | exit, s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, found in runs.items():
        cells = [statistics.median(each[key] for each in found) for key in FIGURES]
        cpu, p50, p99, most, bare, lost, left = cells
        print(f"| {name} | {cpu:.1f} | {p50:.1f} | {p99:.1f} | {most:.1f} | {bare:.1f} | {lost:.0f} | {left:.2f} |")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", state, workspace, seconds, rate]:
            trio.run(_run, state, workspace, float(seconds), int(rate))
        case ["bare", seconds]:
            trio.run(_bare, float(seconds))
        case ["terminal", path]:
            trio.run(_read_on_trio, RunFolder(Path(path)))
        case ["dashboard", path]:
            asyncio.run(_read_on_asyncio(RunFolder(Path(path))))
        case ["idle" | "stalled" as which, path]:
            trio.run(lambda: _crowd(RunFolder(Path(path)), subscribe=which == "stalled"))
        case _:
            main()
