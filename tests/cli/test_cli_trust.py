"""`elenco trust` by the installed command: shown, agreed to, told where it is missing, taken back."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Start: TypeAlias = Callable[..., subprocess.Popen[str]]

POET = """\
---
name: poet
description: x
tools: [write_file]
permissions: {allow: ["write_file(out/**)"], deny: ["write_file(out/no.txt)"]}
---
Write.
"""
SCRIPT = """\
poet:
  - calls: [{name: write_file, arguments: {path: out/a.txt, content: hi}}]
  - text: done
"""


@pytest.fixture
def poet(place: Path, script: Callable[[str], str]) -> tuple[str, ...]:
    """An agent that may write unasked by its own file, and the words of a run in which it does."""
    (place / "ws" / "agents").mkdir()
    (place / "ws" / "agents" / "poet.md").write_text(POET)
    return ("run", "poet", "go", "--model", script(SCRIPT), "--no-input")


def test_allow_rules_count_once_the_workspace_is_trusted(elenco: Run, place: Path, poet: tuple[str, ...]) -> None:
    """Untrusted, the agent's allow rule does not count and one line says so; after `elenco trust` it does."""
    first = elenco(*poet)
    assert 4 == first.returncode
    assert 1 == first.stderr.count("not trusted")
    assert "1 allow rule of its files left out (elenco trust" in first.stderr
    assert not (place / "ws" / "out").exists()

    said = elenco("trust")
    assert 0 == said.returncode
    assert f"{place / 'ws'} would switch on" in said.stdout
    assert "allow rule  write_file(out/**)   agents/poet.md" in said.stdout
    second = elenco(*poet)
    assert (0, "done\n") == (second.returncode, second.stdout)
    assert "not trusted" not in second.stderr
    assert "hi" == (place / "ws" / "out" / "a.txt").read_text()


def test_a_deny_rule_counts_without_trust(elenco: Run, poet: tuple[str, ...], script: Callable[[str], str]) -> None:
    """What an untrusted file forbids is forbidden all the same, whatever the command line allows."""
    script(SCRIPT.replace("a.txt", "no.txt"))
    done = elenco(*poet, "--allow", "write_file", "--json")
    decided = [json.loads(line) for line in done.stdout.splitlines() if "permission.decided" in line]
    assert ["deny"] == [each["verdict"] for each in decided]


def test_a_flag_needs_no_trust(elenco: Run, place: Path, poet: tuple[str, ...]) -> None:
    """Who allows on the command line needs no trust."""
    assert 0 == elenco(*poet, "--allow", "write_file(out/**)").returncode
    assert (place / "ws" / "out" / "a.txt").exists()


def test_a_change_asks_again(elenco: Run, place: Path, poet: tuple[str, ...]) -> None:
    """After a change to the file, the old word does not count; trust says that it has changed."""
    elenco("trust")
    (place / "ws" / "agents" / "poet.md").write_text(POET.replace("out/**", "**"))
    done = elenco(*poet)
    assert 4 == done.returncode
    shown = elenco("trust", "--show").stdout
    assert "it has changed since you trusted it" in shown
    assert "allow rule  write_file(**)   agents/poet.md" in shown
    assert 4 == elenco(*poet).returncode, "showing trusts nothing"
    assert "changed since" in elenco("trust", "--list").stdout


def test_trust_can_be_taken_back(elenco: Run, place: Path, poet: tuple[str, ...]) -> None:
    """--revoke ends it, --list names what is trusted, and nothing is ever kept in the workspace."""
    before = sorted(path.name for path in (place / "ws").rglob("*"))
    elenco("trust")
    assert before == sorted(path.name for path in (place / "ws").rglob("*"))
    assert f"{place / 'ws'}   trusted" in elenco("trust", "--list").stdout
    assert "is trusted no more" in elenco("trust", "--revoke").stdout
    none = elenco("trust", "--list")
    assert (0, "", "no workspace is trusted: elenco trust shows what this one would switch on\n") == (
        none.returncode,
        none.stdout,
        none.stderr,
    )
    assert 4 == elenco(*poet).returncode


def test_a_long_command_is_shown_whole_and_obeyed_by_no_terminal(elenco: Run, place: Path) -> None:
    """What would be switched on is never cut, and control characters in it are written out."""
    rule = "shell(" + "x" * 400 + " \\u001b[2Jend)"
    (place / "ws" / "elenco.yaml").write_text(f'permissions: {{allow: ["{rule}"]}}\n')
    shown = elenco("trust", "--show").stdout
    assert "x" * 400 + " \\x1b[2Jend)" in shown
    assert "\x1b" not in shown


def test_nothing_to_trust_is_said(elenco: Run, place: Path) -> None:
    """A workspace that switches on nothing needs no word, and a run over it says nothing of trust."""
    assert "switches on nothing that needs trust" in elenco("trust").stdout
    assert not (place / "home" / ".config").exists()
    assert "trust" not in elenco("run", "words?", "--model", "offline/extract").stderr


def test_wrong_input_is_one_line(elenco: Run, place: Path) -> None:
    """A folder that is not there, faulty settings and a missing home are told in one clear message, exit 2."""
    assert (2, "error: the workspace nowhere does not exist: name a folder that is there, or make it\n") == _ended(
        elenco("trust", "nowhere")
    )
    (place / "ws" / "elenco.yaml").write_text("permissions: {allow: [write_file]}\n")
    homeless = elenco("trust", env={"HOME": ""})
    assert (2, True) == (homeless.returncode, "set HOME or XDG_CONFIG_HOME" in homeless.stderr)
    (place / "ws" / "elenco.yaml").write_text("permisions: {}\n")
    code, text = _ended(elenco("trust"))
    assert (2, True) == (code, "elenco.yaml:1:1: unknown key 'permisions'" in text)


def test_on_a_terminal_a_person_agrees_first(place: Path, start: Start, elenco: Run, poet: tuple[str, ...]) -> None:
    """On a terminal nothing is trusted before a yes; --yes is one."""
    for word, code in (("n\n", 1), ("\n", 1), ("y\n", 0)):
        ours, theirs = pty.openpty()
        process = start("trust", stdin=theirs)
        os.write(ours, word.encode())
        _, stderr = process.communicate(timeout=30)
        os.close(ours)
        os.close(theirs)
        assert code == process.returncode
        assert "Let it? y or n" in stderr
        assert ("trusted;" in stderr) == (code == 0)
    assert 0 == elenco(*poet).returncode


def test_a_foreign_server_gets_no_key_from_an_untrusted_workspace(elenco: Run, place: Path, serve: Any) -> None:
    """A workspace's settings cannot have a key sent to a server elsewhere until it is trusted."""
    url, seen = serve((500, {}, [b"{}"], False))
    # A name for this machine that is no loopback name: the server is "elsewhere" as far as the settings tell.
    port = url.rpartition(":")[2]
    (place / "ws" / "elenco.yaml").write_text(
        f'model: lab/x\nproviders: {{lab: {{base_url: "http://0.0.0.0:{port}", wire: openai-chat}}}}\n'
    )
    env = {"LAB_API_KEY": "sk-planted-1234567890"}
    elenco("run", "hello", "--timeout", "2", env=env)
    assert seen
    assert [None] * len(seen) == [headers.get("authorization") for _, headers, _ in seen]
    elenco("trust", env=env)
    count = len(seen)
    elenco("run", "hello", "--timeout", "2", env=env)
    assert "Bearer sk-planted-1234567890" == seen[count][1]["authorization"]


def _ended(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, done.stderr
