"""What the loop guard costs a step, and what it holds in memory, as its history grows to ten thousand steps."""

import json
import random
import sys
import tracemalloc
from time import thread_time

from runtime.limits.loops import CallSeen, ChantGuard, Flags, Guard, StepSeen

READ = Flags(read_only=True)
WRITE = Flags(mutates=True)
STEPS = 10_000
LATEST = 1_000


def steps(count: int, seed: int = 7) -> list[StepSeen]:
    """Ordinary work: pages of 40 lines, edits, a test run whose figures move, a file read again, a status."""
    chance = random.Random(seed)
    made: list[StepSeen] = []
    for place in range(count):
        kind = place % 5
        if kind == 0:
            start = place * 8 + 1
            text = "\n".join(f"{start + n:6d}  value_{chance.getrandbits(24)} = compute({n})" for n in range(40))
            call = CallSeen("read_file", {"path": f"src/part_{place % 90}.py", "start": start}, text, flags=READ)
        elif kind == 1:
            arguments = {"path": "src/app.py", "old": f"a_{place}", "new": f"b_{place}" * 8}
            call = CallSeen("edit_file", arguments, "Edited src/app.py: 1 replacement", flags=WRITE)
        elif kind == 2:
            text = f"{place % 40} failed, {place} passed in {chance.uniform(1, 9):.2f}s"
            call = CallSeen("shell", {"command": "pytest -q"}, text, True, 2.0, WRITE)
        elif kind == 3:
            text = "\n".join(f"{n:6d}  line {n} of version {place // 50}" for n in range(20))
            call = CallSeen("read_file", {"path": "src/app.py"}, text, flags=READ)
        else:
            call = CallSeen("shell", {"command": "git status --short"}, " M src/app.py", False, 0.1, WRITE)
        made.append(StepSeen("Going on.", (call,), place * 3.0))
    return made


def observe(count: int = STEPS) -> dict[str, float]:
    """Microseconds of CPU a step over the first and the last thousand, and kilobytes held after as many as given."""
    given = steps(count)
    guard = Guard()
    spans: list[float] = []
    for step in given:
        began = thread_time()
        guard.observe(step)
        spans.append(thread_time() - began)
    first, last = spans[:LATEST], spans[-LATEST:]
    began = thread_time()
    snapshot = json.dumps(guard.snapshot())
    return {
        "first_us": best(first),
        "last_us": best(last),
        "last_p99_us": 1e6 * sorted(last)[int(len(last) * 0.99)],
        "snapshot_ms": 1e3 * (thread_time() - began),
        "snapshot_kb": len(snapshot) / 1024,
    }


def best(spans: list[float]) -> float:
    """The mean of the quietest tenth, for the machine may be busy with other things."""
    part = len(spans) // 10
    return 1e6 * min(sum(spans[place : place + part]) / part for place in range(0, len(spans), part))


def memory(count: int) -> float:
    """Kilobytes a guard holds after that many steps."""
    given = steps(count)
    guard = Guard()
    tracemalloc.start()
    for step in given:
        guard.observe(step)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / 1024


def stream(deltas: int = 200_000) -> float:
    """Microseconds of CPU a delta of a few characters."""
    chance = random.Random(3)
    words = [chance.choice(["the ", "ledger ", "is ", "read ", "from ", "disk, ", "then "]) for _ in range(997)]
    pieces = [f"{words[place % 997]}{place % 7} "[:6] for place in range(deltas)]
    guard = ChantGuard()
    began = thread_time()
    for piece in pieces:
        guard.feed(piece)
    return 1e6 * (thread_time() - began) / deltas


def main() -> int:
    """Print the figures; 1 if a step costs more than 50 µs, a delta more than 1 µs, or memory grows."""
    cost = observe()
    for name, value in cost.items():
        print(f"{name:16} {value:8.1f}")
    short, long = memory(2_000), memory(STEPS)
    print(f"{'memory_2k_kb':16} {short:8.1f}\n{'memory_10k_kb':16} {long:8.1f}")
    delta = stream()
    print(f"{'delta_us':16} {delta:8.3f}")
    return int(cost["last_us"] > 50 or delta > 1 or long > short * 1.5)


if __name__ == "__main__":
    sys.exit(main())
