"""What durability costs a run: `python -m bench.durability [FOLDER]` prints a table.

Each figure stands beside what the same machine needs for the bare thing at about the same time: both are measured in
turn, and medians are shown. See also `bench.journal`.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from runtime.app import Plan, Resumption, open_run
from runtime.definitions import Caps, Definition
from runtime.events import ModelRequested, Record
from runtime.journal import MemoryJournal, RunFolder, State, create_run, load, open_journal, open_state
from runtime.journal.visit import PAGE, visit
from runtime.known import ModelFlags
from runtime.limits.limits import Limits
from runtime.outline import RunOptions
from runtime.providers.script import Call, Script, Turn
from runtime.providers.scripted import ScriptedProvider
from runtime.resume import limits_after
from runtime.simulate.stage import staged
from runtime.tools import tool

from .journal import EVENT, POLLER, TIMES, awaited, bare, crowd, show

SIDE_BY_SIDE = 20
ROUNDS = 2
COMMITS = 150
"""One every 20 ms, in each process: a lively agent makes two in a second."""

BARE = """
import sqlite3, statistics, sys, time
connection = sqlite3.connect(sys.argv[1] + "/bare.db", isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA synchronous = FULL")
connection.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body TEXT)")
def commit(seq):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO events VALUES (?, ?)", (seq, "x" * 500))
    connection.execute("COMMIT")
def measure(count):
    taken = []
    for seq in range(count):
        start = time.perf_counter()
        commit(seq)
        taken.append(time.perf_counter() - start)
        time.sleep(PAUSE)
    print(statistics.median(taken), flush=True)
"""
JOURNAL = """
import statistics, sys, time, trio
from pathlib import Path
from bench.journal import EVENT
from runtime.journal import RunFolder, open_journal
async def run(count):
    async with open_journal(RunFolder(Path(sys.argv[1]))) as journal:
        taken = []
        for _ in range(count):
            start = time.perf_counter()
            journal.append(EVENT)
            await journal.barrier()
            taken.append(time.perf_counter() - start)
            await trio.sleep(PAUSE)
        print(statistics.median(taken), flush=True)
def measure(count):
    trio.run(run, count)
