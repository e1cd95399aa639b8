"""What the dashboard costs: `python -m bench.dash` prints a long run's first paint, its frames, the price of watching.

- first paint: from opening the page until the newest events stand on it, and until all of them are in;
- frames: how long they take while the events are scrolled through and while the slider goes back through time;
- attach: CPU seconds of a run that nobody watches, and of the same run with a page at it from its beginning to its end.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.browser import Page, browser

STEPS = 1250
"""Eight events each: ten thousand in all."""
PAIRS = 7
AGENT = """\
---
name: busy
description: reads
tools: [read_file]
loops: off
max_steps: 5000
token_budget: 1000000000
---
Read.
"""
FRAMES = """new Promise((done) => {
  const box = document.querySelector(%(box)s), took = [];
  let step = 0, last = performance.now();
  const frame = (now) => {
    took.push(now - last);
    last = now;
    if (++step > 120) return done(took.slice(1).sort((a, b) => a - b));
    %(act)s
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""

WATCH = """(() => {
  const look = () => {
    if (!window.first && document.querySelector(".item")) window.first = performance.now();
    if (document.querySelector(".state.completed")) {
      window.whole = performance.now();
      window.events = document.querySelector(".scrub input").max;
    } else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""
"""Notes the frame in which the first events stand on the page, and the one in which all of them do."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="elenco-bench-") as place:
        workspace = Path(place, "ws")
        (workspace / "agents").mkdir(parents=True)
        (workspace / "agents" / "busy.md").write_text(AGENT)
        (workspace / "a.txt").write_text("a line of some file\n" * 40)
        turn: dict[str, Any] = {
            "text": "The file says what it has said before, in a sentence of a usual length. " * 3,
            "reasoning": "I think about what it may mean. " * 5,
            "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}],
            "usage": {"input": 100, "output": 20},
            "repeat": STEPS,
        }
        (workspace / "turns.json").write_text(json.dumps({"busy": [turn, {"text": "Done."}]}))
        _run(workspace)
        dash = subprocess.Popen(
            [*_COMMAND, "dash", "--state", str(workspace / "state")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert dash.stdout is not None
        link = dash.stdout.readline().decode().strip()
        try:
            with browser() as chromium:
                page = chromium.page(link)
                page.until("document.querySelector('tr')")
                _attach(workspace, page, link)
                _paint(page)
        finally:
            dash.terminate()
            dash.wait()


_COMMAND = [sys.executable, "-m", "runtime.cli"]


def _attach(workspace: Path, page: Page, link: str) -> None:
    """Runs alone and watched in turn: a machine's pace changes by more than what is looked for."""
    pairs: list[tuple[float, float]] = []
    for number in range(PAIRS):
        pair = [0.0, 0.0]
        for watched in (1, 0) if number % 2 else (0, 1):
            page.send("Page.navigate", url=link if watched else "about:blank")
            if watched:
                page.until("document.querySelector('tr')")
            pair[watched] = _run(workspace, page if watched else None)[0]
        pairs.append((pair[0], pair[1]))
    alone, watched_too = (statistics.median(each) for each in zip(*pairs, strict=True))
    more = sorted(two / one - 1 for one, two in pairs)
    print(
        f"attach    {alone:.2f} s of CPU alone, {watched_too:.2f} s watched: {statistics.median(more):+.1%} "
        f"({more[0]:+.1%} to {more[-1]:+.1%} in {PAIRS} pairs)"
    )


def _run(workspace: Path, page: Page | None = None) -> tuple[float, str]:
    """Have the long run, looked at from its beginning if a page is given; its CPU seconds and its id."""
    runs = workspace / "state" / "runs"
    before = set(os.listdir(runs)) if runs.exists() else set[str]()
    words = ["run", "busy", "read", "--model", "scripted/turns.json", "--quiet", "--timeout", "6000"]
    flags = ["--max-steps", "5000", "--token-budget", "1000000000", "--state", str(workspace / "state")]
    process = subprocess.Popen(
        [*_COMMAND, *words, *flags], cwd=workspace, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    run = ""
    while not run:
        time.sleep(0.005)
        run = next(iter(set(os.listdir(runs)) - before), "") if runs.exists() else ""
    if page is not None:
        page.js(f"location.hash = '#/run/{run}'")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    if page is not None:
        page.until("document.querySelector('.state.completed')")
    return used.ru_utime + used.ru_stime, run


def _paint(page: Page) -> None:
    page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    page.send("Page.reload")
    first, whole, events = page.until("window.whole && [window.first, window.whole, window.events]")
    print(f"paint     first {first:.0f} ms, whole {whole:.0f} ms, {events} events")
    page.key("5", text="5")
    page.until("document.querySelector('.event')")
    box = json.dumps(".pane .virtual")
    _frames("scroll", page, FRAMES % {"box": box, "act": "box.scrollTop = (step * 7919) % box.scrollHeight;"})
    page.key("1", text="1")
    page.until("document.querySelector('.item')")
    _frames("talk", page, FRAMES % {"box": box, "act": "box.scrollTop = (step * 7919) % box.scrollHeight;"})
    act = "box.value = 1 + (step * 997) % box.max; box.dispatchEvent(new Event('input', {bubbles: true}));"
    _frames("scrub", page, FRAMES % {"box": json.dumps(".scrub input"), "act": act})


def _frames(name: str, page: Page, script: str) -> None:
    took: list[float] = page.js(script)
    middle, late, worst = took[len(took) // 2], took[len(took) * 95 // 100], took[-1]
    print(f"{name:9} median {middle:.1f} ms a frame, p95 {late:.1f}, worst {worst:.1f}")


if __name__ == "__main__":
    main()
