"""Pipes, devices and endless files where a file is expected: told in one line at once, never waited for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from runtime.handwritten import MOST, read_bytes, read_text

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = frozenset({"trio", "httpx", "rich", "runtime.agent", "runtime.journal.durable", "runtime.wire.encoder"})


def test_settings_that_are_a_pipe_are_told_not_waited_for(elenco: Run, place: Path) -> None:
    """A pipe in the place of elenco.yaml ends `run` and `check` with 2 and a line that says what to do."""
    os.mkfifo(place / "ws" / "elenco.yaml")
    run, check = elenco("run", "hi", timeout=20), elenco("check", timeout=20)
    told = "elenco.yaml:1:1: cannot be read: it is a pipe; put a regular file in its place"
    assert (2, "", told) == (run.returncode, run.stdout, run.stderr.split("\n")[0])
    assert (2, f"{told}\n") == (check.returncode, check.stdout)


def test_agent_files_that_are_no_files_are_faults(elenco: Run, place: Path) -> None:
    """check names a pipe and a link to a device among the agent files, and ends."""
    (place / "ws" / "agents").mkdir()
    os.mkfifo(place / "ws" / "agents" / "p.md")
    (place / "ws" / "agents" / "z.md").symlink_to("/dev/zero")
    done = elenco("check", timeout=20)
    assert 2 == done.returncode
    assert "agents/p.md:1:1: cannot be read: it is a pipe" in done.stdout
    assert "agents/z.md:1:1: cannot be read: it is a device" in done.stdout


@pytest.mark.parametrize(("name", "what"), [("fifo.yaml", "a pipe"), ("/dev/zero", "a device")])
def test_script_that_is_no_file_is_told_in_one_line(elenco: Run, place: Path, name: str, what: str) -> None:
    """--model scripted/… of a pipe or a device: exit 2, one line, no run."""
    os.mkfifo(place / "ws" / "fifo.yaml")
    done = elenco("run", "hi", "--model", f"scripted/{name}", timeout=20)
    told = f"error: cannot read the script {name}: it is {what}; put a regular file in its place\n"
    assert (2, "", told) == (done.returncode, done.stdout, done.stderr)


def test_file_beyond_the_bound_is_not_read(place: Path) -> None:
    """A file of a byte too many says how much it has and how much is read; one of that size is read."""
    file = place / "big"
    file.write_bytes(b"a" * MOST)
    assert MOST == len(read_bytes(file))
    os.truncate(file, 50 << 20)
    with pytest.raises(OSError, match=r"it has 50\.0 MB, and at most 1 MB are read; shorten it"):
        read_bytes(file)


def test_text_has_plain_line_ends(place: Path) -> None:
    """A byte order mark and carriage returns are no part of a file's text."""
    (place / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\rc")
    assert "a\nb\nc" == read_text(place / "x")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("lab/x", "--base-url", "ftp://x"), "it must begin with http:// or https://"),
        (("lab/x", "--base-url", "http://h:99999/v1"), "its port must be a number up to 65535"),
        (("lab/x", "--base-url", "http://"), "it names no host"),
        (("lab/x", "--base-url", "http://a b/"), "it holds a space or a control character"),
        (("scripted/bad.yaml",), "bad.yaml:1:16: unknown key 'txt'; did you mean 'text'?"),
    ],
)
def test_slip_in_address_or_script_is_told_before_anything_slow(
    elenco: Run, place: Path, words: tuple[str, ...], told: str
) -> None:
    """An address nobody can be asked at, and a faulty script, end with 2 before the runtime is loaded."""
    (place / "ws" / "bad.yaml").write_text("coordinator: [{txt: x}]\n")
    done = elenco("run", "hi", "--model", *words, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert 2 == done.returncode
    assert told in done.stderr
    assert HEAVY.isdisjoint(line.rpartition("|")[2].strip() for line in done.stderr.split("\n"))
