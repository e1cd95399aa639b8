"""Skills and other runtimes' agents through the command: listed, checked, with lessons, and at work."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

GOOD = "---\nname: tidy\ndescription: Tidies up.\n---\nSweep.\n"
ODD = "---\nname: Odd\ndescription: Odd: very.\nallowed_tools: Read\n---\nHm.\n"


def skill(place: Path, name: str, text: str, at: str = "ws/skills") -> Path:
    file = place / at / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def skills(elenco: Run, place: Path) -> Run:
    def run(*words: str) -> Any:
        return elenco("skills", *words, "--state", str(place / "state"))

    return run


def test_the_list_tells_places_shadowed_skills_and_problems(skills: Run, place: Path) -> None:
    """The list shows each skill with its place; shadowed ones and problems are told beside it, with file and line."""
    skill(place, "tidy", GOOD)
    skill(place, "tidy", GOOD, at="home/.agents/skills")
    skill(place, "odd", ODD)
    skill(place, "broken", "no front matter\n")
    done = skills()
    assert 0 == done.returncode
    rows = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert ["tidy", "skills/tidy"] in rows
    assert ["Odd", "skills/odd"] in rows
    assert {"code-review", "summarise-files", "web-research", "write-docs"} <= {row[0] for row in rows}
    home = place / "home" / ".agents" / "skills" / "tidy" / "SKILL.md"
    assert f"not used: {home}, for skills/tidy/SKILL.md comes first" in done.stderr
    assert "skills/broken/SKILL.md:1: cannot be used: no front matter" in done.stderr
    assert "skills/odd/SKILL.md:4: warning: unknown key 'allowed_tools' is not used; did you mean 'allowed-tools'?" in (
        done.stderr
    )
    data = [json.loads(line) for line in skills("--json").stdout.splitlines()]
    shadowed = next(each for each in data if each["path"] == str(home))
    assert (False, "skills/tidy/SKILL.md") == (shadowed["used"], shadowed["shadowed_by"])


def test_the_check_holds_skills_to_the_letter(elenco: Run, place: Path) -> None:
    """The check counts what is off the specification as faults, and says so with file, line and the line itself."""
    skill(place, "tidy", GOOD)
    assert 0 == elenco("check").returncode
    skill(place, "odd", ODD)
    done = elenco("check", "skills")
    assert 2 == done.returncode
    assert "skills/odd/SKILL.md:2:1: the name 'Odd' should have only a-z, 0-9 and single - between them" in done.stdout
    assert "   4 | allowed_tools: Read" in done.stdout
    assert "2 files checked: 4 faults" in done.stderr


def test_the_shipped_skills_keep_to_the_specification(elenco: Run) -> None:
    """The shipped skills keep to the specification, and their texts are short enough to be read whole."""
    from runtime import shipped

    done = elenco("check", str(shipped.folder("skills")))
    assert (0, "4 files checked: no fault\n") == (done.returncode, done.stderr)
    assert all(len(path.read_text()) < 4_000 for path in shipped.folder("skills").glob("*/SKILL.md"))


def test_lessons_are_noted_listed_and_dropped(skills: Run, place: Path) -> None:
    """A lesson is noted, listed and dropped by its number; a slip is one clear line."""
    skill(place, "tidy", GOOD)
    assert 0 == skills("note", "tidy", "Start in the corners").returncode
    assert 0 == skills("note", "tidy", "Mind the cat").returncode
    assert "1  Start in the corners\n2  Mind the cat\n" == skills("note", "tidy").stdout
    assert "dropped: Start in the corners\n" == skills("note", "tidy", "--drop", "1").stdout
    assert "1  Mind the cat\n" == skills("note", "tidy").stdout
    kept = [path for path in place.rglob("*") if path.is_file() and "Mind the cat" in path.read_text(errors="replace")]
    assert [True] == [path.is_relative_to(place / "state") for path in kept]
    for words, text in (
        (("note", "tidi", "x"), "unknown skill 'tidi'; did you mean 'tidy'?"),
        (("note", "tidy", "two", "words"), 'put the lesson in quotes: elenco skills note tidy "two words"'),
        (("note", "tidy", "Mind the cat"), "that lesson is noted already"),
        (("note", "tidy", " "), "a lesson needs words"),
        (("note", "tidy", "x" * 501), "a lesson may have 500 characters"),
        (("note", "tidy", "--drop", "7"), "there is no lesson 7; there is only lesson 1"),
        (("nota", "tidy"), "unknown word 'nota'; did you mean 'note'?"),
    ):
        done = skills(*words)
        assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
        assert text in done.stderr


def test_another_runtimes_agent_is_checked_and_works(elenco: Run, place: Path) -> None:
    """A file of another runtime is shown as it is understood, and its agent works in a run."""
    file = place / "ws" / ".claude" / "agents" / "reviewer.md"
    file.parent.mkdir(parents=True)
    file.write_text(
        "---\nname: reviewer\ndescription: Reviews: all.\ntools: Read, Grep\nmodel: sonnet\n---\nRead {x}.\n"
    )
    done = elenco("check")
    assert 0 == done.returncode
    assert ".claude/agents/reviewer.md: understood as 'reviewer'; tools read_file, search_text; the run's model" in (
        done.stdout
    )
    assert "needs a key in ANTHROPIC_API_KEY; the run's model answers" in done.stdout
    script = place / "s.yaml"
    script.write_text("reviewer:\n  - calls: [{name: read_file, arguments: {path: parse.py}}]\n  - text: fine\n")
    done = elenco("run", "reviewer", "look", "--model", f"scripted/{script}", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    started = next(event for event in events if event["type"] == "actor.started")
    assert ["read_file", "search_text", "read_result"] == [tool["name"] for tool in started["tools"]]
    assert "Read {x}." == started["prompt"][0]
    assert "fine" == events[-1]["report"]["text"]


def test_a_chat_takes_changed_skills_at_the_next_line(start: Run, place: Path) -> None:
    """A line of a chat takes skills as they are by then, and tells what has changed since the line before."""
    file = skill(place, "tidy", GOOD)
    agent = place / "ws" / "agents" / "worker.md"
    agent.parent.mkdir()
    agent.write_text("---\nname: worker\ndescription: Works.\ntools: []\nskills: all\n---\nWork.\n")
    script = place / "s.yaml"
    call = "calls: [{name: use_skill, arguments: {name: tidy}}]"
    script.write_text(f"worker:\n  - {call}\n  - text: swept\n  - {call}\n  - text: wiped\n")
    model = f"scripted/{script}"
    chat = start("chat", "worker", "--plain", "--model", model, "--state", str(place / "state"), stdin=subprocess.PIPE)
    assert chat.stdin is not None
    assert chat.stdout is not None
    chat.stdin.write("one\n")
    chat.stdin.flush()
    assert "swept\n" == chat.stdout.readline()
    file.write_text(GOOD.replace("Tidies up.", "Tidies more.").replace("Sweep.", "Wipe."))
    out, err = chat.communicate("two\n", timeout=60)
    assert "wiped" in out
    assert "has changed: skills: tidy has changed; the skill tidy, loaded before, has changed" in err


def test_what_a_skill_brings_does_not_outlive_a_kill(elenco: Run, place: Path) -> None:
    """A run that goes on in another process has its loaded skill still: its text is on record, its rules hold."""
    text = GOOD.replace("---\nSweep", "allowed-tools: Write(out/**)\n---\nSweep")
    skill(place, "tidy", text, at="home/.agents/skills")
    agent = place / "ws" / "agents" / "worker.md"
    agent.parent.mkdir()
    agent.write_text("---\nname: worker\ndescription: Works.\ntools: [write_file]\nskills: [tidy]\n---\nWork.\n")
    script = place / "s.yaml"
    script.write_text(
        "worker:\n  - calls: [{name: use_skill, arguments: {name: tidy}}]\n"
        "  - calls: [{name: write_file, arguments: {path: asks.md, content: x}}]\n"
        "  - calls: [{name: write_file, arguments: {path: out/a.md, content: x}}]\n  - text: done\n"
    )
    done = elenco("run", "worker", "go", "--model", f"scripted/{script}", "--no-input", "--json")
    assert 4 == done.returncode
    run = json.loads(done.stdout.splitlines()[0])["run"]
    assert 0 == elenco("approve", run, "a1").returncode
    done = elenco("resume", run, "--no-input")
    assert (0, "done\n") == (done.returncode, done.stdout)
    assert "x" == (place / "ws" / "out" / "a.md").read_text()
