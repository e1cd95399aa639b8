"""What the terminal chat can take: `python -m bench.chat [--seconds N]` prints a table.

A run whose model says 5,000 pieces a second (`bench.stream`), watched by the chat's real screen in a terminal of its
own, and by a dashboard's client beside it. Lag is how late a task wakes that sleeps 10 ms at a time, in the run and in
the screen's process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

from runtime.chat.screen import app_for
from runtime.chat.view import View
from runtime.cli.command_chat import options_of
from runtime.cli.parser import parse
from runtime.events import ModelDelta, Record
from runtime.journal.folder import RunFolder, State

from .stream import PIECE, RATE

ROOT = Path(__file__).resolve().parents[1]


class Heard:
    """Counts the text that reaches what the screen shows."""

    def __init__(self) -> None:
        self.size = 0
        take = View.take

        def counted(view: View, record: Record) -> None:
            if isinstance(record.event, ModelDelta):
                self.size = (0 if record.event.reset else self.size) + len(record.event.text)
            take(view, record)

        View.take = counted  # type: ignore[method-assign, assignment]


def screen(path: str, figures: str) -> None:
    """The screen's own process: watches the run to its end, then writes what it took to a file."""
    folder = RunFolder(Path(path))
    state = State(folder.path.parent.parent)
    arguments = parse(["chat", "--state", str(state.path)])[1]
    heard = Heard()
    app = app_for(arguments, state, options_of(arguments, None, headless=False), folder)
    late: list[float] = []
    spent = resource.getrusage(resource.RUSAGE_SELF)

    async def watch() -> None:
        nonlocal spent
        while not (app.session.looked and app.session.view.state.started):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        spent = resource.getrusage(resource.RUSAGE_SELF)
        Path(figures).with_suffix(".ready").touch()
        while app.session.view.state.finished is None:
            due = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            late.append(time.monotonic() - due)
        app.leave()

    async def main() -> None:
        beside = asyncio.create_task(watch())
        await app.run_async()
        await beside

    asyncio.run(main())
    after = resource.getrusage(resource.RUSAGE_SELF)
    late.sort()
    Path(figures).write_text(
        json.dumps(
            {
                "pieces": heard.size // len(PIECE),
                "cpu": after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime,
                "rss": after.ru_maxrss / 1024,
                "p99": 1e3 * late[int(0.99 * len(late))],
                "max": 1e3 * late[-1],
                "fault": repr(app.fault) if app.fault else "",
            }
        )
    )


def _drained(terminal: int) -> None:
    while True:
        try:
            if not os.read(terminal, 1 << 16):
                return
        except OSError:
            return


def measure(seconds: float, *, shown: bool) -> Mapping[str, float]:
    """One run, with the screen and a dashboard's client attached or alone."""
    with tempfile.TemporaryDirectory() as base:
        (Path(base) / "workspace").mkdir()
        run = _start("bench.stream", "run", f"{base}/state", f"{base}/workspace", str(seconds), str(RATE))
        assert run.stdout is not None
        assert run.stdin is not None
        path = run.stdout.readline().strip()
        figures = Path(base) / "figures.json"
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 150, 0, 0))
        threading.Thread(target=_drained, args=(ours,), daemon=True).start()
        watching: list[subprocess.Popen[str]] = []
        if shown:
            command = [sys.executable, "-m", "bench.chat", "screen", path, str(figures)]
            env = {**os.environ, "TERM": "xterm-256color"}
            watching.append(
                subprocess.Popen(
                    command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, text=True, env=env,
                    start_new_session=True,
                )
            )  # fmt: skip
            while not figures.with_suffix(".ready").exists():
                time.sleep(0.05)
            dashboard = _start("bench.stream", "dashboard", path)
            assert dashboard.stdout is not None
            dashboard.stdout.readline()
            watching.append(dashboard)
        run.stdin.write("go\n")
        run.stdin.flush()
        said = json.loads(run.stdout.read())
        run.wait()
        found = {"run p99": said["p99"], "run max": said["max"], "run cpu": said["cpu"], "said": said["pieces"]}
        if shown:
            watching[0].wait()
            seen = json.loads(figures.read_text())
            assert not seen["fault"], seen["fault"]
            other = int(watching[1].communicate()[0])
            found |= {"seen": seen["pieces"], "other": other, "cpu": 100 * seen["cpu"] / seconds, "rss": seen["rss"]}
            found |= {"p99": seen["p99"], "max": seen["max"]}
        os.close(theirs)
        return found


def _start(*words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", *words], stdin=pipe, stdout=pipe, text=True, cwd=ROOT)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.chat")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long the model talks")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    alone = [measure(options.seconds, shown=False) for _ in range(options.repeats)]
    shown = [measure(options.seconds, shown=True) for _ in range(options.repeats)]
    load = os.getloadavg()[0]
    print(f"{RATE:,} pieces a second for {options.seconds:g} s, medians of {options.repeats}; load {load:.1f}\n")
    print("| | nobody watches | the chat and a dashboard |")
    print("|---|---:|---:|")
    for name, title in ROWS:
        print(f"| {title} | {_median(alone, name)} | {_median(shown, name)} |")


ROWS = (
    ("said", "pieces said"),
    ("seen", "pieces that reached the screen"),
    ("other", "pieces that reached the dashboard's client"),
    ("run p99", "lag of the run, p99, ms"),
    ("run max", "lag of the run, max, ms"),
    ("run cpu", "CPU of the run, % of a core"),
    ("p99", "lag of the screen, p99, ms"),
    ("max", "lag of the screen, max, ms"),
    ("cpu", "CPU of the screen, % of a core"),
    ("rss", "memory of the screen, MB"),
)


def _median(found: Sequence[Mapping[str, float]], name: str) -> str:
    return f"{statistics.median(each[name] for each in found):,.1f}" if name in found[0] else "-"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["screen", path, figures]:
            screen(path, figures)
        case _:
            main()
