"""The answer and the progress where they cannot go: no output, a full one, a run that never began."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from runtime.journal.folder import RunFolder
from runtime.journal.read import RunReader

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]

SAYS = "coordinator:\n  - text: done\n"
LOOP = """
coordinator:
  - repeat: 9
    text: "so far nothing"
    calls: [{name: list_files, arguments: {path: docs}}]
    usage: {input: 1000, output: 10}
"""


@pytest.mark.parametrize(("file", "told"), [("/nosuch/x", "there is no folder /nosuch"), (".", "that is a folder")])
def test_output_that_cannot_be_is_told_before_the_run(elenco: Run, place: Path, file: str, told: str) -> None:
    """--output where nothing can be written: exit 2, one line, no run."""
    done = elenco("run", "x", "--output", file)
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert f"error: --output {file}: {told}" in done.stderr
    assert [] == list((place / "state").iterdir())


def test_answer_to_a_closed_output_is_no_success(elenco: Run, script: Script, place: Path) -> None:
    """Without a standard output a completed run ends with 1 and names `elenco show`; an --output file will do."""
    closed = ("sh", "-c", 'exec "$@" >&-', "sh")
    done = elenco("run", "x", "--model", script(SAYS), before=closed)
    assert 1 == done.returncode
    run = re.search(r"it is on record: elenco show (\w+)$", done.stderr.rstrip())
    assert run is not None
    assert "done" in elenco("show", run[1]).stdout
    kept = elenco("run", "x", "--model", script(SAYS), "--output", str(place / "a.txt"), before=closed)
    assert (0, "done\n") == (kept.returncode, (place / "a.txt").read_text())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_stderr_costs_the_progress_not_the_run(elenco: Run, script: Script) -> None:
    """With nowhere to put progress the run goes on, prints its answer and exits by its report."""
    done = elenco("run", "x", "--model", script(SAYS), before=("sh", "-c", 'exec "$@" 2>/dev/full', "sh"))
    assert (0, "done\n") == (done.returncode, done.stdout)


def test_run_is_on_record_before_its_id_is_shown(elenco: Run, script: Script, place: Path) -> None:
    """Whoever kills a run as soon as its id is on the screen finds a run that can be resumed."""
    model = script("coordinator:\n  - {stall: 60, text: late}\n")
    pipe = (
        'exec 3< <("$@" 2>&1 & echo pid $!; wait); '
        "while read -r a b <&3; do case $a in pid) p=$b;; run) kill -9 $p; exit 0;; esac; done; exit 1"
    )
    done = elenco("run", "x", "--model", model, before=("bash", "-c", pipe, "bash"))
    assert 0 == done.returncode
    (folder,) = (place / "state" / "runs").iterdir()
    with RunReader(RunFolder(folder)) as reader:
        assert "run.started" == reader.page(1, 1)[0].event.type


def test_run_that_never_began_is_not_offered(elenco: Run, place: Path) -> None:
    """A folder without a first event: no resume is suggested, and each command says one clear line."""
    (place / "state" / "runs" / "k7f2").mkdir(parents=True)
    listed = elenco("runs")
    assert "never began" in listed.stdout
    assert "resume k7f2" not in listed.stderr
    for words in (("show", "k7f2"), ("tail", "k7f2"), ("cancel", "k7f2"), ("resume", "k7f2")):
        done = elenco(*words)
        told = "error: run k7f2 never began, so nothing of it is on record: elenco delete k7f2\n"
        assert (2, "", told) == (done.returncode, done.stdout, done.stderr)


def test_done_run_names_what_can_be_done_with_it(elenco: Run, script: Script) -> None:
    """resume of a completed run points to `show` and to the flag that follows it up."""
    run = re.search(r"run (\w+)   elenco show", elenco("run", "x", "--model", script(SAYS)).stderr)
    assert run is not None
    done = elenco("resume", run[1])
    assert 2 == done.returncode
    assert f'completed: elenco show {run[1]}   to follow it up: elenco run --continue {run[1]} "…"' in done.stderr
    assert "--continue" in elenco("run", "--help").stdout


@pytest.mark.parametrize(
    ("flag", "amount", "told"),
    [
        ("--max-steps", "3", "■ max_steps: 3 of 3 used (flag); the last one was kept for this answer"),
        ("--token-budget", "9000", "of 9,000 used (flag); one more step did not fit"),
    ],
)
def test_limit_line_counts_the_last_answer(elenco: Run, script: Script, flag: str, amount: str, told: str) -> None:
    """What a limit line says was used is what the closing line says, the last answer included."""
    done = elenco("run", "Look", "--model", script(LOOP), flag, amount)
    assert 3 == done.returncode
    assert told in done.stderr


def test_first_line_comes_before_anything_slow(elenco: Run, script: Script) -> None:
    """Which model answers is said before the runtime is loaded."""
    done = elenco("run", "x", "--model", script(SAYS), env={"PYTHONPROFILEIMPORTTIME": "1"})
    before, _, _ = done.stderr.partition("coordinator asks scripted/")
    assert "runtime.outline" in before
    assert not re.search(r"\| +(trio|runtime\.agent)$", before, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "x", "--model"), "--model needs a value  (elenco run --help)"),
        (
            ("run", "x", "--wire", "chat"),
            "--wire is one of openai-chat, openai-responses, anthropic-messages, not 'chat'",
        ),
        (("tail", "k7f2", "--from", "x"), "--from must be a whole number, not 'x'"),
        (("runs", "--json=3"), "--json takes no value"),
        (("show",), "give RUN  (elenco show --help)"),
    ],
)
def test_slip_in_a_flag_is_told_in_our_words(elenco: Run, words: tuple[str, ...], told: str) -> None:
    """A missing value, one that is none of a few, a word too few: one line that says what is wanted."""
    done = elenco(*words, state=False)
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert f"error: {told}" in done.stderr
