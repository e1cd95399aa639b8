"""Runs that continue, fork, import and outlive others."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest

from runtime.conversation import checked
from runtime.events import (
    ActorStarted,
    QuestionAsked,
    RunForked,
    RunImported,
    RunStarted,
    RunWaiting,
    ToolFinished,
    ToolStarted,
)
from runtime.journal import RunFolder, RunReader, create_run, index, load
from runtime.journal.index import RunRow
from runtime.journal.read import NEVER_BEGAN, RunInfo
from runtime.journal.retention import outlived
from runtime.journal.visit import visit
from runtime.messages import ToolResults, UserMessage

TALK = """\
writer:
  - calls: [{name: write_file, arguments: {path: a.txt, content: hi}}]
  - the first answer
  - the second answer
  - the third answer
"""


def records(folder: RunFolder) -> list[Any]:
    with RunReader(folder) as reader:
        return [record.event for record in reader.records()]


def texts(folder: RunFolder) -> list[str]:
    state = load(folder)
    history = checked(state.actors[state.root].history)
    return [message.text for message in history if isinstance(message, UserMessage)]


# --- continuing --------------------------------------------------------------------------------------------------


def test_a_follow_up_begins_with_what_was_said(desk: Any) -> None:
    """A follow-up is a new run whose agent has the old history before its task; model and rules are as before."""
    first = desk.run(TALK, "--yes")
    said = desk.elenco("run", "--continue", first.id, "and then?", "--quiet")
    assert (0, "the second answer\n") == (said.code, said.out)
    second = desk.newest
    assert ["the task", "and then?"] == texts(second)
    started = next(event for event in records(second) if isinstance(event, RunStarted))
    assert (first.id, "and then?", True) == (started.continues, started.task, started.options["yes"])
    said = desk.elenco("run", "--continue", second.id, "and now?", "--quiet")
    assert "the third answer\n" == said.out
    assert ["the task", "and then?", "and now?"] == texts(desk.newest)


def test_a_follow_up_of_a_broken_run_closes_its_calls(desk: Any) -> None:
    """A run that waits for a human can be continued: its open call has a result that says so, the history is valid."""
    first = desk.run(TALK)
    assert 1 == len(load(first).pending_approvals)
    said = desk.elenco("run", "--continue", first.id, "never mind", "--quiet")
    assert "the first answer\n" == said.out
    assert [
        "the task",
        "That run has ended. What follows is a new task, with room and tools of its own.",
        "never mind",
    ] == texts(desk.newest)


def test_a_follow_up_says_which_call_may_have_taken_effect(desk: Any) -> None:
    """A call that had begun when its process died is not called undone: the follow-up reads that nobody knows."""
    first = desk.run(TALK, "--yes")
    events = records(first)
    begun = next(place for place, event in enumerate(events, 1) if isinstance(event, ToolStarted))
    for at, kind in ((begun, "unknown"), (begun - 1, "interrupted")):
        made = desk.elenco("fork", first.id, "--at", str(at)).out.strip()
        assert 0 == desk.elenco("run", "--continue", made, "and then?", "--quiet").code
        state = load(desk.newest)
        (results,) = [each for each in state.actors[state.root].history if isinstance(each, ToolResults)]
        assert [kind] == [result.kind for result in results.results]


def test_a_long_result_is_found_by_the_follow_up(desk: Any) -> None:
    """A result that was shown in part in the old run can be read in the new one, under its handle."""
    (desk.workspace / "long.txt").write_text("".join(f"line {number} {'x' * 90}\n" for number in range(2000)))
    script = """\
writer:
  - calls: [{name: read_file, arguments: {path: long.txt, end: 2000}}, {name: read_file, arguments: {path: long.txt}}]
  - read
  - calls: [{name: read_result, arguments: {handle: a0t0c0, start: 100, chars: 50}}]
  - found
