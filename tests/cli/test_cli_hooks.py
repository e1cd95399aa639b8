"""Hooks through the command: the user's always, a trusted workspace's too, faults told before anything runs."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TypeAlias

Run: TypeAlias = Callable[..., CompletedProcess[str]]
Script: TypeAlias = Callable[[str], str]

AGENT = """\
---
name: scribe
description: Writes.
tools: [write_file]
---
Write.
"""
WRITES = """\
scribe:
  - calls: [{name: write_file, arguments: {path: notes/a.txt, content: hi}}]
  - text: done
"""
REFUSES = "#!/bin/sh\necho 'not on a Friday' >&2\nexit 2\n"


def prepare(place: Path, settings: str | None = None, front: str = "") -> None:
    ws = place / "ws"
    (ws / "agents").mkdir(exist_ok=True)
    (ws / "agents" / "scribe.md").write_text(AGENT.replace("---\nWrite.", f"{front}---\nWrite."))
    program = ws / "refuse.sh"
    program.write_text(REFUSES)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if settings is not None:
        (ws / "elenco.yaml").write_text(settings)


def run_scribe(elenco: Run, script: Script, *more: str) -> CompletedProcess[str]:
    return elenco("run", "scribe", "write", "--model", script(WRITES), "--yes", "--json", *more)


def hooks_in(done: CompletedProcess[str]) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [(event["event"], event["outcome"]) for event in events if event["type"] == "hook.finished"]


def test_the_users_hooks_run_in_every_workspace(elenco: Run, place: Path, script: Script) -> None:
    """Hooks of the user's own settings run in every workspace."""
    prepare(place)
    config = place / "home" / ".config" / "elenco"
    config.mkdir(parents=True)
    (config / "config.yaml").write_text("hooks: {before_tool: {matcher: write_file, command: ./refuse.sh}}\n")
    done = run_scribe(elenco, script)
    assert (0, [("before_tool", "deny")]) == (done.returncode, hooks_in(done))
    assert not (place / "ws" / "notes").exists()
    shown = elenco("run", "scribe", "write", "--model", script(WRITES), "--yes")
    assert "refused at before_tool: not on a Friday" in shown.stderr


def test_a_workspaces_hooks_run_once_it_is_trusted(elenco: Run, place: Path, script: Script) -> None:
    """Hooks of a workspace's settings and agent files run once it is trusted, and no more when they have changed."""
    prepare(place, "hooks: {before_tool: ./refuse.sh}\n", "hooks: {actor_start: 'true'}\n")
    done = run_scribe(elenco, script)
    assert [] == hooks_in(done)
    assert (place / "ws" / "notes" / "a.txt").exists()
    assert 0 == elenco("trust", "--yes").returncode
    assert [("actor_start", "none"), ("before_tool", "deny")] == hooks_in(run_scribe(elenco, script))
    (place / "ws" / "refuse.sh").write_text("#!/bin/sh\ncurl evil.example\n")
    assert [] == hooks_in(run_scribe(elenco, script))


def test_a_fault_in_a_hook_stops_the_run_before_it_starts(elenco: Run, place: Path, script: Script) -> None:
    """A fault in a hooks block is told with its place by check and by run, and nothing is started."""
    prepare(place, "hooks:\n  before_tol: ./refuse.sh\n")
    checked = elenco("check")
    assert 2 == checked.returncode
    assert "elenco.yaml:2:3: unknown event 'before_tol'; did you mean 'before_tool'?" in checked.stdout
    done = run_scribe(elenco, script)
    assert 2 == done.returncode
    assert "elenco.yaml:2:3: unknown event 'before_tol'" in done.stderr


def test_a_skills_hooks_run_once_the_skill_is_loaded(elenco: Run, place: Path, script: Script) -> None:
    """The hooks of a skill run for the agent that has loaded it, from then on."""
    prepare(place)
    (place / "ws" / "agents" / "scribe.md").write_text(
        AGENT.replace("tools: [write_file]", "tools: [write_file]\nskills: [careful]")
    )
    skill = place / "home" / ".config" / "elenco" / "skills" / "careful"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: careful\ndescription: How to be careful. Use it before writing.\n"
        "hooks: {before_tool: {matcher: write_file, command: ./refuse.sh}}\n---\nBe careful.\n"
    )
    calls = "  - calls: [{name: write_file, arguments: {path: notes/PLACE.txt, content: hi}}]\n"
    model = script(
        "scribe:\n"
        + calls.replace("PLACE", "before")
        + "  - calls: [{name: use_skill, arguments: {name: careful}}]\n"
        + calls.replace("PLACE", "after")
        + "  - text: done\n"
    )
    done = elenco("run", "scribe", "write", "--model", model, "--yes", "--json")
    assert [("before_tool", "deny")] == hooks_in(done)
    assert ["before.txt"] == [file.name for file in (place / "ws" / "notes").iterdir()]
