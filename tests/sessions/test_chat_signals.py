"""Ctrl-C in a chat: it cancels the turn, the conversation goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import runtime
from runtime.events import ModelRequested, RunStarted
from runtime.journal import RunFolder, RunReader, load
from runtime.journal.folder import run_ids


def until_asked(desk: Any, known: set[str]) -> RunFolder:
    """The run that is new, once its model has been asked."""
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        for run in set(run_ids(desk.state)) - known:
            folder: RunFolder = desk.state.run(run)
            with RunReader(folder) as reader:
                if any(isinstance(record.event, ModelRequested) for record in reader.records()):
                    return folder
        time.sleep(0.02)
    raise AssertionError("no model was asked")


def test_ctrl_c_cancels_the_turn_and_the_chat_goes_on(desk: Any) -> None:
    """An interrupt ends the turn with a report on record; the next line continues it, the end of the input leaves."""
    model = desk.script("writer: [{stall: 60, text: never}]\n")
    words = ["chat", "writer", "--plain", "--quiet", "--model", model, "--state", str(desk.state.path)]
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; from runtime.cli import main; sys.exit(main(sys.argv[1:]))", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(runtime.__path__[0]).parent)},
    ) as process:
        assert process.stdin is not None
        known: set[str] = set()
        folders: list[RunFolder] = []
        for line in ("one", "two"):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            folders.append(until_asked(desk, known))
            known.add(folders[-1].id)
            process.send_signal(signal.SIGINT)
            give_up = time.monotonic() + 20
            while load(folders[-1]).finished is None:
                assert time.monotonic() < give_up
                time.sleep(0.02)
        _, err = process.communicate(timeout=30)
    assert 130 == process.returncode
    assert f"go on: elenco chat --plain --resume {folders[1].id}" in err
    for folder, before in zip(folders, (None, folders[0].id), strict=True):
        finished = load(folder).finished
        assert finished is not None
        assert "cancelled" == finished.report["status"]
        with RunReader(folder) as reader:
            (started,) = [record.event for record in reader.records() if isinstance(record.event, RunStarted)]
        assert before == started.continues
