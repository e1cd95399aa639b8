"""What the list of runs says of a record that is damaged, at a glance and when all of it is read."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.errors import JournalError
from runtime.events import FileChanging, RunFinished, RunImported, RunStarted, Warned
from runtime.journal import RunFolder, RunInfo, RunRow, State, create_run, open_state, runs
from runtime.journal.blobs import Blobs
from runtime.journal.index import beginning, run_ended, run_started
from runtime.journal.looking import flaw
from runtime.journal.read import NEVER_BEGAN
from runtime.journal.soundness import examine
from runtime.journal.visit import visit
from runtime.messages import Usage
from runtime.record import report_to_json
from runtime.report import Report

DONE = report_to_json(Report("completed", "done", Usage(), None, 1))


def ended_run(state: State, warnings: int = 40) -> RunFolder:
    folder = create_run(state, random.Random())
    with visit(folder) as visitor:
        visitor.append(RunStarted(task="Write", agent="lead", model="m/x", limits={}, workspace="/w"))
        for number in range(warnings):
            visitor.append(Warned(text=f"warning {number} " * 40))
        before = Blobs(folder.blobs).put(b"as it was")
        visitor.append(FileChanging(actor="lead", call_id="c1", path="notes.md", before=before))
        visitor.append(RunFinished(report=DONE))
    run_started(state, RunRow(id=folder.id, agent="lead", task="Write", model="m/x", workspace="/w", started=1.0))
    run_ended(state, folder.id, ended=2.0, report=DONE)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> State:
    return open_state(str(tmp_path / "state"))


def only(state: State) -> RunInfo:
    (found,) = runs(state)
    return found


def test_an_ended_run_whose_record_is_gone_or_cut_is_damaged(state: State) -> None:
    """The list tells of a journal that is missing, emptied, overwritten or cut, whatever its row says."""
    folder = ended_run(state)
    whole = folder.journal.read_bytes()
    assert ("completed", "") == (only(state).status, only(state).problem)
    spoilt = {
        whole[:-1]: f"journal.db is cut short: {len(whole) - 1} of {len(whole)} bytes",
        whole[:100]: f"journal.db is cut short: 100 of {len(whole)} bytes",
        whole[:99]: "journal.db is no database any more",
        b"": "journal.db is empty",
        b"x" * len(whole): "journal.db is no database any more",
    }
    for content, problem in spoilt.items():
        folder.journal.write_bytes(content)
        assert ("damaged", problem) == (only(state).status, only(state).problem)
        assert problem == examine(folder)
    folder.journal.unlink()
    assert "journal.db cannot be read: No such file or directory" == only(state).problem
    folder.journal.mkdir()
    assert "damaged" == only(state).status
    folder.journal.rmdir()
    folder.journal.write_bytes(whole)
    assert "completed" == only(state).status


def test_a_record_whose_end_stands_in_its_log_is_not_called_cut(state: State) -> None:
    """While a journal's newest pages are still in its log, its file may be shorter than its head says."""
    folder = ended_run(state)
    with visit(folder) as visitor:
        for _ in range(60):
            visitor.append(Warned(text="more " * 400))
        assert "" == flaw(folder.journal) == examine(folder)
    os.truncate(folder.journal, folder.journal.stat().st_size - 4096)
    folder.journal.with_name("journal.db-wal").write_bytes(b"a log")
    assert "" == flaw(folder.journal)


def test_reading_all_of_it_finds_what_a_glance_does_not(state: State) -> None:
    """A page overwritten in the middle, a content that is another by now, and one that is gone are found."""
    folder = ended_run(state)
    assert "" == examine(folder)
    whole = folder.journal.read_bytes()
    for offset in range(4096, len(whole), 4096):
        folder.journal.write_bytes(whole[:offset] + b"\x5a" * 4096 + whole[offset + 4096 :])
        assert "completed" == only(state).status
        assert "journal.db" in examine(folder), offset
    folder.journal.write_bytes(whole)
    (kept,) = folder.blobs.iterdir()
    kept.write_bytes(b"as it never was")
    assert f"blobs/{kept.name} is damaged: its content is not what its name says" == examine(folder)
    kept.unlink()
    assert f"cannot read blobs/{kept.name}: No such file or directory" == examine(folder)
    with visit(folder) as visitor:
        visitor.append(RunImported(of="k7f2"))
    assert "" == examine(folder), "contents do not travel with an imported record"


def test_a_run_that_could_not_begin_leaves_nothing(state: State) -> None:
    """Where a block fails before anything is on record its folder goes; one that has begun stays whatever happens."""
    for prepare in (_nothing, _emptied, _opened):
        folder = create_run(state, random.Random())
        _fail(state, folder, prepare)
        assert [] == list(state.runs.iterdir())
    begun = ended_run(state)
    _fail(state, begun)
    whole = begun.journal.read_bytes()
    os.truncate(begun.journal, 5000)
    _fail(state, begun)
    begun.journal.write_bytes(whole)
    assert "completed" == only(state).status
    shutil.rmtree(begun.path)
    folder = create_run(state, random.Random())
    assert (NEVER_BEGAN, "damaged") == (only(state).problem, only(state).status)


def _opened(folder: RunFolder) -> None:
    with visit(folder):
        pass


def _emptied(folder: RunFolder) -> None:
    folder.journal.touch()


def _nothing(_: RunFolder) -> None:
    pass


def _fail(state: State, folder: RunFolder, prepare: Callable[[RunFolder], None] = _nothing) -> None:
    with suppress(JournalError), beginning(state, folder):
        prepare(folder)
        raise JournalError("no space is left")
