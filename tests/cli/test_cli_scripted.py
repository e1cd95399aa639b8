"""Whole runs with written-down models: delegation, limits, approvals, steering from other processes, resuming."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]
Until: TypeAlias = Callable[..., str]

TEAM = """
coordinator:
  - text: "I will ask two."
    calls:
      - {name: delegate_to_researcher, arguments: {task: "find x"}}
      - {name: delegate_to_reviewer, arguments: {task: "check x"}}
    usage: {input: 100, output: 20}
  - {text: "x is there", usage: {input: 200, output: 10}}
researcher:
  - calls: [{name: read_file, arguments: {path: README.md}}]
    usage: {input: 50, output: 5}
  - {text: "found", usage: {input: 60, output: 5}}
reviewer:
  - {text: "right", usage: {input: 40, output: 5}}
"""
WRITE = """
coordinator:
  - text: "I will write it down."
    calls: [{name: write_file, arguments: {path: notes.md, content: "hi\\n"}}]
  - text: "written"
"""
LOOP = """
coordinator:
  - repeat: 50
    text: "so far nothing"
    calls: [{name: list_files, arguments: {path: docs}}]
    usage: {input: 1000, output: 10}
"""
SLOW = """
coordinator:
  - {text: "begun", calls: [{name: list_files, arguments: {path: docs}}]}
  - {stall: 30, text: "late"}
"""


def run_id(stderr: str) -> str:
    found = re.search(r"^run (\w+) ", stderr, re.MULTILINE)
    assert found is not None, stderr
    return found[1]


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


# --- delegation and ends -----------------------------------------------------------------------------------------


def test_coordinator_delegates_and_the_whole_tree_is_counted(elenco: Run, script: Script) -> None:
    """Two children work, their tokens and steps are in the closing line; off a terminal each change is one line."""
    done = elenco("run", "Find x", "--model", script(TEAM))
    assert (0, "x is there\n") == (done.returncode, done.stdout)
    assert re.search(r"^completed   5 steps, 495 tokens, \$0, ", done.stderr, re.MULTILINE)
    for line in ("● coordinator  Find x", "● researcher-1  find x", "  researcher-1  read_file  README.md"):
        assert f"\n{line}\n" in done.stderr
    assert re.search(r"^✓ reviewer-1  completed  1 step  45 tokens  ", done.stderr, re.MULTILINE)
    assert "\x1b" not in done.stderr


def test_limit_stops_with_exit_3_and_a_partial_answer(elenco: Run, script: Script) -> None:
    """A stopped root prints why, its partial answer on stdout, and the command that goes on; that command does."""
    model = script(LOOP)
    done = elenco("run", "Look", "--model", model, "--max-steps", "3")
    assert 3 == done.returncode
    assert "Partial answer (stopped by max_steps):\nso far nothing\n" == done.stdout
    run = run_id(done.stderr)
    last = done.stderr.rstrip().split("\n")[-2:]
    assert last[0].startswith("■ max_steps: ")
    assert re.fullmatch(rf"stopped: max_steps   3 steps, .*   go on: elenco resume {run} --max-steps \+20", last[1])
    again = elenco("resume", run, "--max-steps", "+1")
    assert 3 == again.returncode
    assert f"run {run} goes on   limits: 4 steps, " in again.stderr


def test_guard_stops_a_loop_and_says_so_step_by_step(elenco: Run, script: Script) -> None:
    """A model that repeats itself is told, then refused, then stopped, each with its line; exit 3."""
    done = elenco("run", "Look", "--model", script(LOOP))
    assert 3 == done.returncode
    assert "Partial answer (stopped by loop):" in done.stdout
    for words in ("3 times: told the model", "refused from now on", "■ coordinator   stopped: loop ("):
        assert words in done.stderr
    assert "\nstopped: loop   " in done.stderr


def test_script_that_is_used_up_fails_with_exit_1(elenco: Run, script: Script) -> None:
    """A failed run says why on stderr and exits with 1; there is no answer."""
    done = elenco("run", "Look", "--model", script("coordinator:\n  - calls: [{name: list_files}]\n"))
    assert 1 == done.returncode
    assert re.search(r"^error: .*script.*", done.stderr, re.MULTILINE)
    assert re.search(r"^failed   1 step, ", done.stderr, re.MULTILINE)


def test_what_was_said_before_a_stream_died_is_the_partial_answer(elenco: Run, script: Script) -> None:
    """The words of the attempt that broke off are kept, and `show` says how a failed run goes on."""
    dies = "coordinator:\n  - {text: Half an answer, fail: {kind: http, message: it broke}}\n"
    done = elenco("run", "Look", "--model", script(dies))
    assert 1 == done.returncode
    assert "Partial answer (failed):\nHalf an answer\n" in done.stdout + done.stderr
    run = done.stderr.rpartition("elenco show ")[2].strip()
    page = elenco("show", run).stdout
    assert page.endswith(f"## Partial answer\nHalf an answer\n\ngo on: elenco resume {run}\n")


def test_a_reply_without_words_ends_what_an_earlier_attempt_had_said(elenco: Run, script: Script) -> None:
    """Once a whole reply has come, the words of an attempt before it are nobody's partial answer."""
    lines = ["{text: Half, fail: {kind: truncated, retryable: true, retry_after: 0}}", "calls: [{name: list_files}]"]
    done = elenco("run", "Look", "--model", script("coordinator:\n" + "".join(f"  - {each}\n" for each in lines)))
    assert 1 == done.returncode
    assert "Half" not in done.stdout + done.stderr


