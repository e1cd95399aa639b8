"""The index of runs is a cache: lost, damaged or not to be written, it stops no run and hides none."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import attrs
import pytest

from runtime.errors import JournalError, UsageError
from runtime.events import RunFinished, RunStarted
from runtime.journal import RunFolder, RunRow, State, create_run, open_journal, open_state
from runtime.journal.folder import no_space
from runtime.journal.index import delete, rename, rows, run_ended, run_started
from runtime.messages import Usage
from runtime.record import report_to_json
from runtime.report import Report

BEGIN = RunStarted(task="Write", agent="coordinator", model="m/x", limits={"max_steps": 90}, workspace="/w")
END = RunFinished(report=report_to_json(Report("stopped", "partial", Usage(900, 100), None, 6, "max_steps")))


@pytest.fixture
def state(tmp_path: Path) -> State:
    return open_state(str(tmp_path / "state"), {})


@pytest.fixture
async def folder(state: State) -> RunFolder:
    """A run whose journal holds a beginning and an end, and which has no row."""
    folder = create_run(state, random.Random(3))
    async with open_journal(folder) as journal:
        journal.append(BEGIN)
        journal.append(END)
        await journal.barrier()
    return folder


def a_row(run_id: str) -> RunRow:
    return RunRow(id=run_id, agent="a", task="t", model="m", workspace="/w", started=1.0)


def spoilt(state: State, how: str) -> None:
    """An index that is a file of noise, a cut one, one without its table, or one with noise in its middle."""
    match how:
        case "noise":
            state.index.write_bytes(b"noise" * 5000)
        case "cut":
            run_started(state, a_row("abcd"))
            state.index.write_bytes(state.index.read_bytes()[:5000])
        case "table":
            with sqlite3.connect(state.index) as connection:
                connection.execute("PRAGMA user_version = 1")
            connection.close()
        case _:
            run_started(state, a_row("abcd"))
            data = state.index.read_bytes()
            state.index.write_bytes(data[:100] + b"\xff" * (len(data) - 100))


@pytest.mark.parametrize("how", ["noise", "cut", "table", "middle"])
async def test_a_damaged_index_is_moved_aside_and_made_anew(
    state: State, folder: RunFolder, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged index stops nothing: it stands beside a new one made of the journals, and one line says so."""
    spoilt(state, how)
    run_started(state, a_row("efgh"))
    found = rows(state)
    assert set(found) == {"efgh", folder.id}
    assert (found[folder.id].task, found[folder.id].status, found[folder.id].reason) == (
        "Write",
        "stopped",
        "max_steps",
    )
    assert state.index.with_name("index.damaged-1.db").exists()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "was moved to index.damaged-1.db and made anew from the journals of 1 run" in said


@pytest.mark.parametrize("how", ["folder", "newer"])
async def test_an_index_that_cannot_be_used_stops_nothing(
    state: State, folder: RunFolder, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the index cannot be used, a run begins, ends and is deleted all the same; once a warning says why."""
    if how == "folder":
        state.index.mkdir()
    else:
        with sqlite3.connect(state.index) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    run_started(state, a_row(folder.id))
    run_ended(state, folder.id, ended=2.0, report=None)
    run_ended(state, folder.id, ended=2.0, report=END.report)
    assert rows(state) == {}
    with pytest.raises(JournalError):
        rename(state, folder.id, "notes")
    delete(state, folder.id)
    assert not folder.path.exists()
    said = capsys.readouterr().err
    assert said.count("warning: ") == 1
    assert ("update Elenco" in said) == (how == "newer")


async def test_a_run_without_a_row_can_be_named(state: State, folder: RunFolder) -> None:
    """A run the index has lost gets its row back when it is given a name; an unknown run is a usage error."""
    rename(state, folder.id, "notes")
    assert attrs.evolve(rows(state)[folder.id], started=0.0, ended=0.0) == RunRow(
        id=folder.id,
        agent="coordinator",
        task="Write",
        model="m/x",
        workspace="/w",
        started=0.0,
        name="notes",
        ended=0.0,
        status="stopped",
        reason="max_steps",
        max_steps=90,
        cost_usd=0,
    )
    with pytest.raises(UsageError):
        rename(state, "zzzz", "x")


def test_a_full_disk_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room is told in words a person knows, one with room or unknown is not."""
    assert no_space(tmp_path) == ""
    assert no_space(tmp_path / "nowhere") == ""
    values = list(os.statvfs(tmp_path))
    values[4] = 0  # blocks that are free for users
    full = os.statvfs_result(values)
    monkeypatch.setattr(os, "statvfs", lambda path: full)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    assert no_space(tmp_path) == f"no space is left on the disk of {tmp_path}"


def test_an_index_of_the_first_version_keeps_its_rows(state: State) -> None:
    """It gains the mark of estimates where it stands: no run and no name is lost."""
    run_started(state, attrs.evolve(a_row("abcd"), name="notes"))
    with sqlite3.connect(state.index) as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN estimated")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert ("notes", False) == ((row := rows(state)["abcd"]).name, row.estimated)
    estimated = report_to_json(Report("completed", "x", Usage(900, 100, estimated=True), None, 6))
    run_ended(state, "abcd", ended=2.0, report=estimated)
    assert rows(state)["abcd"].estimated
