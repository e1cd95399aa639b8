"""A real `elenco run` is killed (SIGKILL) around its compactions and resumed: nothing is lost or done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.conversation import checked
from runtime.events import ContextCompacted, FileChanged, FileChanging, Record, RunFinished
from runtime.journal import RunReader, open_state
from runtime.journal.folder import run_ids
from runtime.journal.replay import replay

FULL = bool(os.environ.get("ELENCO_FULL"))
COMMAND = [sys.executable, "-m", "runtime.cli"]
READS = 9
AGENT = "---\nname: solo\ndescription: Reads.\ntools: [read_file, write_file]\n---\nYou work alone.\n"

Place = Callable[[dict[str, Any]], bool]
PLACES: dict[str, Place] = {
    "as the summary is asked for": lambda event: event["type"] == "model.requested" and event["purpose"] == "summary",
    "as the summary has come": lambda event: event["type"] == "model.finished" and event["purpose"] == "summary",
    "as the history is compacted": lambda event: event["type"] == "context.compacted",
}


def prepare(base: Path) -> None:
    (base / "ws" / "agents").mkdir(parents=True)
    (base / "rt").mkdir(mode=0o700)
    (base / "ws" / "agents" / "solo.md").write_text(AGENT)
    (base / "ws" / "elenco.yaml").write_text("models: {scripted/script.yaml: {window: 5000}}\n")
    turns: list[str] = []
    for number in range(READS):
        (base / "ws" / f"f{number}.txt").write_text(f"line of file {number}\n" * 60)
        read = f"{{name: read_file, arguments: {{path: f{number}.txt}}}}"
        write = f"{{name: write_file, arguments: {{path: out{number}.txt, content: '{number}'}}}}"
        turns.append(f"  - calls: [{read}, {write}]\n")
    summary = "summary: [{repeat: 9, stall: 0.02, text: '## Goal: read and write'}]\n"
    (base / "script.yaml").write_text(f"solo:\n{''.join(turns)}  - {{text: all done, stall: 0.5}}\n{summary}")


def work(base: Path, place: Place | None) -> int:
    """Begin the run, or go on with it, until its end or a place at which it is killed; the exit code."""
    state = open_state(str(base / "state"))
    words = ["resume", *run_ids(state)] if run_ids(state) else [
        *("run", "solo", "go", "--yes", "--model", f"scripted/{base / 'script.yaml'}")
    ]  # fmt: skip
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), "XDG_RUNTIME_DIR": str(base / "rt")}
    process = subprocess.Popen(
        [*COMMAND, *words, "--json", "--state", str(base / "state")],
        cwd=base / "ws",
        env={**environment, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            if place is not None and place(json.loads(line)):
                process.kill()
        return process.wait()


def recorded(base: Path) -> list[Record]:
    state = open_state(str(base / "state"))
    (run,) = run_ids(state)
    with RunReader(state.run(run)) as reader:
        return list(reader.records())


def has_ended(records: list[Record]) -> bool:
    return any(isinstance(record.event, RunFinished) for record in records)


@pytest.mark.parametrize("at", list(PLACES))
def test_a_run_killed_around_a_compaction_goes_on(tmp_path: Path, at: str) -> None:
    """Killed as a summary is asked for, has come, or stands in the history: the resume ends the run in the same way."""
    prepare(tmp_path)
    codes = [work(tmp_path, PLACES[at])]
    while codes[-1] == -signal.SIGKILL and not has_ended(recorded(tmp_path)):  # it may have been quicker than the kill
        codes.append(work(tmp_path, PLACES[at] if FULL and len(codes) < 9 else None))
    assert codes[0] == -signal.SIGKILL
    assert codes[-1] in (0, -signal.SIGKILL)
    records = recorded(tmp_path)
    solo = replay(records).actors["solo"]
    assert solo.report is not None
    assert (solo.report["status"], solo.report["text"]) == ("completed", "all done")
    compactions = [event for record in records if isinstance(event := record.event, ContextCompacted)]
    assert [event.number for event in compactions] == list(range(1, len(compactions) + 1))
    assert compactions
    checked(solo.history)
    assert [(tmp_path / "ws" / f"out{number}.txt").read_text() for number in range(READS)] == list(
        map(str, range(READS))
    )
    told = [event.path for record in records if isinstance(event := record.event, FileChanged)]
    assert len(told) == len(set(told))
    before_it_happened = {event.path for record in records if isinstance(event := record.event, FileChanging)}
    assert before_it_happened == {f"out{number}.txt" for number in range(READS)}
