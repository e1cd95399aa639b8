"""Signals: the first ends a run cleanly and on record, the second at once; nothing is left either way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]
Until: TypeAlias = Callable[..., str]

SLOW = """
coordinator:
  - {text: "begun", calls: [{name: delegate_to_writer, arguments: {task: x}}]}
  - {stall: 60, text: "late"}
writer:
  - {stall: 60, text: "late too"}
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_cancels_with_a_report_on_record(
    start: Start, script: Script, place: Path, record: Record, until: Until, number: signal.Signals
) -> None:
    """One signal: exit 130, the partial answer, a cancelled report for every actor, no socket left."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("actor.started", 2)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=20)
    assert (130, "Partial answer (cancelled):\nbegun\n") == (process.returncode, stdout)
    assert f"run {run}   go on: elenco resume {run}" in stderr
    assert "Traceback" not in stderr
    events = record(run)
    ended = {event["actor"]: event["report"]["status"] for event in events if event["type"] == "actor.finished"}
    assert {"coordinator": "cancelled", "coordinator/writer-1": "cancelled"} == ended
    assert "cancelled" == events[-1]["report"]["status"]
    assert [] == list((place / "rt").rglob("*.sock"))
    assert not (place / "state" / "runs" / run / "control.json").exists()


@pytest.mark.parametrize("seen", ["state/runs/*/lock", "state/runs/*/journal.db", "state/index.db"])
def test_ctrl_c_while_a_run_begins_is_no_fault(
    elenco: Run, start: Start, script: Script, place: Path, seen: str
) -> None:
    """However early it comes: 130 without a traceback, and a run that is cancelled or not there at all."""
    process = start("run", "Wait", "--model", script(SLOW))
    while not list(place.glob(seen)):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert (130, False) == (process.returncode, "Traceback" in stderr), stderr
    assert "never began" not in elenco("runs").stdout


def test_run_under_nohup_outlives_its_terminal(start: Start, script: Script, record: Record, until: Until) -> None:
    """Where SIGHUP is ignored from the beginning it stays so, and is not counted as the first of two signals."""
    process = start(
        "run", "Wait", "--model", script(SLOW), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    run = until("actor.started", 2)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=20)
    assert (130, "Partial answer (cancelled):\nbegun\n") == (process.returncode, stdout)
    assert ["SIGTERM"] == [event["by"] for event in record(run) if event["type"] == "cancel.requested"]


def test_second_signal_ends_the_process_at_once(start: Start, script: Script, record: Record, until: Until) -> None:
    """Two signals in a row: exit 130 now, without a traceback; the run can be taken up from its record."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("actor.started", 2)
    os.kill(process.pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    os.kill(process.pid, signal.SIGCONT)
    _, stderr = process.communicate(timeout=20)
    assert 130 == process.returncode
    assert "Traceback" not in stderr
    assert [event["seq"] for event in record(run)] == list(range(1, len(record(run)) + 1))


def test_killed_run_is_interrupted_and_goes_on(
    elenco: Run, start: Start, script: Script, place: Path, until: Until
) -> None:
    """kill -9: the list says interrupted, and resume brings it to its end."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("actor.started", 2)
    process.kill()
    process.wait(timeout=20)
    assert "interrupted" in elenco("runs").stdout
    assert f"resume {run}" in elenco("runs").stderr
    assert (
        f"last run   {run} interrupted, now   elenco resume {run}"
        in elenco(env={"ELENCO_STATE": str(place / "state")}).stdout
    )
    (place / "script.yaml").write_text(SLOW.replace("60", "0"))
    done = elenco("resume", run)
    assert (0, "late\n") == (done.returncode, done.stdout)


def test_reader_of_json_that_leaves_cancels_the_run(elenco: Run, start: Start, script: Script, until: Until) -> None:
    """`run --json | head -1`: the run does not go on for nobody."""
    process = start("run", "Wait", "--json", "--model", script(SLOW.replace("60", "1")))
    until("actor.started")
    assert process.stdout is not None
    assert "run.started" == json.loads(process.stdout.readline())["type"]
    process.stdout.close()
    assert 130 == process.wait(timeout=20)
    assert "cancelled" == json.loads(elenco("runs", "--json").stdout)["state"]


def test_interrupted_listing_is_no_traceback(start: Start, script: Script, until: Until) -> None:
    """Ctrl-C while following a run ends the follower with 130, quietly, and leaves the run alone."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("actor.started", 2)
    follower = start("tail", run, "--follow")
    assert follower.stdout is not None
    assert follower.stdout.readline().startswith("● coordinator")
    follower.send_signal(signal.SIGINT)
    _, stderr = follower.communicate(timeout=20)
    assert (130, "") == (follower.returncode, stderr)
    assert process.poll() is None