def test_nobody_is_left_without_a_word(elenco: Run, script: Script) -> None:
    """Off a terminal there is a line a second: who is waited for, or writes, and what is used of what."""
    text = "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen."
    model = script(f"coordinator:\n  - {{stall: 2.3, pace: 1.3, text: '{text}'}}\n")
    done = elenco("run", "Wait", "--model", model, "--total-steps", "9")
    assert 0 == done.returncode
    used = r"   0 of 9 steps, [1-9]\.\d s of 10 min$"
    assert 2 == len(re.findall(rf"^… coordinator waits for the model, \d s{used}", done.stderr, re.MULTILINE))
    assert 3 <= len(re.findall(rf"^… coordinator: writing{used}", done.stderr, re.MULTILINE))


def test_faulty_script_is_shown_with_its_place(elenco: Run, script: Script) -> None:
    """A mistake in the script is told with file, line and caret before anything is started."""
    done = elenco("run", "Look", "--model", script("coordinator:\n  - txt: hello\n"))
    assert (2, "") == (done.returncode, done.stdout)
    assert (
        "script.yaml:2:5: unknown key 'txt'; did you mean 'text'?\n   2 |   - txt: hello\n     |     ^^^\n"
        in done.stderr
    )


def test_control_characters_are_shown_not_obeyed(elenco: Run, script: Script, place: Path) -> None:
    """What models and files bring cannot move the cursor, on neither stream, nor in the pages of `show`."""
    (place / "ws" / "bad.txt").write_text("\x1b]0;title\x07 evil \x9b2J\n")
    model = script(
        'coordinator:\n  - {text: "a\\e[2Jb", calls: [{name: read_file, arguments: {path: "bad.txt"}},'
        ' {name: "no\\e[1mtool", arguments: {x: "\\a"}}]}\n  - text: "c\\e[31md\\u202Ee"\n'
    )
    done = elenco("run", "Look \x1b[1m", "--model", model)
    shown = elenco("show", run_id(done.stderr), "--format", "md")
    listed = elenco("runs")
    assert "c\\x1b[31md\\u202ee\n" == done.stdout
    for text in (done.stderr, shown.stdout, listed.stdout):
        assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert "\\x1b]0;title\\x07 evil" in shown.stdout


def test_unknown_price_is_said(elenco: Run, script: Script) -> None:
    """A cost budget that cannot be kept for want of a price is refused before the run."""
    del script
    done = elenco("run", "x", "--model", "lab/fake-1", "--base-url", "http://127.0.0.1:9/v1", "--cost-budget", "1")
    assert 2 == done.returncode
    assert "no price is known for lab/fake-1" in done.stderr


# --- approvals ---------------------------------------------------------------------------------------------------


