"""What the journal and the log stream cost: `python -m bench.journal [FOLDER]` prints a table.

Ratios are safer than values: each figure stands beside what the same machine needs for the bare thing.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import trio
import trio.testing

from runtime.events import (
    ActorStarted,
    BudgetReserved,
    BudgetSettled,
    Event,
    ModelFinished,
    ModelRequested,
    PermissionDecided,
    RunStarted,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from runtime.journal import MemoryJournal, RunReader, SqliteJournal, State, create_run, load, open_journal, open_state
from runtime.messages import Usage
from runtime.model import Delta
from runtime.record import usage_to_json
from runtime.watch import LogStream, Reader

ROUNDS = 500
TIMES = 5
ACTOR = "coordinator/researcher-1"
USAGE = usage_to_json(Usage(1200, 80))

POLLER = """
import sys, time
from pathlib import Path
from runtime.journal import RunFolder, RunReader
with RunReader(RunFolder(Path(sys.argv[1]))) as reader:
    seq = 1
    print("ready", flush=True)
    while True:
        page = reader.page(seq)
        if page:
            seq = page[-1].seq + 1
        time.sleep(0.02)
"""


def step(turn: int) -> tuple[list[Event], list[Event]]:
    """The events of one agent step: what barrier A waits for, and what barrier B does."""
    call = f"a1t{turn}c0"
    name, arguments = "read_file", {"path": "src/parse.py"}
    before: list[Event] = [
        ToolFinished(
            actor=ACTOR, call_id=f"a1t{turn - 1}c0", name=name, result="x" * 300, is_error=False, seconds=0.01
        ),
        BudgetReserved(actor=ACTOR, id=turn, input=1200, output_cap=4096, cost_usd=0.01),
        ModelRequested(actor=ACTOR, turn=turn, model="anthropic/some-model", output_cap=4096, estimate=1200),
    ]
    shown = {"id": call, "name": name, "arguments": arguments, "arguments_error": None}
    part = {"type": "call", "raw": "", "provider_id": "toolu_1", "extra": None, **shown}
    after: list[Event] = [
        BudgetSettled(actor=ACTOR, id=turn, usage=USAGE, cost_usd=0.004),
        ModelFinished(
            actor=ACTOR,
            turn=turn,
            text="I shall read the parser.",
            reasoning="",
            tool_calls=(shown,),
            finish="tool_calls",
            usage=USAGE,
            cost_usd=0.004,
            seconds=1.2,
            model="anthropic/some-model",
            wire="anthropic-messages",
            parts=({"type": "text", "text": "I shall read the parser."}, part),
        ),
        ToolRequested(actor=ACTOR, call_id=call, name=name, arguments=arguments),
        PermissionDecided(actor=ACTOR, call_id=call, verdict="allow", rule="read_file", by="built in"),
        ToolStarted(actor=ACTOR, call_id=call, name=name),
    ]
    return before, after


EVENT = step(1)[1][1]


def bare(folder: Path) -> float:
    """Seconds of one fsync'd commit of one row of the same size, median."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body TEXT)")
    taken: list[float] = []
    for seq in range(ROUNDS):
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO events VALUES (?, ?)", (seq, "x" * 500))
        connection.execute("COMMIT")
        taken.append(time.perf_counter() - start)
    connection.close()
    return statistics.median(taken)


async def awaited(state: State) -> tuple[float, float]:
    """Seconds from append to durable (median), and CPU seconds a commit."""
    async with open_journal(create_run(state, random.Random())) as journal:
        taken: list[float] = []
        cpu = time.process_time()
        for _ in range(ROUNDS):
            start = time.perf_counter()
            journal.append(EVENT)
            await journal.barrier()
            taken.append(time.perf_counter() - start)
        return statistics.median(taken), (time.process_time() - cpu) / ROUNDS


async def steps(state: State) -> float:
    """CPU seconds of one agent step: eight events, two awaited barriers, a log stream without readers."""
    prepared = [step(turn) for turn in range(1, ROUNDS + 1)]
    async with open_journal(create_run(state, random.Random())) as journal:
        LogStream(journal, clock=time.time)
        cpu = time.process_time()
        for before, after in prepared:
            for event in before:
                journal.append(event)
            await journal.barrier()
            for event in after:
                journal.append(event)
            await journal.barrier()
        return (time.process_time() - cpu) / ROUNDS


