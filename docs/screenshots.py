"""The pictures of the dashboard under docs/shots/, made anew by `python -m docs.screenshots` in a checkout.

A scripted run is worked on while it is looked at: children side by side, a loop, an approval, a long turn.
"""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from bench.browser import Page, browser
from bench.scene import prepare

SHOTS = Path(__file__).parent / "shots"
COMMAND = [sys.executable, "-m", "runtime.cli"]


def main() -> None:
    SHOTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="elenco-shots-") as place, contextlib.ExitStack() as stack:
        workspace, state = Path(place, "words"), str(Path(place, "state"))
        workspace.mkdir()
        model = prepare(workspace, thinking=0.25, stall=30)
        run = [*COMMAND, "run", "Write release notes for the next version", "--model", model, "--state", state]
        _asked(workspace, state, "How are words split?")
        _asked(workspace, state, "Which limits has a child?")
        dash = stack.enter_context(_started([*COMMAND, "dash", "--state", state], workspace))
        assert dash.stdout is not None
        link = dash.stdout.readline().decode().strip()
        chromium = stack.enter_context(browser())
        stack.enter_context(_at_a_terminal(run, workspace))
        page = chromium.page(link, 1280, 800)
        page.until("document.querySelector('tr.live .waiting')", 60)
        _shot(page, "runs")
        page.click("tr.live a")
        page.until("document.querySelector('.ask')")
        page.click(".who", "coordinator")
        _shot(page, "run")
        page.click(".ask button", "Approve")
        page.until("document.querySelector('.node.lit .who')?.textContent.includes('writer')")
        page.click('[role="tab"]', "Timeline")
        _shot(page, "timeline")
        page.click('[role="tab"]', "Messages")
        _shot(page, "messages")
        page.dark(True)
        page.click(".who", "researcher-1")
        page.click('[role="tab"]', "Alerts")
        page.click(".alert summary")
        _shot(page, "alerts-dark")
        page.click('[role="tab"]', "Conversation")
        _shot(page, "run-dark")
        page.size(390, 780)
        _shot(page, "narrow")
        page.dark(False)
        page.size(1280, 1000)
        address = link.partition("#")[0]
        _compared(page, address)
        _played(page, address)


def _shot(page: Page, name: str) -> None:
    page.js("scrollTo(0, 0)")
    time.sleep(0.4)  # a frame for what is still moving
    (SHOTS / f"dash-{name}.png").write_bytes(page.shot())


def _compared(page: Page, address: str) -> None:
    """The two runs that ended before the one under way."""
    page.goto(f"{address}#/runs")
    page.until("document.querySelectorAll('.runs tbody tr').length >= 3")
    older = "[...document.querySelectorAll('.runs tbody a')].map((each) => each.textContent).slice(-2).join('/')"
    page.goto(f"{address}#/compare/{page.js(older)}")
    page.until("document.querySelector('.compare')")
    _shot(page, "compare")


def _played(page: Page, address: str) -> None:
    page.goto(f"{address}#/playground")
    page.until("document.querySelector('.editor')")
    page.type(".settings textarea", "How are words split?")
    page.until("!document.querySelector('.settings button.first').disabled")
    page.click("button", "Run")
    page.until("document.querySelector('.trial .state.completed')", 60)
    page.size(1280, 1250)
    _shot(page, "playground")


def _asked(workspace: Path, state: str, task: str) -> None:
    words = [*COMMAND, "run", task, "--state", state, "--quiet"]
    subprocess.run(words, cwd=workspace, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def _started(words: list[str], workspace: Path, stdin: int = subprocess.DEVNULL) -> Generator[subprocess.Popen[bytes]]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    with subprocess.Popen(
        words, cwd=workspace, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def _at_a_terminal(words: list[str], workspace: Path) -> Generator[None]:
    """A run with a human at it: without one it would be suspended when it asks."""
    ours, its = pty.openpty()
    try:
        with _started(words, workspace, its):
            yield
    finally:
        os.close(ours)
        os.close(its)


if __name__ == "__main__":
    main()