@pytest.fixture
def waiting(elenco: Run, script: Script) -> str:
    """A run that waits for a decision nobody was there to make."""
    done = elenco("run", "Write", "--model", script(WRITE))
    assert (4, "") == (done.returncode, done.stdout)
    run = run_id(done.stderr)
    how = f"elenco approve {run} a1 | elenco deny {run} a1   then elenco resume {run}"
    assert f"waiting: a1 (coordinator, write_file)   {how}" == done.stderr.rstrip().split("\n")[-1]
    return run


def test_approval_from_another_process_lets_a_resumed_run_write(
    elenco: Run, waiting: str, place: Path, record: Record
) -> None:
    """approve, then resume: the file is written once, and the list shows first that it waits, then that it ended."""
    assert "waiting: a1" in elenco("runs").stdout
    assert f"elenco approve {waiting} a1" in elenco("runs").stderr
    approved = elenco("approve", waiting, "a1")
    assert (0, f"approved a1   then: elenco resume {waiting}\n") == (approved.returncode, approved.stderr)
    late = elenco("deny", waiting, "a1")
    assert (2, 1) == (late.returncode, late.stderr.count("decided before: allow, by you"))
    done = elenco("resume", waiting)
    assert (0, "written\n") == (done.returncode, done.stdout)
    assert "hi\n" == (place / "ws" / "notes.md").read_text()
    assert 1 == types(record(waiting)).count("tool.started")


def long_ago(place: Path, run: str) -> None:
    """Put all that is on record of a run two hours back."""
    with closing(sqlite3.connect(place / "state" / "runs" / run / "journal.db")) as journal:
        journal.execute("UPDATE events SET at = at - 7200")
        journal.commit()


def test_no_time_is_counted_while_a_run_waits_for_a_human_and_nothing_runs(
    elenco: Run, waiting: str, place: Path
) -> None:
    """Approved and resumed two hours later, agent and run show the seconds of work, at the end and on the page."""
    long_ago(place, waiting)
    assert 0 == elenco("approve", waiting, "a1").returncode
    shown = elenco("show", waiting).stdout
    assert re.search(r"^## ● coordinator   1 step .*\b\d\.\d s$", shown, re.MULTILINE)
    done = elenco("resume", waiting)
    assert re.search(r"^✓ coordinator  completed  2 steps .*\b\d\.\d s$", done.stderr, re.MULTILINE)
    assert re.search(r"^completed   2 steps, .*\b\d\.\d s   run", done.stderr, re.MULTILINE)
    shown = elenco("show", waiting).stdout
    assert re.search(r"^## ✓ coordinator   2 steps .*\b\d\.\d s$", shown, re.MULTILINE)


def test_no_time_is_counted_between_a_kill_and_a_resume(
    elenco: Run, start: Start, script: Script, until: Until, place: Path
) -> None:
    """kill -9 in a child, resumed two hours later: parent and child show the seconds somebody worked."""
    process = start("run", "Look", "--model", script(TEAM.replace('text: "found"', 'stall: 60, text: "found"')))
    run = until("model.requested", 4)
    process.kill()
    process.wait(timeout=20)
    long_ago(place, run)
    script(TEAM)
    done = elenco("resume", run)
    assert 0 == done.returncode
    assert 3 == len(re.findall(r"^✓ .*  completed  .*\b\d\.\d s$", elenco("tail", run).stdout, re.MULTILINE))
    assert 3 == len(re.findall(r"^## ✓ .*\b\d\.\d s$", elenco("show", run).stdout, re.MULTILINE))