"""
    first = desk.run(script)
    kept = {event.call_id for event in records(first) if isinstance(event, ToolFinished) and event.full}
    assert {"a0t0c0", "a0t0c1"} == kept
    said = desk.elenco("run", "--continue", first.id, "again", "--quiet")
    assert (0, "found\n") == (said.code, said.out)
    read = next(event for event in records(desk.newest) if isinstance(event, ToolFinished))
    assert ("ok", "read_result") == (read.kind, read.name)


def test_a_resumed_follow_up_still_has_its_history(desk: Any) -> None:
    """A follow-up that was interrupted goes on with the old history before its task."""
    first = desk.run(TALK, "--yes")
    desk.elenco("run", "--continue", first.id, "and then?", "--quiet")
    seq = next(place for place, event in enumerate(records(desk.newest), 1) if isinstance(event, ActorStarted))
    forked = desk.elenco("fork", desk.newest.id, "--at", str(seq)).out.strip()
    said = desk.elenco("resume", forked, "--quiet")
    assert (0, "the second answer\n") == (said.code, said.out)
    assert ["the task", "and then?"] == texts(desk.state.run(forked))


# --- forking -----------------------------------------------------------------------------------------------------


def test_every_event_of_a_run_can_be_forked_at(desk: Any) -> None:
    """A fork has the events up to the one named and says whose they are; gone on with, it ends like the original."""
    first = desk.run(TALK, "--yes")
    events = records(first)
    for at in range(2, len(events)):
        made = desk.state.run(desk.elenco("fork", first.id, "--at", str(at)).out.strip())
        assert [*events[:at], RunForked(of=first.id, at=at)] == records(made)
        said = desk.elenco("resume", made.id, "--quiet")
        assert (0, "the first answer\n") == (said.code, said.out), (at, said.err)
    assert events == records(first)
    for wrong in ("0", str(len(events) + 1)):
        said = desk.elenco("fork", first.id, "--at", wrong)
        assert (2, True) == (said.code, f"there is no {wrong}" in said.err)


def test_a_fork_keeps_what_undo_needs(desk: Any) -> None:
    """What was kept beside a run is beside its fork as well: it can be undone when the run is gone."""
    (desk.workspace / "a.txt").write_text("before")
    script = """\
writer:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - calls: [{name: write_file, arguments: {path: a.txt, content: after}}]
  - done
