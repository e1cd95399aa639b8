"""Odd surroundings: locales, folders that cannot be read or written, full disks, newer databases, closed streams."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]

SAYS = "coordinator:\n  - text: 'Größe “ok” ✓ → 道'\n"


def run_id(stderr: str) -> str:
    found = re.search(r"^run (\w+) ", stderr, re.MULTILINE)
    assert found is not None, stderr
    return found[1]


@pytest.mark.parametrize(
    ("env", "answer", "mark"),
    [
        ({"LC_ALL": "C"}, "Größe “ok” ✓ → 道\n", "● coordinator"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 'Gr??e "ok" + -> ?\n', "* coordinator"),
        ({"PYTHONIOENCODING": "iso-8859-1"}, 'Gr\udcf6\udcdfe "ok" + -> ?\n', "* coordinator"),
    ],
)
def test_any_locale_will_do(elenco: Run, script: Script, env: dict[str, str], answer: str, mark: str) -> None:
    """Under C and other locales than UTF-8 a run ends as ever; what cannot be shown gets a stand-in."""
    done = elenco("run", "Größe?", "--model", script(SAYS), env=env)
    assert 0 == done.returncode, done.stderr
    assert mark in done.stderr
    assert "Traceback" not in done.stderr
    assert answer == done.stdout


def test_workspace_that_cannot_be_written_is_read_all_the_same(elenco: Run, place: Path) -> None:
    """Offline over a read-only workspace: the same answer, nothing tried to be written."""
    folders = [place / "ws", place / "ws" / "docs"]
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = elenco("run", "How are words split?", "--quiet")
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert (0, "") == (done.returncode, done.stderr)
    assert "parse.py" in done.stdout


def test_folder_whose_name_is_no_text_is_refused(elenco: Run, place: Path) -> None:
    """A workspace path that no record could hold as text is told in one line."""
    folder = os.fsencode(place) + b"/\xff"
    os.mkdir(folder)
    done = elenco("run", "x", "--workspace", os.fsdecode(folder))
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert "is no UTF-8 text" in done.stderr


def test_empty_workspace_finds_nothing_and_says_how_to_connect(elenco: Run, place: Path) -> None:
    """A folder without files: completed, "Nothing found"."""
    (place / "empty").mkdir()
    done = elenco("run", "How are words split?", "--workspace", str(place / "empty"))
    assert 0 == done.returncode
    assert "Nothing found" in done.stdout


@pytest.mark.parametrize("state", ["parse.py", "parse.py/below"])
def test_state_folder_that_cannot_be_used_is_told(elenco: Run, state: str) -> None:
    """A file in the place of the state folder: one line that names it and the flag, exit 2."""
    done = elenco("run", "x", "--state", state, state=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert re.fullmatch(r"error: cannot use the state folder .*parse\.py.*; choose another: --state DIR\n", done.stderr)


def test_without_a_home_runs_are_kept_and_it_is_said_where(elenco: Run, place: Path) -> None:
    """HOME that cannot be used: the record goes to a private temporary folder, and stderr says so."""
    temporary = place / "tmp"
    temporary.mkdir()
    env = {"HOME": str(place / "ws" / "parse.py"), "TMPDIR": str(temporary)}
    done = elenco("run", "How are words split?", state=False, env=env)
    assert 0 == done.returncode, done.stderr
    assert f"runs are kept in {temporary}/elenco-state-{os.getuid()}, which a restart may empty" in done.stderr


def test_database_of_a_newer_version_is_refused_not_damaged(elenco: Run, script: Script, place: Path) -> None:
    """A run written by a newer Elenco: show and resume say so with exit 1, and leave it as it is."""
    run = run_id(elenco("run", "x", "--model", script(SAYS)).stderr)
    database = place / "state" / "runs" / run / "journal.db"
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    for words in (("show", run), ("resume", run)):
        done = elenco(*words)
        assert (1, "") == (done.returncode, done.stdout)
        assert re.search("version 99.*update Elenco", done.stderr)
        assert 1 == done.stderr.count("\n")


def test_runs_of_a_newer_version_are_listed_as_such(elenco: Run, script: Script, place: Path) -> None:
    """A record that a newer Elenco wrote is not called damaged: the list and its check say to update Elenco."""
    run = run_id(elenco("run", "x", "--model", script(SAYS)).stderr)
    other = run_id(elenco("run", "x", "--model", script(SAYS)).stderr)
    with sqlite3.connect(place / "state" / "runs" / run / "journal.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    checked = elenco("runs", "--check")
    told = f"read all of 1 run: none damaged\na newer Elenco wrote {run}: update Elenco\n"
    assert (1, told) == (checked.returncode, checked.stderr)
    (place / "state" / "index.db").unlink()
    listed = elenco("runs")
    row = next(line for line in listed.stdout.splitlines() if line.startswith(run))
    assert (0, "of a newer Elenco") == (listed.returncode, row[6:23])
    assert other in listed.stdout
    assert f"a newer Elenco wrote {run}: update Elenco\nnext: elenco show RUN\n" == listed.stderr
    states = {each["id"]: each["state"] for each in map(json.loads, elenco("runs", "--json").stdout.splitlines())}
    assert {run: "newer", other: "completed"} == states


def test_index_of_a_newer_version_is_left_alone_with_a_warning(elenco: Run, script: Script, place: Path) -> None:
    """The list of runs is only a cache: a newer one is told in one line, and stops nothing."""
    elenco("run", "x", "--model", script(SAYS))
    connection = sqlite3.connect(place / "state" / "index.db")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    assert "update Elenco" in elenco("runs").stderr
    screen = elenco(env={"ELENCO_STATE": str(place / "state")})
    assert (0, 1) == (screen.returncode, screen.stderr.count("\n"))
    assert "update Elenco" in screen.stderr


def test_full_disk_stops_the_run_with_one_line(elenco: Run, script: Script) -> None:
    """When the journal cannot be written any more the run stops: exit 1, one line that says why, no traceback."""
    model = script(
        "coordinator:\n  - repeat: 200\n    text: "
        + "w" * 3000
        + "\n    calls: [{name: list_files, arguments: {path: .}}]\n"
    )
    limited = ("sh", "-c", 'ulimit -f 300; exec "$@"', "sh")
    done = elenco("run", "x", "--model", model, "--quiet", before=limited)
    assert (1, "") == (done.returncode, done.stdout)
    assert re.fullmatch(r"error: .*\n", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("closed", "code"), [("<&-", 0), ("2>&-", 0), (">&- 2>&-", 1)])
def test_closed_streams_end_a_run_without_a_traceback(elenco: Run, closed: str, code: int) -> None:
    """With standard input or error closed a run ends as ever; an answer that nobody can be given is a failure."""
    done = elenco("run", "zyzzyva", before=("sh", "-c", f'exec "$@" {closed}', "sh"), input="")
    assert code == done.returncode
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_told(elenco: Run) -> None:
    """An answer on a full device: exit 1, and stderr says where it is on record."""
    done = elenco("run", "zyzzyva", before=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert 1 == done.returncode
    lost = "error: cannot write the answer: No space left on device; it is on record: elenco show "
    assert done.stderr.split("\n")[-2].startswith(lost)
    helped = elenco("--help", before=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert (1, "error: No space left on device: standard output\n") == (helped.returncode, helped.stderr)


def test_reader_that_leaves_changes_no_exit_code(elenco: Run, script: Script) -> None:
    """`| head -0` on a stopped run: its exit code stays 3."""
    model = script("coordinator:\n  - repeat: 9\n    text: more\n    calls: [{name: list_files}]\n")
    done = elenco(
        *("run", "x", "--model", model, "--max-steps", "2"),
        before=("bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "bash"),
    )
    assert 3 == done.returncode
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_offline_run_makes_no_connection_and_starts_no_process(elenco: Run, place: Path) -> None:
    """Seen by the kernel: no connection but to unix sockets, no second process, no file outside the state folder."""
    log = place / "strace"
    traced = ("strace", "-f", "-qq", "-e", "trace=connect,execve,openat,rename,mkdir,unlink", "-o", str(log))
    done = elenco("run", "How are words split?", "--quiet", before=traced, timeout=120)
    if "ptrace" in done.stderr:
        pytest.skip("this machine lets nobody trace")
    assert 0 == done.returncode, done.stderr
    calls = log.read_text(errors="replace").splitlines()
    assert [] == [call for call in calls if "connect(" in call and "AF_UNIX" not in call]
    started = [call for call in calls if "execve(" in call and call.endswith("= 0")]
    assert len(started) <= 2, started
    written = [
        call
        for call in calls
        if re.search(r"O_WRONLY|O_RDWR|O_CREAT", call) and not call.endswith("(No such file or directory)")
    ]
    allowed = (str(place / "state"), str(place / "rt"), "/dev/null", "/dev/tty", "/proc/", "__pycache__")
    assert [] == [call for call in written if not any(part in call for part in allowed)]


@pytest.mark.parametrize("named", ["by a flag", "by ELENCO_STATE", "twice"])
def test_printed_commands_find_the_run_again(elenco: Run, script: Script, place: Path, named: str) -> None:
    """What a run prints to be typed next works as it stands: with --state where only that flag named the folder."""
    kept = place / "my runs"
    flag = () if named == "by ELENCO_STATE" else ("--state", str(kept))
    env = {} if named == "by a flag" else {"ELENCO_STATE": str(kept)}
    done = elenco("run", "x", "--model", script(SAYS), *flag, state=False, env=env)
    typed = re.search(r"elenco (show .*)", done.stderr)
    assert typed is not None, done.stderr
    assert ("--state" in typed[1]) == (named == "by a flag")
    assert 0 == elenco(*shlex.split(typed[1]), state=False, env=env).returncode


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "abcd"), "(elenco runs --state {})"),
        (("runs",), "each with --state {}"),
        (("resume", "{}"), "elenco show {} --state {}"),
    ],
)
def test_hints_and_errors_name_the_state_folder_of_the_flag(
    elenco: Run, script: Script, place: Path, words: tuple[str, ...], told: str
) -> None:
    """Commands that errors and lists advise carry the flag, too."""
    flag = ("--state", str(place / "kept"))
    run = run_id(elenco("run", "x", "--model", script(SAYS), *flag, state=False).stderr)
    said = elenco(*(word.format(run) for word in words), *flag, state=False).stderr
    assert told.format(*[run] * (told.count("{}") - 1), flag[1]) in said


def test_two_hundred_characters_of_state_folder_will_do(elenco: Run, script: Script, place: Path) -> None:
    """A long path to the state folder keeps neither journal nor control socket from working."""
    state = place / ("s" * 100) / ("t" * 100)
    done = elenco("run", "x", "--model", script(SAYS), "--state", str(state), state=False)
    assert 0 == done.returncode, done.stderr
    listed = elenco("runs", "--json", "--state", str(state), state=False)
    assert run_id(done.stderr) == json.loads(listed.stdout)["id"]


def test_command_needs_no_checkout(place: Path) -> None:
    """Started from elsewhere through the interpreter, with an agent folder that is none, it finds the shipped cast."""
    done = subprocess.run(
        [sys.executable, "-m", "runtime.cli", "agents"], cwd=place / "home", capture_output=True, text=True, check=False
    )
    assert "shipped:agents/coordinator.md" in done.stdout
