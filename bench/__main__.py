"""Elenco beside a loop written by hand, in one interleaved run: `python -m bench` prints a table.

    python -m bench [--repeats N] [--only W1,W4,actors,imports] [--peers] [--json FILE]

Each repeat measures each workload of each subject in a fresh process, every other repeat in reverse order; medians
are shown. The reference is `raw-httpx2` of the project's performance study where that lies beside this repository
(`--peers` makes its virtual environment), else our own loop on httpx. No figure here is ever an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import imports, peer, table

WORKLOADS = ("W1", "W6", "W3", "W4", "W2", "W2-runs")
OTHERS = ("actors", "imports")
ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
"""What one process may take."""
_BEST = {
    "W1": "cpu_ms_per_step",
    "W2": "cpu_s",
    "W3": "cpu_ms_round",
    "W4": "cpu_us_per_delta",
    "W6": "cpu_s",
}


@contextmanager
def served() -> Generator[str]:
    """The fake model server in a process of its own; gives its URL."""
    command = [sys.executable, "-m", "bench.fake_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{json.loads(server.stdout.readline())['port']}"
        finally:
            server.terminate()


def process(arguments: list[str], python: str = sys.executable) -> Mapping[str, float]:
    """The figures a process of ours prints as its last line. Raises RuntimeError with what it said instead."""
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    command = [python, "-m", *arguments]
    done = subprocess.run(
        command, check=False, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    figures: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def actors() -> Mapping[str, float]:
    """The figures of `bench.actors`."""
    found: dict[str, float] = {}
    for name in ("asks", "idle-bare", "idle-actors"):
        found |= process(["bench.actors", name, "--json"])
    return found


def import_costs() -> Mapping[str, float]:
    """Milliseconds of CPU, and how many slow packages came along."""
    found: dict[str, float] = {}
    slow: set[str] = set()
    for name in imports.PROGRAMS:
        spent, loaded = imports.measure(name)
        found[name] = spent * 1e3
        if name in ("runtime", "help"):
            slow.update(loaded)
    return {**found, "slow": len(slow)}


def jobs(only: list[str], reference: str) -> list[table.Key]:
    """What one repeat measures, in its order."""
    subjects = [reference, "elenco", "raw-h11"]
    found = [(subject, workload) for workload in WORKLOADS if workload in only for subject in subjects]
    if "W1" in only:
        found.insert(2, ("elenco-memory", "W1"))
    return found + [(name, name) for name in OTHERS if name in only]


def measure(key: table.Key, url: str) -> Mapping[str, float]:
    """The figures of one job."""
    subject, workload = key
    if workload == "actors":
        return actors()
    if workload == "imports":
        return import_costs()
    python = str(peer.python()) if subject == peer.NAME else sys.executable
    return process(["bench.workloads", subject, workload, url], python)


def beside() -> str:
    """What the study recorded of other frameworks on its own machine, as ratios to the same reference."""
    found: list[str] = []
    for workload, name in _BEST.items():
        figures: Mapping[str, Mapping[str, Any]] = peer.recorded().get(workload, {})
        base = figures.get(peer.NAME, {}).get(name)
        ratios = [
            (figures[each][name] / base, each) for each in peer.FRAMEWORKS if base and name in figures.get(each, {})
        ]
        if ratios:
            (best, who), (worst, last) = min(ratios), max(ratios)
            found.append(f"  {workload}  {best:.1f}x ({who}) to {worst:.1f}x ({last})")
    if not found:
        return ""
    return "\n".join([f"CPU of other frameworks to {peer.NAME}, as the study recorded it on its machine:", *found])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join((*WORKLOADS, *OTHERS)), help="workloads, with commas between")
    parser.add_argument("--peers", action="store_true", help="make the study's virtual environment first")
    parser.add_argument("--json", type=Path, help="write every figure of every repeat to this file")
    options = parser.parse_args()
    only: list[str] = options.only.split(",")
    if unknown := [name for name in only if name not in (*WORKLOADS, *OTHERS)]:
        parser.error(f"no workload {unknown[0]!r}: {', '.join((*WORKLOADS, *OTHERS))}")
    if options.peers:
        peer.build()
    reference = peer.NAME if peer.python() is not None else "raw-httpx"
    runs: dict[table.Key, list[Mapping[str, float]]] = {}
    loads: list[float] = []
    with served() as url:
        for repeat in range(options.repeats):
            todo = jobs(only, reference)
            for key in reversed(todo) if repeat % 2 else todo:
                loads.append(os.getloadavg()[0])
                print(f"repeat {repeat + 1}: {key[1]} of {key[0]}, load {loads[-1]:.1f}", file=sys.stderr, flush=True)
                runs.setdefault(key, []).append(measure(key, url))
    print(f"\n{options.repeats} repeats, medians; load average {min(loads):.1f} to {max(loads):.1f}\n")
    print(table.text(table.lines(runs, reference), reference))
    if h11 := table.lines({("elenco", key[1]): value for key, value in runs.items() if key[0] == "raw-h11"}, reference):
        wanted = {"cpu_ms", "growth", "crowd_wall", "crowd_kb", "wall", "burst_us"}
        said = [f"{line.target.words} {line.value:.2f}" for line in h11 if line.target.name in wanted]
        print("\nThe same loop on h11 without httpx: " + "; ".join(said))
    if words := beside():
        print(f"\n{words}")
    if options.json is not None:
        options.json.write_text(json.dumps([[*key, value] for key, value in runs.items()], indent=1))


if __name__ == "__main__":
    main()