"""
    first = desk.run(script, "--yes")
    (kept,) = first.blobs.iterdir()
    (first.blobs / ".half.1.2").write_text("what a live owner is writing")
    made = desk.elenco("fork", first.id, "--at", str(len(records(first)))).out.strip()
    assert [kept.name] == [path.name for path in desk.state.run(made).blobs.iterdir()]
    assert 0 == desk.elenco("delete", first.id).code
    assert "restored a.txt\n" == desk.elenco("undo", made).out
    assert "before" == (desk.workspace / "a.txt").read_text()


# --- importing ---------------------------------------------------------------------------------------------------


def exported(desk: Any, run: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = desk.elenco("show", run, "--format", "jsonl").lines
    return lines


def test_what_was_exported_can_be_imported(desk: Any, tmp_path: Path) -> None:
    """The lines of a run make a run with the same events, which can be shown, listed and continued."""
    first = desk.run(TALK, "--yes")
    lines = desk.elenco("show", first.id, "--format", "jsonl").out
    file = tmp_path / "run.jsonl"
    file.write_text(lines)
    said = desk.elenco("import", str(file))
    made = said.out.strip()
    assert 0 == said.code
    *same, last = exported(desk, made)
    assert [{**line, "run": made} for line in map(json.loads, lines.splitlines())] == same
    assert ("run.imported", first.id) == (last["type"], last["of"])
    assert desk.elenco("show", first.id).out.replace(first.id, made) == desk.elenco("show", made).out
    assert made in desk.elenco("runs").out
    again = desk.elenco("import", "-", input=desk.elenco("show", made, "--format", "jsonl").out).out.strip()
    assert RunImported(of=made) == records(desk.state.run(again))[-1]


def test_a_live_stream_can_be_imported(desk: Any) -> None:
    """What `run --json` printed, pieces of replies and all, makes the run as well."""
    said = desk.elenco("run", "writer", "the task", "--model", desk.script(TALK), "--yes", "--json")
    assert any("after" in line for line in said.lines)
    original = desk.newest
    made = desk.elenco("import", "-", input=said.out).out.strip()
    assert records(original) == records(desk.state.run(made))[:-1]


def test_an_imported_run_is_given_no_rights(desk: Any) -> None:
    """What the file says was allowed, or decided, counts for nothing: the call is asked about again."""
    first = desk.run(TALK)
    desk.elenco("approve", first.id, "a1")
    lines = desk.elenco("show", first.id, "--format", "jsonl").out.replace('"yes":false', '"yes":true')
    lines = lines.replace('"scope":"once"', '"scope":"workspace"').replace('"allow":[]', '"allow":["write_file"]')
    made = desk.elenco("import", "-", input=lines).out.strip()
    assert 4 == desk.elenco("resume", made, "--quiet").code
    assert not (desk.workspace / "a.txt").exists()
    (asked,) = load(desk.state.run(made)).pending_approvals
    assert 0 == desk.elenco("approve", made, asked.id).code
    assert (0, "the first answer\n") == ((said := desk.elenco("resume", made, "--quiet")).code, said.out)
    assert (desk.workspace / "a.txt").exists()
    assert not (desk.state.path / "allowed").exists()


Lines: TypeAlias = list[bytes]

WRONG: list[tuple[Callable[[Lines], Lines], str]] = [
    (lambda lines: lines[1:], "x.jsonl:1: event 2 where 1 is due"),
    (lambda lines: [*lines[:3], *lines[4:]], "x.jsonl:4: event 5 where 4 is due"),
    (lambda lines: [*lines[:2], b"not json\n"], "x.jsonl:3: no event of a run"),
    (lambda lines: [*lines[:2], b"[]\n"], "x.jsonl:3: no event of a run"),
    (lambda lines: [*lines[:2], lines[2][:40]], "x.jsonl:3: no event of a run"),
    (lambda lines: [line.replace(b'"v":1', b'"v":9') for line in lines], "an event line of version 9"),
    (
        lambda lines: [line.replace(b'"limits":{', b'"limits":7,"was":{') for line in lines],
        "x.jsonl:1: run.started cannot have such a 'limits'",
    ),
    (lambda lines: [line.replace(b'"text"', b'"txet"') for line in lines], "x.jsonl:"),
    (lambda lines: [], "x.jsonl has no events"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_what_is_no_run_is_refused_with_its_line(desk: Any, tmp_path: Path, change: Any, words: str) -> None:
    """A file with a gap, a torn line, another version or no events leaves no run, and the error names the line."""
    first = desk.run(TALK, "--yes")
    lines = desk.elenco("show", first.id, "--format", "jsonl").out.encode().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_bytes(b"".join(change(lines)))
    os.chdir(tmp_path)
    said = desk.elenco("import", "x.jsonl")
    assert (2, True) == (said.code, words in said.err), said.err
    assert [first.id] == [path.name for path in desk.state.runs.iterdir()]


# --- what goes ---------------------------------------------------------------------------------------------------


def seen(name: str, days: float, status: Any = "completed", owned: bool = False) -> RunInfo:
    row = RunRow(id=name, agent="a", task="t", model="m", workspace="w", started=1e9 - days * 86_400)
    return RunInfo(row, status, owned)


def test_old_runs_go_but_not_the_live_the_waiting_and_the_newest() -> None:
    """By default what is older than 30 days; a live run and one that waits stay, and as many of the newest as asked."""
    found = [seen("a", 1), seen("b", 40), seen("c", 90), seen("d", 50, "waiting"), seen("e", 60, "running", owned=True)]
    old = seen("f", 70, "interrupted")
    found.append(old)

    def names(**rule: Any) -> list[str]:
        return [each.row.id for each in outlived(found, 1e9, **rule)]

    assert ["c", "f", "b"] == names()
    assert ["c", "f"] == names(older_than=65)
    assert ["c", "f", "b"] == names(keep=1)
    assert ["c"] == names(keep=5)
    assert ["c", "f", "b", "a"] == names(keep=0)
    assert [] == names(older_than=80, keep=6)
    hour = 1 / 24
    found[:] = [attrs.evolve(seen(name, age, "damaged"), problem=NEVER_BEGAN) for name, age in (("g", hour), ("h", 0))]
    assert ["g"] == names() == names(keep=5), "what never began goes at once, but not what begins just now"


def test_pruning_lists_first_and_removes_when_told(desk: Any) -> None:
    """Without --yes nothing is removed; with it the listed runs are gone, and so is what killed processes left."""
    folders = [desk.run(TALK, "--yes") for _ in range(3)]
    left = desk.state.runs / ".abcd.999999999"
    shutil.copytree(folders[0].path, left)
    listed = desk.elenco("runs", "--prune", "--keep", "1")
    assert (0, True) == (listed.code, "add --yes to remove 2 runs" in listed.err)
    assert all(folder.path.exists() for folder in folders)
    assert 0 == desk.elenco("runs", "--prune", "--keep", "1", "--yes").code
    assert [False, False, True] == [folder.path.exists() for folder in folders]
    assert [folders[2].id] == list(index.rows(desk.state))
    assert not left.exists()
    shutil.copytree(folders[2].path, left)
    assert "no runs" in desk.elenco("runs", "--prune", "--yes").err
    assert not left.exists()
    assert "no runs older than 30 days" in desk.elenco("runs", "--prune").err
    assert 2 == desk.elenco("runs", "--prune", "--keep", "-1").code


def test_a_damaged_record_is_told_by_the_list_and_found_by_a_check(desk: Any) -> None:
    """The list tells of a journal that is gone; --check reads all, names every damage and exits 1."""
    sound, torn, gone = (desk.run(TALK, "--yes") for _ in range(3))
    said = desk.elenco("runs", "--check")
    assert (0, True) == (said.code, "read all of 3 runs: none damaged" in said.err), said.err
    gone.journal.unlink()
    content = torn.journal.read_bytes()
    torn.journal.write_bytes(content[:4096] + b"\x5a" * (len(content) - 4096))
    never = create_run(desk.state, random.Random())
    os.utime(never.path, (0, 0))
    assert f"{gone.id} is damaged: journal.db cannot be read" in desk.elenco().out
    said = desk.elenco("runs")
    assert (0, 1, 1) == (said.code, said.out.count("damaged: journal.db cannot be read"), said.out.count("never began"))
    assert said.err.endswith("runs --check · runs --prune · show RUN\n"), said.err
    said = desk.elenco("runs", "--check", "--json")
    told = {line["id"]: (line["state"], bool(line["problem"])) for line in said.lines}
    assert 1 == said.code
    assert told == {sound.id: ("completed", False)} | {run.id: ("damaged", True) for run in (torn, gone, never)}
    said = desk.elenco("runs", "--check")
    assert (1, True) == (said.code, f"{torn.id}: journal.db is damaged: " in said.err), said.err
    assert "read all of 4 runs: 2 damaged" in said.err
    assert 2 == desk.elenco("runs", "--check", "--prune").code
    for run in (torn, gone):
        for command in ("show", "resume", "tail"):
            said = desk.elenco(command, run.id)
            assert (1, 1, False) == (said.code, said.err.count("\n"), "Traceback" in said.err), (command, said)
    assert 0 == desk.elenco("runs", "--prune", "--yes").code
    assert not never.path.exists()


# --- answers ----------------------------------------------------------------------------------------------------


def test_a_question_can_be_answered_days_later(desk: Any) -> None:
    """With nobody there a question ends the process; the answer, by the number of an option, is found by the resume."""
    file = desk.workspace / "agents" / "writer.md"
    file.write_text(file.read_text().replace("[read_file", "[ask_user, read_file"))
    script = """\
