"""What a newcomer gets wrong, or looks at first: each slip costs one clear line that says what to type instead."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

Script = Callable[[str], str]

TWICE = """\
coordinator:
  - calls: [{name: list_files, arguments: {path: .}}]
  - done
  - done again
"""
WRITES = """\
coordinator:
  - calls: [{name: write_file, arguments: {path: notes.md, content: "a short note"}}]
  - done
"""


def newest(elenco: Run) -> str:
    found: str = json.loads(elenco("runs", "--json").stdout.splitlines()[0])["id"]
    return found


@pytest.fixture
def ended(elenco: Run, script: Script) -> str:
    """A completed run of two steps."""
    assert 0 == elenco("run", "x", "--quiet", "--model", script(TWICE)).returncode
    return newest(elenco)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert (2, "") == (done.returncode, done.stdout), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_damage_names_what_helps(elenco: Run, ended: str, place: Path) -> None:
    """Whoever meets a journal that cannot be read is told which commands look through all and remove it."""
    (place / "state" / "runs" / ended / "journal.db").write_bytes(b"no database" * 1000)
    for words in (("show", ended), ("tail", ended), ("resume", ended)):
        done = elenco(*words)
        assert (1, 1) == (done.returncode, done.stderr.count("\n"))
        assert "elenco runs --check" in done.stderr
        assert f"elenco delete {ended}" in done.stderr


def test_follow_up_without_a_task_says_how(elenco: Run, ended: str) -> None:
    """`run --continue RUN` alone: both what a follow-up needs and how the old run itself goes on."""
    said = refused(elenco("run", "--continue", ended))
    assert f'elenco run --continue {ended} "And then?"' in said
    assert f"elenco resume {ended}" in said


@pytest.mark.parametrize(
    ("folder", "told"),
    [
        ("nowhere", "the workspace nowhere does not exist"),
        ("README.md", "the workspace README.md is a file: name the folder it is in"),
        ("README.md/x", "the workspace README.md/x cannot be used: Not a directory"),
    ],
)
@pytest.mark.parametrize("words", [("run", "x"), ("check",), ("tools",), ("models",), ("agents",), ("doctor",)])
def test_workspace_that_is_none_is_told_in_its_own_words(
    elenco: Run, words: tuple[str, ...], folder: str, told: str
) -> None:
    """What is missing is told apart from what is a file, by every command that takes a workspace."""
    assert told in refused(elenco(*words, "--workspace", folder))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("hello", "it is not JSON"),
        ("[1]", "it is no JSON object"),
        ('{"x": 1}', "it has no 'v', the version of event lines"),
        ('{"v": 1, "seq": 1}', "it has no at, run, actor, type"),
        ('{"v": 1, "seq": 1, "at": "noon", "run": "r", "actor": "", "type": "x"}', "its 'at' is no time"),
        ('{"v": 1, "seq": 1, "at": "", "run": "r", "actor": "", "type": "run.started"}', "run.started has no 'task'"),
    ],
)
def test_import_says_what_a_line_is_not(elenco: Run, place: Path, line: str, why: str) -> None:
    """File and line, what is wrong, and which command writes such lines."""
    (place / "ws" / "x.jsonl").write_text(f"\n{line}\n")
    said = refused(elenco("import", "x.jsonl", "--state", str(place / "state")))
    assert said.startswith("error: x.jsonl:2: no event of a run: ")
    assert why in said
    assert said.endswith("each line is an event, as elenco show RUN --format jsonl writes it\n")


def test_decision_without_an_id_lists_what_waits(elenco: Run, script: Script, place: Path) -> None:
    """approve, deny and answer say what each open id is about, and decide nothing."""
    state = ("--state", str(place / "state"))
    assert 4 == elenco("run", "x", "--no-input", "--model", script(WRITES)).returncode
    run = newest(elenco)
    for command in ("approve", "deny"):
        said = refused(elenco(command, run))
        assert f"elenco {command} {run} a1\n  a1  coordinator wants write_file  " in said
        assert 'content="a short note"' in said
    assert f"waits for a1: elenco approve {run}" in refused(elenco("answer", run, *state))
    assert 0 == elenco("approve", run, "a1").returncode
    assert f"no approval is waited for in run {run}" in refused(elenco("approve", run))


def test_question_without_its_answer_is_shown(elenco: Run, script: Script, place: Path) -> None:
    """`answer RUN` shows the question and the line to type; with the id alone the answer is what is missing."""
    (place / "ws" / "agents").mkdir()
    (place / "ws" / "agents" / "lead.md").write_text("---\nname: lead\ndescription: x\ntools: [ask_user]\n---\nAsk.\n")
    model = script('lead: [{calls: [{name: ask_user, arguments: {question: "Which branch?"}}]}, done]')
    state = ("--state", str(place / "state"))
    assert 4 == elenco("run", "lead", "x", "--no-input", "--model", model).returncode
    run = newest(elenco)
    for words, missing in (((run,), "give the id of what is to be decided"), ((run, "q1"), "give the answer")):
        said = refused(elenco("answer", *words, *state))
        assert said == f'error: {missing}: elenco answer {run} q1 "…"\n  q1  lead asks: Which branch?\n'


def test_base_url_that_is_none_is_told_once(elenco: Run) -> None:
    """The flag, what it held, what it must be: each once; a password in it is not repeated."""
    said = refused(elenco("run", "x", "--model", "lab/x", "--base-url", "ftp://x"))
    assert "error: --base-url 'ftp://x': it must begin with http:// or https://\n" == said
    assert "secret" not in refused(elenco("run", "x", "--model", "lab/x", "--base-url", "http://me:secret@host/"))


def test_address_in_the_settings_that_is_none_is_told_once(elenco: Run, place: Path) -> None:
    """The same reason is not given twice, and the place is."""
    (place / "ws" / "elenco.yaml").write_text("providers: {lab: {wire: openai-chat, base_url: nonsense}}")
    said = refused(elenco("run", "x"))
    assert said.startswith("elenco.yaml:1:48: must be a URL that begins with http:// or https://\n"), said


def test_flag_before_its_command_is_told_where_it_belongs(elenco: Run) -> None:
    """A flag of a command, typed before it, is not called unknown."""
    said = refused(elenco("--workspace", "docs", "run", "x", state=False))
    assert said == "error: '--workspace' stands before its command: elenco run --workspace …\n"


@pytest.mark.parametrize(("model", "told"), [("nope/x", "unknown provider 'nope'"), ("openai/x", "no key for openai")])
def test_model_that_cannot_be_asked_is_a_wrong_input(elenco: Run, model: str, told: str) -> None:
    """`elenco models --model` answers as `elenco run --model` does; nothing is asked."""
    assert told in refused(elenco("models", "--model", model))


@pytest.mark.parametrize("words", [("runs",), ("show", "abcd"), ("undo", "abcd")])
def test_state_that_is_a_file_is_a_wrong_input(elenco: Run, words: tuple[str, ...]) -> None:
    """Whatever the command, a --state that is no folder ends it with 2 and the reason."""
    said = refused(elenco(*words, "--state", "README.md", state=False))
    assert re.fullmatch(r"error: cannot use the state folder .*README\.md: it is no folder; choose another: .*\n", said)


@pytest.mark.parametrize("flags", [("--older-than", "3"), ("--keep", "1"), ("--yes",)])
def test_flags_of_prune_are_not_passed_over(elenco: Run, flags: tuple[str, ...]) -> None:
    """Without --prune they would mean nothing: refused, with the command that was meant."""
    assert f"{flags[0]} belongs to --prune: elenco runs --prune" in refused(elenco("runs", *flags))


def test_limit_below_what_is_used_is_refused_at_resume(elenco: Run, script: Script) -> None:
    """The run would only stop again: one line says how much is used and how to raise the limit."""
    model = script(TWICE.replace("  - done\n", "  - calls: [{name: list_files, arguments: {path: docs}}]\n", 1))
    assert 3 == elenco("run", "x", "--quiet", "--model", model, "--max-steps", "2").returncode
    run = newest(elenco)
    said = refused(elenco("resume", run, "--max-steps", "1"))
    assert f"1 step is below the 2 steps that run {run} has used already" in said
    assert f"elenco resume {run} --max-steps +20" in said
    assert 0 == elenco("resume", run, "--max-steps", "+2", "--quiet").returncode


def test_limit_below_what_is_used_is_refused_without_a_process(elenco: Run, script: Script) -> None:
    """`elenco limits` of a run that waits answers as a live one does."""
    model = script("coordinator: [{calls: [{name: write_file, arguments: {path: notes.md, content: short}}]}, done]")
    assert 4 == elenco("run", "x", "--quiet", "--no-input", "--model", model).returncode
    run = newest(elenco)
    said = refused(elenco("limits", run, "--max-steps", "1", "--token-budget", "1"))
    assert "token_budget of coordinator cannot go below" in said
    assert 0 == elenco("limits", run, "--max-steps", "1").returncode


def test_quiet_run_that_a_limit_stopped_says_how_it_goes_on(elenco: Run, script: Script) -> None:
    """--quiet leaves one line on standard error for exit 3, and nothing for a run that is completed."""
    done = elenco("run", "x", "--quiet", "--model", script(TWICE), "--max-steps", "1")
    assert 3 == done.returncode
    assert re.fullmatch(r"stopped: max_steps .*go on: elenco resume \w+ --max-steps \+20\n", done.stderr), done.stderr
    assert "" == elenco("run", "x", "--quiet", "--model", script(TWICE)).stderr


def test_fork_is_listed_as_what_it_is(elenco: Run, ended: str, place: Path) -> None:
    """A copy nobody has gone on with was not interrupted: list and page say forked, from where, and how it goes on."""
    made = elenco("fork", ended, "--at", "3", "--state", str(place / "state")).stdout.strip()
    listed = elenco("runs")
    assert re.search(rf"^{made} +forked ", listed.stdout, re.MULTILINE)
    assert f"resume {made}" in listed.stderr
    page = elenco("show", made).stdout
    assert f"\nforked from {ended} at event 3   " in page
    assert page.endswith(f"go on: elenco resume {made}\n")
    assert 0 == elenco("resume", made, "--quiet").returncode
    assert re.search(rf"^{made} +completed ", elenco("runs").stdout, re.MULTILINE)


def test_list_of_completed_runs_suggests_no_resume(elenco: Run, ended: str) -> None:
    """Where every run is completed, there is nothing to resume and nothing to follow."""
    assert "next: elenco show RUN\n" == elenco("runs").stderr
    assert ended in elenco("runs").stdout


def test_estimates_are_marked_in_the_list(elenco: Run, ended: str, script: Script) -> None:
    """Tokens that no provider reported have a ~ in the list as at the end of a run; reported ones have none."""
    assert re.search(rf"^{ended} .* ~[\d.]+k? ", elenco("runs").stdout, re.MULTILINE)
    reported = script("coordinator:\n  - {text: done, usage: {input: 100, output: 20}}\n")
    elenco("run", "x", "--quiet", "--model", reported)
    assert re.search(rf"^{newest(elenco)} .* 120 ", elenco("runs").stdout, re.MULTILINE)


@pytest.mark.parametrize(
    "words", [("runs",), ("show", "RUN"), ("tail", "RUN", "--json"), ("runs", "--help"), ("agents",)]
)
def test_reader_that_has_left_is_no_failure(elenco: Run, ended: str, words: tuple[str, ...]) -> None:
    """`| true`: exit 0 and no complaint, whichever command it is."""
    gone = ("bash", "-c", 'exec 3> >(exec true); wait $!; exec "$@" >&3', "bash")
    done = elenco(*(ended if word == "RUN" else word for word in words), before=gone)
    assert 0 == done.returncode
    assert "error" not in done.stderr.lower()


def test_reader_that_has_left_does_not_hide_a_wrong_input(elenco: Run) -> None:
    """What the command had come to by then stays its exit code."""
    gone = ("bash", "-c", 'exec 3> >(exec true); wait $!; exec "$@" >&3', "bash")
    assert 2 == elenco("show", "zzzz", before=gone).returncode
