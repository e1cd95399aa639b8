"""What walls cost: one small command plain and in its box, turn about, `python -m bench.sandbox [--repeats N]`.

Plain is the same command line, started by the same reaper, without walls; `subprocess` is Python's own, beside it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from runtime.policy.decision import Sandbox as Level
from runtime.reaper import open_reaper
from runtime.sandbox.box import Confined, Sandbox

COMMAND = "echo hi > f; cat f"


async def boxed(confined: Confined) -> None:
    """One command, from the start to the last byte and the end of its processes."""
    box = await confined.start(COMMAND)
    assert box.process.stdout is not None
    while await box.process.stdout.receive_some():
        pass
    code = await box.process.end()
    assert code == 0


async def measure(repeats: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = str(await trio.Path(folder).resolve())
        async with open_reaper() as reaper:
            sandbox = Sandbox(reaper, workspace, scratch=Path(folder) / "tmp")
            offer = await sandbox.offer()
            levels: tuple[Level, ...] = ("unsandboxed", "workspace-write", "read-only")
            names = {"unsandboxed": "plain"}

            async def python() -> None:
                subprocess.run(  # noqa: ASYNC221  # the thing that is measured
                    ["bash", "--norc", "--noprofile", "-c", COMMAND], cwd=workspace, capture_output=True, check=True
                )

            def of(level: Level) -> Callable[[], Awaitable[None]]:
                return lambda: boxed(sandbox.under(level, "tools"))

            todo: dict[str, Callable[[], Awaitable[None]]] = {"subprocess": python}
            todo |= {names.get(level, level): of(level) for level in levels[:2]}
            times: dict[str, list[float]] = {name: [] for name in todo}
            for repeat in range(repeats + 3):
                for name, one in todo.items() if repeat % 2 else reversed(list(todo.items())):
                    begun = time.perf_counter()
                    await one()
                    if repeat >= 3:
                        times[name].append((time.perf_counter() - begun) * 1e3)
    print(f"{offer.walls} {offer.version}; `{COMMAND}`, {repeats} times each, ms\n")
    print(f"{'':18}{'min':>7}{'p50':>7}{'p95':>7}{'p50 over plain':>17}")
    plain = statistics.median(times["plain"])
    for name, found in times.items():
        p50 = statistics.median(found)
        print(f"{name:18}{min(found):7.1f}{p50:7.1f}{_high(found):7.1f}{p50 - plain:+17.1f}")


def _high(found: list[float]) -> float:
    return sorted(found)[int(len(found) * 0.95)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.sandbox")
    parser.add_argument("--repeats", type=int, default=200)
    trio.run(measure, parser.parse_args().repeats)


if __name__ == "__main__":
    main()