"""
MAIN = """
PAUSE = 0.02
print("ready", flush=True)
sys.stdin.readline()
measure(int(sys.argv[2]))
"""


def side_by_side(program: str, folders: list[Path]) -> float:
    """Seconds of a commit, the median of the medians of so many processes at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program + MAIN, str(folder), str(COMMITS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    medians: list[float] = []
    for process in processes:
        out, _ = process.communicate()
        medians.append(float(out))
    return statistics.median(medians)


async def steady(state: State, readers: int) -> float:
    """Seconds of an awaited commit, median, at 200 commits a second, with so many processes reading along."""
    folder = create_run(state, random.Random())
    processes: list[trio.Process] = []
    taken: list[float] = []
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
        for _ in range(300):
            start = time.perf_counter()
            journal.append(EVENT)
            await journal.barrier()
            taken.append(time.perf_counter() - start)
            await trio.sleep(0.005)
    for process in processes:
        process.kill()
        await process.wait()
    return statistics.median(taken)


def paired(first: Callable[[], float], second: Callable[[], float], rounds: int) -> list[tuple[float, float]]:
    """Both, one after the other, so many times, every other time the second first: other work hits both alike."""
    found: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2:
            two, one = second(), first()
        else:
            one, two = first(), second()
        found.append((one, two))
    return found


def medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The median of each of two, and of their ratio, second to first."""
    ratio = statistics.median(two / one for one, two in pairs)
    return statistics.median(one for one, _ in pairs), statistics.median(two for _, two in pairs), ratio


@tool(effects="none", private=True)
async def look(at: str) -> str:
    """Look at something."""
    return f"what there is to see at {at}; " * 10


def long_script(turns: int) -> Script:
    """So many turns, each of which looks somewhere else."""
    made = [
        Turn(number, "I look further.", calls=(Call("look", {"at": f"place {number}"}, json.dumps({"at": number})),))
        for number in range(turns)
    ]
    return Script("bench", {"lead": (*made, Turn(turns, "done"))})


async def long_record(workspace: Path, script: Script, events: int) -> list[Record]:
    """The first so many events of a real run."""
    journal = MemoryJournal()
    async with open_run(prepared(workspace, script), journal, "long"):
        pass
    return list(journal.records[:events])


def prepared(workspace: Path, script: Script) -> Plan:
    options = RunOptions(
        agent="lead",
        task="look everywhere",
        workspace=workspace,
        model=ModelFlags("scripted/s"),
        limits=Limits(max_steps=100_000, token_budget=10**12, timeout=100_000),
    )
    agents = [Definition("lead", "l", "Look.", tools=("look",), caps=Caps())]
    return staged(options, agents, model="scripted/s", providers={"scripted/s": ScriptedProvider(script)}, tools=[look])


async def resume(workspace: Path, script: Script, folder: RunFolder) -> float:
    """Seconds from nothing to the next request of a run on record."""
    start = time.perf_counter()
    taken = 0.0
    state = load(folder)
    ready = prepared(workspace, script)
    async with open_journal(folder) as journal:
        async with open_run(ready, journal, folder.id, folder, Resumption(state, limits_after(state, {}))) as live:
            async with live.stream.subscribe(state.seq + 1) as reader:
                async for record in reader:
                    if isinstance(record.event, ModelRequested):
                        taken = time.perf_counter() - start
                        live.cancel("the measurement")
                        break
            await live.report()
    return taken


def resumed(state: State, events: int) -> float:
    workspace = Path(tempfile.mkdtemp(dir=state.path))
    script = long_script(events // 8 + 10)
    records = trio.run(long_record, workspace, script, events)
    assert len(records) == events
    taken: list[float] = []
    for _ in range(3):
        folder = create_run(state, random.Random())
        with visit(folder) as visitor:
            for start in range(0, events, PAGE):
                visitor.write(records[start : start + PAGE])
        taken.append(trio.run(resume, workspace, script, folder))
    return statistics.median(taken)


def goal(reached: bool, words: str) -> str:
    return f"{'reached' if reached else 'MISSED':8} {words}"


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as base:
        state = open_state(base)

        def fresh(count: int) -> list[Path]:
            return [Path(tempfile.mkdtemp(dir=base)) for _ in range(count)]

        def ours(count: int) -> list[Path]:
            return [create_run(state, random.Random()).path for _ in range(count)]

        floor, latency, ratio = medians(
            paired(lambda: bare(fresh(1)[0]), lambda: trio.run(awaited, state)[0], 2 * TIMES)
        )
        show("a bare fsync'd commit, p50", floor * 1e6, "us")
        more = f"{ratio:.2f} x the bare commit"
        show("append -> durable, p50", latency * 1e6, "us", goal(ratio <= 1.5, f"{more}; goal 1.5"))
        rate = statistics.median(trio.run(crowd, state)[0] for _ in range(TIMES))
        show("200 agents in one run", rate, "events/s", goal(rate >= 10_000, "goal 10,000"))
        alone, watched, ratio = medians(
            paired(lambda: trio.run(steady, state, 0), lambda: trio.run(steady, state, 3), 2 * TIMES)
        )
        show("a commit at 200 a second", alone * 1e6, "us")
        more = goal(ratio <= 1.05, f"{100 * (ratio - 1):+.1f} %; goal 5")
        show("  with 3 processes reading along", watched * 1e6, "us", more)
        slower: list[float] = []
        one = many = (0.0, 0.0, 0.0)
        for _ in range(ROUNDS):
            one = medians(paired(lambda: side_by_side(BARE, fresh(1)), lambda: side_by_side(JOURNAL, ours(1)), ROUNDS))
            many = medians(
                paired(
                    lambda: side_by_side(BARE, fresh(SIDE_BY_SIDE)),
                    lambda: side_by_side(JOURNAL, ours(SIDE_BY_SIDE)),
                    ROUNDS,
                )
            )
            slower.append((many[1] / one[1]) / (many[0] / one[0]))
        for count, (disk, mine, ratio) in ((1, one), (SIDE_BY_SIDE, many)):
            more = f"{ratio:.2f} x the bare commit ({disk * 1e6:,.0f} us) of as many processes"
            show(f"a commit, {count} process{'es' if count > 1 else ''} at once", mine * 1e6, "us", f"{'':8} {more}")
        each = statistics.median(slower)
        more = goal(each <= 1.05, "goal 1: no more than the disk does")
        show("  slowed by each other, against the disk", each, "x", more)
        taken = resumed(state, 10_000) * 1e3
        show("resume of 10,000 events", taken, "ms", goal(taken < 1000, "to the next request; goal 1,000"))


if __name__ == "__main__":
    main()