def test_left_run_takes_limits_holds_and_edits(
    elenco: Run, start: Start, until: Until, waiting: str, place: Path
) -> None:
    """Limits shown and changed, a hold and an edited approval of a run nobody works on count when it is resumed."""
    shown = elenco("limits", waiting)
    assert re.search(r"^coordinator +max_steps +1 step +90 steps +default$", shown.stdout, re.MULTILINE)
    said = elenco("limits", waiting, "--max-steps", "+5").stderr
    assert f"the root agent: max_steps 95 steps   then: elenco resume {waiting}\n" == said
    assert [1, 95] == next(
        [each["used"], each["of"]]
        for each in json.loads(elenco("limits", waiting, "--json").stdout)
        if each["limit"] == "max_steps"
    )
    no_limit = elenco("limits", waiting, "--max-steps", "many")
    assert (2, "error: max_steps must be a number, not 'many'\n") == (no_limit.returncode, no_limit.stderr)
    assert 0 == elenco("hold", waiting).returncode
    again = elenco("hold", waiting)
    assert (2, "error: the run is held already, by you\n") == (again.returncode, again.stderr)
    for wrong, why in (("{", "--arguments is no JSON"), ("[1]", "--arguments must be a JSON object")):
        refused = elenco("approve", waiting, "a1", "--arguments", wrong)
        assert (2, True) == (refused.returncode, why in refused.stderr)
    edited = json.dumps({"path": "notes.md", "content": "edited\n"})
    assert 0 == elenco("approve", waiting, "a1", "--arguments", edited).returncode
    process = start("resume", waiting, "--no-input")
    until("run.resumed")
    assert " held " in elenco("runs").stdout
    assert not (place / "ws" / "notes.md").exists()
    assert 0 == elenco("continue", waiting).returncode
    assert "written\n" == process.communicate(timeout=20)[0]
    assert "edited\n" == (place / "ws" / "notes.md").read_text()


def test_denial_reaches_the_model_with_its_reason(elenco: Run, waiting: str, place: Path) -> None:
    """deny --why, then resume: nothing is written and the model reads the reason."""
    assert 0 == elenco("deny", waiting, "a1", "--why", "use docs/ instead").returncode
    assert 0 == elenco("resume", waiting).returncode
    assert not (place / "ws" / "notes.md").exists()
    page = elenco("show", waiting).stdout
    assert "refused by you: use docs/ instead" in page


def test_undecided_run_waits_again(elenco: Run, waiting: str, record: Record) -> None:
    """Resumed without a decision, it asks the same question again and leaves with exit 4."""
    again = elenco("resume", waiting)
    assert 4 == again.returncode
    assert f"waiting: a1 (coordinator, write_file)   elenco approve {waiting} a1" in again.stderr
    assert 1 == types(record(waiting)).count("approval.requested")


def test_message_to_a_waiting_run_is_kept_for_its_next_process(elenco: Run, waiting: str) -> None:
    """What is said while nobody works on the run enters the history when it goes on."""
    told = elenco("say", waiting, "Only one line")
    assert f"it reads it at its next step   then: elenco resume {waiting}" in told.stderr
    elenco("approve", waiting, "a1")
    assert 0 == elenco("resume", waiting).returncode
    assert "> steer: Only one line" in elenco("show", waiting).stdout


def test_unknown_decision_is_refused_with_the_open_ones(elenco: Run, waiting: str) -> None:
    """A wrong id is exit 2 and names what can be decided."""
    refused = elenco("approve", waiting, "a7")
    assert (2, 1) == (refused.returncode, refused.stderr.count("open: a1"))


def test_run_cancelled_without_a_process_takes_no_more_and_says_so(elenco: Run, waiting: str, place: Path) -> None:
    """The list, the page and whoever decides are told that it was cancelled; a resume gives its report."""
    assert f"elenco resume {waiting}" in elenco("show", waiting).stdout
    cancelled = elenco("cancel", waiting)
    assert (0, f"cancelled: run {waiting}   its report: elenco resume {waiting}\n") == (
        cancelled.returncode,
        cancelled.stderr,
    )
    assert "cancelled" in elenco("runs").stdout
    assert re.search(r"^cancelled +agent coordinator", elenco("show", waiting).stdout, re.MULTILINE)
    late = elenco("approve", waiting, "a1")
    assert (2, 1) == (late.returncode, late.stderr.count(f"too late: run {waiting} was cancelled, by you"))
    assert 130 == elenco("resume", waiting).returncode
    assert not (place / "ws" / "notes.md").exists()


