"""The list of runs: what each is and does, told from its row, its journal and its lock."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runtime.errors import JournalError, UsageError
from runtime.events import (
    ActorHeld,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    Event,
    ModelFinished,
    RunFinished,
    RunStarted,
    RunWaiting,
    ToolFinished,
)
from runtime.journal import RunFolder, RunInfo, RunRow, State, create_run, load, open_journal, open_state, runs
from runtime.journal.index import delete, rename, run_ended, run_started
from runtime.messages import JsonObject, Usage
from runtime.record import report_to_json, usage_to_json
from runtime.report import Report

REPORT = Report("stopped", "partial", Usage(900, 100), None, 6, "max_steps")
CALL: JsonObject = {"id": "c1", "name": "shell", "arguments": {}, "arguments_error": None}
BEGIN: tuple[Event, ...] = (
    RunStarted(task="Write", agent="coordinator", model="m/x", limits={"max_steps": 90}, workspace="/w"),
    ActorStarted(
        actor="coordinator",
        agent="coordinator",
        number=0,
        parent=None,
        task="Write",
        model="m/x",
        limits={},
        prompt=(),
        tools=(),
    ),
    ModelFinished(
        actor="coordinator",
        turn=0,
        text="",
        reasoning="",
        tool_calls=(CALL,),
        finish="tool_calls",
        usage=usage_to_json(Usage(100, 20)),
        cost_usd=0.5,
        seconds=1.0,
    ),
)
ASK = ApprovalRequested(actor="coordinator", id="a1", call_id="c1", name="shell", arguments={}, why="asks")


@pytest.fixture
def state(tmp_path: Path) -> State:
    return open_state(str(tmp_path / "state"))


@pytest.fixture
def folder(state: State) -> RunFolder:
    return create_run(state, random.Random(5))


async def write(folder: RunFolder, *events: Event) -> None:
    async with open_journal(folder, clock=lambda: 50.0) as journal:
        for event in events:
            journal.append(event)


def only(state: State) -> RunInfo:
    (found,) = runs(state)
    return found


async def test_a_run_whose_owner_is_gone_is_interrupted(state: State, folder: RunFolder) -> None:
    """A run without an end and without an owner was interrupted; with one it runs. Its journal tells the numbers."""
    async with open_journal(folder, clock=lambda: 50.0) as journal:
        for event in BEGIN:
            journal.append(event)
        await journal.barrier()
        assert only(state).status == "running"
    found = only(state)
    assert (found.status, found.owned) == ("interrupted", False)
    assert found.row == RunRow(
        id=folder.id,
        agent="coordinator",
        task="Write",
        model="m/x",
        workspace="/w",
        started=50.0,
        steps=1,
        max_steps=90,
        tokens=120,
        cost_usd=0.5,
    )


async def test_a_run_that_waits_says_for_what(state: State, folder: RunFolder) -> None:
    """A run left waiting for a human is waiting, not interrupted, until that is decided."""
    await write(folder, *BEGIN, ASK, RunWaiting(on=("a1",)))
    assert (only(state).status, only(state).waits_for) == ("waiting", ("a1",))
    await write(folder, ApprovalDecided(id="a1", decision="allow", by="ada"))
    assert (only(state).status, only(state).waits_for) == ("interrupted", ())


async def test_a_request_whose_call_has_ended_is_waited_for_no_more(state: State, folder: RunFolder) -> None:
    """A call that was interrupted while it waited takes its request with it."""
    over = ToolFinished(
        actor="coordinator", call_id="c1", name="shell", result="", is_error=True, seconds=0.0, kind="interrupted"
    )
    await write(folder, *BEGIN, ASK, over)
    assert only(state).waits_for == ()


async def test_a_held_run_is_held_while_it_is_owned(state: State, folder: RunFolder) -> None:
    """A held root makes a held run."""
    async with open_journal(folder) as journal:
        for event in (*BEGIN, ActorHeld(actor="coordinator", by="ada")):
            journal.append(event)
        await journal.barrier()
        assert only(state).status == "held"


async def test_an_ended_run_is_known_from_its_row_or_its_journal(state: State, folder: RunFolder) -> None:
    """The end is told by the row, and by the journal when the process died before it wrote the row."""
    await write(folder, *BEGIN, RunFinished(report=report_to_json(REPORT)))
    assert (only(state).status, only(state).row.reason) == ("stopped", "max_steps")
    row = RunRow(id=folder.id, agent="coordinator", task="Write", model="m/x", workspace="/w", started=50.0, pid=9)
    run_started(state, row)
    rename(state, folder.id, "notes")
    run_ended(state, folder.id, ended=60.0, report=report_to_json(REPORT))
    found = only(state)
    assert (found.status, found.row.name, found.row.ended, found.row.pid) == ("stopped", "notes", 60.0, 0)
    assert (found.row.steps, found.row.tokens, found.row.cost_usd) == (6, 1000, None)
    run_started(state, row)
    assert (only(state).status, only(state).row.name) == ("stopped", "notes")


async def test_a_damaged_run_does_not_hide_the_others(state: State, folder: RunFolder) -> None:
    """A run that cannot be read is listed as damaged with the reason, beside the others."""
    await write(folder, *BEGIN)
    other = create_run(state, random.Random(6))
    other.journal.write_bytes(b"no database" * 500)
    empty = create_run(state, random.Random(8))
    found = {each.row.id: each for each in runs(state)}
    assert {id: each.status for id, each in found.items()} == {
        folder.id: "interrupted",
        other.id: "damaged",
        empty.id: "damaged",
    }
    assert "not a database" in found[other.id].problem


async def test_runs_are_deleted_whole_and_never_while_they_are_owned(state: State, folder: RunFolder) -> None:
    """Deleting a run removes its folder and its row; an owned one is refused; an unknown one is a usage error."""
    run_started(state, RunRow(id=folder.id, agent="a", task="t", model="m", workspace="/w", started=1.0))
    async with open_journal(folder) as journal:
        journal.append(BEGIN[0])
        with pytest.raises(JournalError, match="owned by"):
            delete(state, folder.id)
    delete(state, folder.id)
    assert runs(state) == []
    assert list(state.runs.iterdir()) == []
    with pytest.raises(UsageError):
        delete(state, folder.id)
    with pytest.raises(UsageError):
        rename(state, folder.id, "x")


async def test_a_state_is_loaded_up_to_any_event(folder: RunFolder) -> None:
    """Loading stops at the event asked for."""
    await write(folder, *BEGIN, RunFinished(report=report_to_json(REPORT)))
    assert load(folder).phase == "ended"
    assert load(folder, until=3).phase == "running"
    assert load(folder, until=3, histories=False).seq == 3