writer:
  - calls: [{name: ask_user, arguments: {question: "which?", options: [red, blue]}}]
  - painted
"""
    run = desk.run(script)
    assert "waiting" in desk.elenco("runs").out
    for wrong, words in ((("q9", "2"), "open: q1"), (("q1", "  "), "is empty")):
        said = desk.elenco("answer", run.id, *wrong)
        assert (2, True) == (said.code, words in said.err), said.err
    assert 0 == desk.elenco("answer", run.id, "q1", "2").code
    said = desk.elenco("answer", run.id, "q1", "1")
    assert (2, True) == (said.code, "was answered before" in said.err)
    assert (0, "painted\n") == ((said := desk.elenco("resume", run.id, "--quiet")).code, said.out)
    (told,) = [event for event in records(run) if isinstance(event, ToolFinished)]
    assert "blue" in told.result


def test_who_answers_a_question_of_another_party_is_told_what_becomes_of_it(desk: Any) -> None:
    """An answer to what an MCP server asked within a call that broke off is kept, and the line says when it counts."""
    run = desk.run("writer:\n  - calls: [{name: write_file, arguments: {path: a.txt, content: hi}}]\n")
    with visit(run) as visitor:
        visitor.append(QuestionAsked(actor="writer", id="q1", call_id="a0t0c0.1", text="The MCP server way asks: ?"))
        visitor.append(RunWaiting(on=("q1",)))
    assert "waiting: a1, q1" in desk.elenco("runs").out
    said = desk.elenco("answer", run.id, "q1", "7")
    assert (0, True) == (said.code, "the answer counts if that call is made again" in said.err), said.err
    assert f"elenco resume {run.id} --confirm-unknown" in said.err
    assert "waiting: a1 " in desk.elenco("runs").out


def test_where_the_workspace_has_moved_one_line_says_how_to_go_on(desk: Any) -> None:
    """A resume says that it needs the folder, a follow-up takes another one; an undo changes nothing."""
    waiting = desk.run("writer:\n  - calls: [{name: write_file, arguments: {path: a.txt, content: hi}}]\n")
    done = desk.run(TALK, "--yes")
    moved = desk.workspace.with_name("moved")
    desk.workspace.rename(moved)
    said = desk.elenco("resume", waiting.id)
    assert (2, True) == (said.code, "is no folder any more; put it back, or follow the run up" in said.err), said.err
    said = desk.elenco("run", "--continue", done.id, "more", "--quiet")
    assert (2, True) == (said.code, "is no folder any more: --workspace DIR" in said.err), said.err
    said = desk.elenco("run", "--continue", done.id, "more", "--quiet", "--workspace", str(moved))
    assert (0, "the second answer\n") == (said.code, said.out), said.err
    said = desk.elenco("undo", done.id)
    assert (2, True) == (said.code, "nothing was undone" in said.err), said.err


def test_a_run_that_waits_is_cancelled_by_a_cancel_on_record(desk: Any) -> None:
    """A cancel given while no process runs ends the run at its resume, before anything waits for a human again."""
    file = desk.workspace / "agents" / "writer.md"
    file.write_text(file.read_text().replace("[read_file", "[shell, read_file"))
    run = desk.run("writer:\n  - calls: [{name: shell, arguments: {command: make}}]\n  - never\n")
    assert "waiting: a1" in desk.elenco("runs").out
    assert 0 == desk.elenco("cancel", run.id).code
    listed = desk.elenco("runs")
    assert ("cancelled" in listed.out, "waiting" in listed.out) == (True, False), listed
    assert 130 == desk.elenco("resume", run.id, "--quiet").code
    (told,) = [event for event in records(run) if isinstance(event, ToolFinished)]
    assert "interrupted" == told.kind
    assert "cancelled" in desk.elenco("runs").out
    assert 2 == desk.elenco("approve", run.id, "a1").code


def test_a_message_that_interrupts_does_so_when_the_run_is_resumed(desk: Any) -> None:
    """`say --interrupt` to a run that waits ends the call at the resume; the model reads the message."""
    file = desk.workspace / "agents" / "writer.md"
    file.write_text(file.read_text().replace("[read_file", "[shell, read_file"))
    run = desk.run("writer:\n  - calls: [{name: shell, arguments: {command: make}}]\n  - something else then\n")
    assert 0 == desk.elenco("say", run.id, "not that", "--interrupt").code
    said = desk.elenco("resume", run.id, "--quiet")
    assert (0, "something else then\n") == (said.code, said.out), said.err
    (told,) = [event for event in records(run) if isinstance(event, ToolFinished)]
    assert ("interrupted", "interrupted by a message from you") == (told.kind, told.result)
    assert ["the task", "not that"] == texts(run)


def test_a_call_that_may_have_taken_effect_stays_unknown_when_it_is_cancelled(desk: Any) -> None:
    """What an earlier process began is not called interrupted by a cancel or a message that comes after the crash."""
    first = desk.run(TALK, "--yes")
    at = next(place for place, event in enumerate(records(first), 1) if isinstance(event, ToolStarted))
    for words, code in ((("cancel",), 130), (("say", "stop", "--interrupt"), 0)):
        made = desk.state.run(desk.elenco("fork", first.id, "--at", str(at)).out.strip())
        assert 0 == desk.elenco(words[0], made.id, *words[1:]).code
        assert code == desk.elenco("resume", made.id, "--quiet").code
        (told,) = [event for event in records(made) if isinstance(event, ToolFinished)]
        assert ("unknown", True) == (told.kind, "it may have taken effect" in told.result)


# --- talking -----------------------------------------------------------------------------------------------------


def test_a_chat_is_runs_that_continue_each_other(desk: Any) -> None:
    """Each line of a chat is answered in the light of those before; at its end it says how to go on."""
    model = desk.script(TALK)
    said = desk.elenco("chat", "writer", "--plain", "--yes", "--quiet", "--model", model, input="hello\n\nand then?\n")
    assert (0, "the first answer\nthe second answer\n") == (said.code, said.out)
    last = desk.newest
    assert ["hello", "and then?"] == texts(last)
    assert f"go on: elenco chat --plain --resume {last.id}" in said.err
    again = desk.elenco("chat", "--plain", "--resume", last.id, "--quiet", input="and now?\n")
    assert "the second answer\nthe third answer\n" == again.out
    assert ["hello", "and then?", "and now?"] == texts(desk.newest)


def test_a_chat_finishes_the_turn_it_was_broken_off_in(desk: Any) -> None:
    """Resumed after a kill, or while its call waits for a human, a chat brings that turn to its end before the next."""
    first = desk.run(TALK, "--yes")
    at = next(place for place, event in enumerate(records(first), 1) if isinstance(event, ToolFinished))
    made = desk.elenco("fork", first.id, "--at", str(at)).out.strip()
    said = desk.elenco("chat", "--plain", "--resume", made, "--quiet", input="and then?\n")
    assert (0, "the first answer\nthe second answer\n") == (said.code, said.out)
    assert ["the task", "and then?"] == texts(desk.newest)
    waiting = desk.run(TALK)
    said = desk.elenco("chat", "--plain", "--resume", waiting.id, "--quiet")
    assert 4 == said.code
    assert f"approve {waiting.id} a1" in said.err
    assert 0 == desk.elenco("approve", waiting.id, "a1").code
    said = desk.elenco("chat", "--plain", "--resume", waiting.id, "--quiet", input="and then?\n")
    assert (0, "the first answer\nthe second answer\n") == (said.code, said.out)


def test_a_chat_survives_a_turn_that_fails(desk: Any) -> None:
    """A turn whose model fails is told; the next line is a turn again, and the exit code is that of the last one."""
    model = desk.script("writer: [first]\n")
    said = desk.elenco("chat", "writer", "--quiet", "--model", model, input="one\ntwo\n")
    assert (1, "first\n") == (said.code, said.out)
    assert "is used up" in said.err
    assert 2 == desk.elenco("chat", "nobody", "--model", model, input="one\n").code
    assert 0 == desk.elenco("chat", "writer", "--model", model, input="").code