@pytest.mark.parametrize("rules", ["deny: [writefile]", "ask: ['write_fil(x)']"])
def test_mistyped_rule_of_an_agent_file_stops_the_run(elenco: Run, script: Script, place: Path, rules: str) -> None:
    """A rule that would forbid nothing is told with its place; nothing runs."""
    head = f"---\nname: coordinator\ndescription: d\ntools: [write_file]\npermissions: {{{rules}}}\n---\nLead.\n"
    (place / "ws" / "agents").mkdir(exist_ok=True)
    (place / "ws" / "agents" / "coordinator.md").write_text(head)
    done = elenco("run", "Write", "--model", script(WRITE), "--yes")
    assert 2 == done.returncode
    assert "agents/coordinator.md:5:" in done.stderr
    assert "did you mean 'write_file'" in done.stderr
    assert not (place / "ws" / "notes.md").exists()


def test_yes_answers_beforehand_and_a_deny_rule_still_holds(elenco: Run, script: Script, place: Path) -> None:
    """--yes lets the call run; --deny keeps it from running all the same."""
    model = script(WRITE)
    denied = elenco("run", "Write", "--model", model, "--yes", "--deny", "write_file")
    assert 0 == denied.returncode
    assert not (place / "ws" / "notes.md").exists()
    assert "denied by rule deny: write_file" in denied.stderr
    assert 0 == elenco("run", "Write", "--model", model, "--yes").returncode
    assert (place / "ws" / "notes.md").exists()


def test_plan_mode_changes_nothing(elenco: Run, script: Script, place: Path) -> None:
    """In plan mode not even --yes writes a file."""
    done = elenco("run", "Write", "--model", script(WRITE), "--yes", "--mode", "plan")
    assert 0 == done.returncode
    assert not (place / "ws" / "notes.md").exists()


# --- other processes ---------------------------------------------------------------------------------------------