async def crowd(state: State, agents: int = 200, each: int = 150, readers: int = 0) -> tuple[float, int]:
    """Events a second with so many agents that await each event, and the commits that took."""
    folder = create_run(state, random.Random())
    processes: list[trio.Process] = []
    async with open_journal(folder) as journal:
        journal.append(EVENT)
        await journal.barrier()
        for _ in range(readers):
            process = await trio.lowlevel.open_process(
                [sys.executable, "-c", POLLER, str(folder.path)], stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            await process.stdout.receive_some()
            processes.append(process)
        start, before = time.perf_counter(), journal.commits

        async def agent() -> None:
            for _ in range(each):
                journal.append(EVENT)
                await journal.barrier()

        async with trio.open_nursery() as nursery:
            for _ in range(agents):
                nursery.start_soon(agent)
        taken, commits = time.perf_counter() - start, journal.commits - before
    for process in processes:
        process.kill()
        await process.wait()
    return agents * each / taken, commits


async def deltas(readers: int, batch: int, total: int = 100_000) -> float:
    """CPU seconds a delta, published in wake-ups of `batch`, each read by all readers before the next."""
    stream = LogStream(MemoryJournal(), clock=time.time)
    pieces = [Delta("text", "word ")] * batch
    seen = [0] * readers

    async def read(reader: Reader, place: int) -> None:
        async for record in reader:
            seen[place] += len(record.event.text)  # type: ignore[attr-defined]  # pyright: ignore

    async with trio.open_nursery() as nursery:

        async def subscriber(place: int) -> None:
            async with stream.subscribe() as reader:
                await read(reader, place)

        for place in range(readers):
            nursery.start_soon(subscriber, place)
        await trio.testing.wait_all_tasks_blocked()
        cpu = time.process_time()
        for _ in range(total // batch):
            stream.publish_deltas(ACTOR, pieces)
            await trio.lowlevel.checkpoint()
        stream.close()
    return (time.process_time() - cpu) / total


async def long_run(state: State, events: int = 10_000) -> tuple[float, float, float]:
    """Seconds to read and fold a run of so many events: with histories, without, and reading alone."""
    folder = create_run(state, random.Random())
    async with open_journal(folder) as journal:
        await fill(journal, events)
    start = time.perf_counter()
    load(folder)
    whole = time.perf_counter()
    load(folder, histories=False)
    lean = time.perf_counter()
    with RunReader(folder) as reader:
        count = sum(1 for _ in reader.records())
    assert count >= events
    return whole - start, lean - whole, time.perf_counter() - lean


async def fill(journal: SqliteJournal, events: int) -> None:
    journal.append(RunStarted(task="t", agent="coordinator", model="m", limits={}))
    journal.append(
        ActorStarted(
            actor=ACTOR, agent="researcher", number=0, parent=None, task="t", model="m", limits={}, prompt=(), tools=()
        )
    )
    turn = 0
    while journal.last_seq < events:
        turn += 1
        for event in (*step(turn)[0], *step(turn)[1]):
            journal.append(event)
    await journal.barrier()


def best(measure: Callable[[], float]) -> float:
    """The least disturbed of a few measurements: other work on the machine only ever adds."""
    return min(measure() for _ in range(TIMES))


def show(what: str, value: float, unit: str, more: str = "") -> None:
    print(f"{what:40}{value:10,.2f} {unit:10}{more}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        state = open_state(folder)
        pairs: list[tuple[float, float, float]] = []
        for _ in range(TIMES):
            floor = bare(Path(tempfile.mkdtemp(dir=folder)))
            pairs.append((floor, *trio.run(awaited, state)))
        floor, latency, _ = min(pairs, key=lambda pair: pair[1] / pair[0])
        show("one bare commit, p50", floor * 1e6, "us")
        show("append -> durable, p50", latency * 1e6, "us", f"{latency / floor:.2f} x bare; goal 1.5")
        show("CPU of an awaited commit", min(pair[2] for pair in pairs) * 1e6, "us")
        show("CPU of an agent step (8 events)", best(lambda: trio.run(steps, state)) * 1e6, "us", "goal 350")
        rate, commits = max(trio.run(crowd, state) for _ in range(TIMES))
        show("200 agents, every event awaited", rate, "events/s", f"{commits} commits; goal 10,000")
        watched, _ = max(trio.run(crowd, state, 200, 150, 3) for _ in range(TIMES))
        show("the same, 3 processes polling", watched, "events/s")
        for readers, batch in ((0, 50), (1, 50), (1, 1), (3, 50)):
            taken = min(trio.run(deltas, readers, batch) for _ in range(TIMES))
            show(f"CPU of a delta: {batch} a wake-up, {readers} readers", taken * 1e6, "us", "goal 2 with one reader")
        whole, lean, reading = min(trio.run(long_run, state) for _ in range(TIMES))
        show("10,000 events, read and folded", whole * 1e3, "ms", "goal 200")
        show("  without histories", lean * 1e3, "ms")
        show("  reading alone", reading * 1e3, "ms")


if __name__ == "__main__":
    main()
