"""A run without any model, as a newcomer starts it: the answer, the record, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Done: TypeAlias = subprocess.CompletedProcess[str]

QUESTION = "How are words split?"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def before(module_place: Path) -> dict[str, bytes]:
    return tree(module_place / "ws")


@pytest.fixture(scope="module")
def done(module_elenco: Run, before: dict[str, bytes]) -> Done:
    """The one run most tests here look at: no key, empty home, and where we may, no network at all."""
    assert before
    cut_off = ("unshare", "-n") if os.getuid() == 0 and shutil.which("unshare") else ()
    return module_elenco("run", QUESTION, before=cut_off)


@pytest.fixture(scope="module")
def run_id(done: Done) -> str:
    found = re.search(r"^run (\w+) ", done.stderr, re.MULTILINE)
    assert found is not None
    return found[1]


def events(elenco: Run, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in elenco("tail", run, "--json").stdout.splitlines()]


def test_answer_quotes_the_files_with_path_and_line(done: Done) -> None:
    """Without a key and without network, the run completes and stdout is the answer alone."""
    assert 0 == done.returncode, done.stderr
    assert done.stdout.startswith(f"{QUESTION}\n")
    assert re.search(r'"return s\.split\(\)" +\[parse\.py:2\]', done.stdout)
    assert done.stdout.rstrip().split("\n")[-1].startswith("Read ")


def test_a_question_of_any_length_gets_the_template(elenco: Run) -> None:
    """A hand-over holds no more of a question than its beginning, so none is cut, and the answer stays a page."""
    long = "-".join(["aaaaaaaaa"] * 6000)
    words = " ".join(f"nowhere{number:04}x" for number in range(900))
    done = elenco("run", "-", input=f"{long} {words}")
    assert 0 == done.returncode, done.stderr
    lines = done.stdout.rstrip().split("\n")
    assert 3 == len(lines)
    assert re.fullmatch(r"Nothing found on: .{60}…, nowhere0000x, .*nowhere0018x, …\. Searched 3 files\.", lines[1])
    assert lines[2].startswith("offline/extract only quotes the files of this workspace.")


def test_stderr_says_what_answers_within_which_limits(done: Done) -> None:
    """The first lines on stderr name the offline model and the limits, the last one what it took."""
    first, second = done.stderr.split("\n")[:2]
    assert first == "offline/extract: no model configured, so only quotes (elenco doctor tells how to connect one)"
    assert re.fullmatch(r"run \w+   limits: 90 steps, 200k tokens, 10 min +Ctrl-C stops cleanly", second)
    last = done.stderr.rstrip().split("\n")[-1]
    assert re.fullmatch(r"completed   \d+ steps, .*, no tokens \(offline\)   run (\w+)   elenco show \1", last)


def test_closing_line_counts_the_steps_of_all_actors(done: Done, module_elenco: Run, run_id: str) -> None:
    """The closing line and the list count the replies of the whole tree, not the root's alone."""
    replies = [event for event in events(module_elenco, run_id) if event["type"] == "model.finished"]
    assert len({event["actor"] for event in replies}) == 4
    assert f"completed   {len(replies)} steps, " in done.stderr
    row = json.loads(module_elenco("runs", "--json").stdout.split("\n")[0])
    assert (len(replies), "completed") == (row["steps"], row["status"])


def test_cast_works_as_a_tree(module_elenco: Run, run_id: str) -> None:
    """Coordinator, researcher, reviewer and writer are actors on record, each with its parent and its report."""
    found = events(module_elenco, run_id)
    started = {event["actor"]: event["parent"] for event in found if event["type"] == "actor.started"}
    assert started == {
        "coordinator": None,
        "coordinator/researcher-1": "coordinator",
        "coordinator/reviewer-1": "coordinator",
        "coordinator/writer-1": "coordinator",
    }
    assert set(started) == {event["actor"] for event in found if event["type"] == "actor.finished"}
    assert list(range(1, len(found) + 1)) == [event["seq"] for event in found]


def test_nothing_is_written_outside_the_state_folder(done: Done, module_place: Path, before: dict[str, bytes]) -> None:
    """Workspace, home and runtime folder are as they were: no file is written without a tool call."""
    assert 0 == done.returncode
    assert before == tree(module_place / "ws")
    assert {} == tree(module_place / "home")
    assert {} == tree(module_place / "rt")