def test_other_processes_watch_speak_to_and_cancel_a_live_run(
    elenco: Run, start: Start, script: Script, record: Record, until: Until
) -> None:
    """tail --follow sees every kept event once, say reaches the agent, cancel ends it with 130 and a report."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("actor.started")
    follower = start("tail", run, "--follow", "--json")
    until("tool.finished")
    told = elenco("say", run, "Hurry", "--interrupt")
    assert (0, "told the root agent; it reads it at its next step\n") == (told.returncode, told.stderr)
    refused = elenco("resume", run)
    assert 1 == refused.returncode
    assert "is live in another process" in refused.stderr
    assert 0 == elenco("cancel", run).returncode
    stdout, stderr = process.communicate(timeout=20)
    assert (130, "Partial answer (cancelled):\nbegun\n") == (process.returncode, stdout)
    assert "\ncancelled   " in stderr
    lines, _ = follower.communicate(timeout=20)
    followed = [json.loads(line) for line in lines.splitlines()]
    kept = [event for event in followed if "seq" in event]
    assert 0 == follower.returncode
    assert kept == record(run)
    assert list(range(1, len(kept) + 1)) == [event["seq"] for event in kept]
    assert ("run.finished", "cancelled") == (kept[-1]["type"], kept[-1]["report"]["status"])
    assert [("Hurry", True)] == [
        (event["text"], event["interrupt"])
        for event in kept
        if event["type"] == "steer.received" and not event["entered"]
    ]


def test_tail_begins_at_an_event_or_with_the_last_ones(elenco: Run, script: Script) -> None:
    """--from N begins at that event; below zero counts from the end: events as JSON, what is shown of them as text."""
    model = script("coordinator: [{text: I look., calls: [{name: list_files}]}, {text: done}]")
    elenco("run", "Find x", "--quiet", "--model", model)
    run = json.loads(elenco("runs", "--json").stdout)["id"]
    every = elenco("tail", run, "--json").stdout.splitlines()
    shown = elenco("tail", run).stdout.splitlines()
    assert (4, "✓ coordinator  completed") == (len(shown), shown[-1][:24])
    for count in (1, 3, 1000):
        assert every[-count:] == elenco("tail", run, "--json", "--from", f"-{count}").stdout.splitlines()
        assert shown[-count:] == elenco("tail", run, f"--from=-{count}", "--follow").stdout.splitlines()
    assert every[4:] == elenco("tail", run, "--json", "--from", "5").stdout.splitlines()
    assert shown[1:] == elenco("tail", run, "--from", "5").stdout.splitlines()
    assert "--from SEQ    begin at this event; -N: with the last N shown" in elenco("tail", "--help").stdout


def test_live_run_is_held_and_goes_on(elenco: Run, start: Start, script: Script, until: Until) -> None:
    """hold stops it before its next step, continue lets it end as ever."""
    model = script("coordinator:\n  - {stall: 6, calls: [{name: list_files}]}\n  - text: ok\n")
    process = start("run", "Wait", "--model", model)
    run = until("model.requested")
    assert 0 == elenco("hold", run).returncode
    assert run == until("actor.held")
    assert " held " in elenco("runs").stdout
    assert 0 == elenco("continue", run).returncode
    assert "ok\n" == process.communicate(timeout=20)[0]
    assert 0 == process.returncode


def test_approval_reaches_a_live_run(elenco: Run, start: Start, script: Script, place: Path, until: Until) -> None:
    """A run that waits with another actor at work is decided from another terminal, and goes on by itself."""
    model = script(
        "coordinator:\n  - calls: [{name: delegate_to_researcher, arguments: {task: x}},"
        " {name: delegate_to_scribe, arguments: {task: x}}]\n  - text: ok\n"
        "researcher:\n  - {stall: 8, text: slow}\n"
        "scribe:\n  - calls: [{name: write_file, arguments: {path: notes.md, content: hi}}]\n  - text: wrote\n"
    )
    agents = place / "ws" / "agents"
    agents.mkdir()
    (agents / "scribe.md").write_text("---\nname: scribe\ndescription: x\ntools: [write_file]\n---\nWrite.\n")
    (agents / "coordinator.md").write_text(
        "---\nname: coordinator\ndescription: x\ntools: []\nsubagents: [researcher, scribe]\n---\nLead.\n"
    )
    process = start("run", "Write", "--model", model)
    run = until("approval.requested")
    approved = elenco("approve", run, "a1")
    assert (0, "approved a1\n") == (approved.returncode, approved.stderr)
    assert "ok\n" == process.communicate(timeout=20)[0]
    assert "hi" == (place / "ws" / "notes.md").read_text()


def test_of_two_that_resume_a_run_one_wins(elenco: Run, start: Start, waiting: str, record: Record) -> None:
    """Two processes take the same run over at once: one works on it, the other is told that it is owned."""
    elenco("approve", waiting, "a1")
    both = [start("resume", waiting) for _ in range(2)]
    ends = [process.communicate(timeout=30) for process in both]
    codes = sorted(process.returncode for process in both)
    assert codes in ([0, 1], [0, 2])
    winner = next(end for process, end in zip(both, ends, strict=True) if process.returncode == 0)
    loser = next(end for process, end in zip(both, ends, strict=True) if process.returncode)
    assert "written\n" == winner[0]
    assert ("", 1) == (loser[0], len(loser[1].rstrip().split("\n"))), loser[1]
    assert re.search("owned by|is live in|is completed|meanwhile", loser[1])
    assert 1 == types(record(waiting)).count("tool.started")


def test_names_stand_for_ids_and_deleted_runs_are_gone(elenco: Run, waiting: str, place: Path) -> None:
    """rename gives a name that every command takes; delete removes the run and all its files."""
    assert 0 == elenco("rename", waiting, "release notes").returncode
    assert f"{waiting} release notes" in elenco("runs").stdout
    assert elenco("show", "release notes").stdout.startswith(f"# run {waiting}: ")
    gone = elenco("delete", "release notes")
    assert (0, f"deleted {waiting}\n") == (gone.returncode, gone.stderr)
    assert "" == elenco("runs").stdout
    assert [] == list((place / "state" / "runs").iterdir())
    assert 2 == elenco("delete", waiting).returncode


def test_live_run_is_not_deleted(elenco: Run, start: Start, script: Script, until: Until) -> None:
    """delete refuses a run that a process owns."""
    process = start("run", "Wait", "--model", script(SLOW))
    run = until("model.requested")
    refused = elenco("delete", run)
    assert 1 == refused.returncode
    assert "owned by process" in refused.stderr
    assert process.poll() is None
