"""The installed command in a real terminal: keys, signals, deaths of either process, and what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Open, Place

ELENCO = str(Path(sys.executable).with_name("elenco"))
SCRIPT = """
coordinator:
  - text: "First I **look**."
    calls: [{name: read_file, arguments: {path: a.txt}}]
  - stall: 600
    text: "never said"
"""
STALLS = """
researcher: [{repeat: 9, stall: 600, text: "never said"}]
"""
ASKS = """
coordinator:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - text: "I write."
    calls: [{name: write_file, arguments: {path: a.txt, content: "changed\\n"}}]
  - text: "All is written."
"""


def test_a_turn_is_cancelled_and_the_chat_goes_on_until_it_is_left(
    place: Place, open_pane: Open, nothing_left: Callable[[], Sequence[int]]
) -> None:
    """Keys before the screen is there are kept, and Enter sends; Ctrl-C cancels the turn only, Ctrl-Q leaves; the
    terminal is as it was."""
    pane = open_pane("--model", place.script(SCRIPT))
    pane.type("look around", "Enter", "and th")
    pane.until("First I look.", "✓ read_file  a.txt", "● working", "│ and th")
    pane.type("en", "Enter")
    pane.until("⋯ and then", "1 queued")
    pane.type("C-c")
    pane.until("cancelled   1 step", "○ ready", "│ and then")
    pane.type("C-c", "/stat", "Tab", "Enter")
    pane.until("turns 1")
    pane.type("C-q")
    run = place.runs()[-1].id
    assert "rc=130" in pane.until("over", f"go on: elenco chat --resume {run}")
    assert pane.settings("before") == pane.settings("after")
    assert "actor.finished" in place.types(run)
    assert [] == nothing_left()


def test_a_live_run_is_watched_and_its_conversation_goes_on_as_it_began(
    place: Place, open_pane: Open, nothing_left: Callable[[], Sequence[int]]
) -> None:
    """Taken up while another process works on it, a run shows its own model, which answers what is said next, too."""
    script = place.script(STALLS)
    words = [ELENCO, "run", "--detach", "--no-input", "--model", script, "researcher", "where is it?"]
    run = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    pane = open_pane("--resume", run)
    pane.until("where is it?", "● working  scripted/")
    pane.type("C-c")
    pane.until("cancelled   ", "○ ready  scripted/")
    pane.type("and then?", "Enter")
    pane.until("and then?", "● working  scripted/")
    pane.type("C-q")
    pane.until("over")
    first, second = (place.events(folder.id)[0] for folder in place.runs())
    assert (second["agent"], second["model"]) == (first["agent"], first["model"]) == ("researcher", script)
    assert run == second["continues"]
    assert [] == nothing_left()


def test_when_the_runtime_is_killed_the_screen_says_so_and_goes_on(
    place: Place, open_pane: Open, nothing_left: Callable[[], Sequence[int]]
) -> None:
    """All of a diff can be seen on a small terminal; after a kill -9 of the runtime the screen tells, Enter goes on
    where the record stands; SIGTERM ends it all."""
    (place.workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(60)))
    pane = open_pane("--model", place.script(ASKS))
    pane.until("Try: What does")
    pane.type("write it", "Enter")
    pane.until("y once", "-line 2", "? waits for you")
    pane.tmux("resize-window", "-t", pane.name, "-x", "60", "-y", "20")
    pane.until("y once", "? waits ")
    pages = 0
    while "│ +changed" not in pane.text:
        pane.type("PageDown")
        time.sleep(0.2)
        pages += 1
        assert pages < 100, pane.text
    pane.tmux("resize-window", "-t", pane.name, "-x", "130", "-y", "40")
    os.kill(pane.pid("runtime.chat"), signal.SIGKILL)
    run = place.runs()[-1].id
    pane.until("the runtime has ended (SIGKILL)", f"run {run} stands where it was")
    pane.type("Enter")
    pane.until("? waits for you")
    pane.type("y", "Enter")
    pane.until("All is written.", "completed   3 steps", "○ ready")
    assert "changed\n" == (place.workspace / "a.txt").read_text()
    assert 1 == place.types(run).count("run.resumed")
    os.kill(pane.pid(" chat --workspace"), signal.SIGTERM)
    assert "rc=0" in pane.until("over", f"go on: elenco chat --resume {run}")
    assert pane.settings("before") == pane.settings("after")
    assert [] == nothing_left()


def test_the_runtime_ends_with_its_screen_however_that_ends(
    place: Place, open_pane: Open, nothing_left: Callable[[], Sequence[int]]
) -> None:
    """A killed screen and a closed terminal take their runtimes with them; the turns stand where they were."""
    killed = open_pane("--model", place.script(SCRIPT), name="killed")
    killed.until("Try: What does")
    killed.type("look around", "Enter")
    closed = open_pane("--model", place.script(SCRIPT), name="closed")
    closed.until("Try: What does")
    closed.type("look around", "Enter")
    for pane in (killed, closed):
        pane.until("✓ read_file  a.txt")
    screens = [pid for pid in place.processes() if b"runtime.chat" not in _words(pid)]
    for pid in screens:
        if b"stty" not in _words(pid) and _tty(pid) == killed.tmux("display", "-pt", "killed", "#{pane_tty}").strip():
            os.kill(pid, signal.SIGKILL)
    closed.tmux("kill-session", "-t", "closed")
    killed.until("over")
    killed.tmux("kill-session", "-t", "killed")
    assert [] == nothing_left()
    for folder in place.runs():
        assert "run.finished" not in place.types(folder.id)
        assert not folder.control.exists()
    assert 2 == len(place.runs())


def _words(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def _tty(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/fd/0")