def test_no_process_is_left(done: Done, module_place: Path) -> None:
    """When the command has ended, nothing of it runs on."""
    assert 0 == done.returncode
    mine = os.fsencode(module_place)
    left: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mine in command and int(entry.name) != os.getpid():
            left.append(command.decode(errors="replace"))
    assert [] == left


def test_show_gives_the_page_the_data_and_the_record(module_elenco: Run, run_id: str, done: Done) -> None:
    """`show` prints a page with the answer, and as json and jsonl what programs read."""
    page = module_elenco("show", run_id).stdout
    assert page.startswith(f"# run {run_id}: {QUESTION}\n")
    assert done.stdout.strip().split("\n")[-1] in page
    assert "## ✓ coordinator/researcher-1   " in page
    data = json.loads(module_elenco("show", run_id, "--format", "json").stdout)
    assert ("ended", QUESTION, "completed") == (data["phase"], data["task"], data["report"]["status"])
    lines = module_elenco("show", run_id, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == events(module_elenco, run_id)


def test_runs_lists_it_for_people(module_elenco: Run, run_id: str) -> None:
    """`runs` has a head, a row with state and task on stdout, and the next commands on stderr."""
    listed = module_elenco("runs")
    head, row = listed.stdout.split("\n")[:2]
    assert head.split() == ["RUN", "STATE", "AGENT", "STEPS", "TOKENS", "COST", "WHEN", "TASK"]
    assert row.split()[:3] == [run_id, "completed", "coordinator"]
    assert row.endswith(QUESTION)
    assert listed.stderr.startswith("next: ")


def test_first_screen_remembers_the_last_run(module_elenco: Run, run_id: str, module_place: Path) -> None:
    """With a run behind it, the first screen ends with it and with the command that shows it."""
    screen = module_elenco(env={"ELENCO_STATE": str(module_place / "state")}).stdout
    assert screen.rstrip().split("\n")[-1] == f"last run   {run_id} completed, now   elenco show {run_id}"


def test_output_may_be_piped_into_a_program_that_leaves(module_elenco: Run, run_id: str, module_place: Path) -> None:
    """`| head -1` ends it quietly: one line, no traceback, nothing on stderr."""
    state = module_place / "state"
    command = module_elenco("--version").args[0]
    for words in ("tail {} --json", "show {} --format md"):
        piped = subprocess.run(
            f"{command} {words.format(run_id)} --state {state} | head -1",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ("", 1) == (piped.stderr, len(piped.stdout.splitlines()))


def test_a_completed_run_has_nothing_to_go_on_with(module_elenco: Run, run_id: str) -> None:
    """Resuming what is completed is refused, with the way to ask more."""
    refused = module_elenco("resume", run_id)
    assert (2, "") == (refused.returncode, refused.stdout)
    assert "is completed" in refused.stderr


@pytest.mark.parametrize("command", [("say", "x"), ("cancel",), ("approve", "a1")])
def test_a_completed_run_cannot_be_steered(module_elenco: Run, run_id: str, command: tuple[str, ...]) -> None:
    """What comes after the end is refused as too late."""
    refused = module_elenco(command[0], run_id, *command[1:])
    assert 2 == refused.returncode
    assert "too late" in refused.stderr


def test_json_is_the_log_stream_and_nothing_else(elenco: Run) -> None:
    """With --json every line of stdout is one event, from run.started to run.finished, and stderr is empty."""
    done = elenco("run", QUESTION, "--json")
    assert (0, "") == (done.returncode, done.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kept = [line for line in lines if "seq" in line]
    assert ("run.started", "run.finished") == (kept[0]["type"], kept[-1]["type"])
    assert list(range(1, len(kept) + 1)) == [line["seq"] for line in kept]
    assert {1} == {line["v"] for line in lines}
    assert all("after" in line and "n" in line for line in lines if "seq" not in line)


def test_quiet_prints_the_answer_alone_and_output_keeps_it(elenco: Run, place: Path) -> None:
    """--quiet leaves stderr empty; --output writes the same answer to a file. A question without a match says so."""
    done = elenco("run", "zyzzyva quokka", "--quiet", "--output", str(place / "answer.md"))
    assert (0, "") == (done.returncode, done.stderr)
    assert "Nothing found" in done.stdout
    assert done.stdout == (place / "answer.md").read_text()
    assert str(place) not in done.stdout


def test_task_comes_from_standard_input(elenco: Run) -> None:
    """`-` reads the task; the answer is the same as for a task in the words."""
    done = elenco("run", "researcher", "-", "--quiet", input=f"{QUESTION}\n")
    assert 0 == done.returncode
    assert "parse.py" in done.stdout
