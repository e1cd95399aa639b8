"""The context window through the command: compacted in time and by hand, and shown by part."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from subprocess import CompletedProcess, Popen
from typing import Any, TypeAlias

Run: TypeAlias = Callable[..., CompletedProcess[str]]
Start: TypeAlias = Callable[..., Popen[str]]
Script: TypeAlias = Callable[[str], str]
Record: TypeAlias = Callable[[str], list[dict[str, Any]]]
Until: TypeAlias = Callable[..., str]

AGENT = """\
---
name: solo
description: Reads.
tools: [read_file, todo_write]
skills: [care]
---
You work alone.
"""
SKILL = "---\nname: care\ndescription: How to read with care.\n---\nRead every line twice.\n"
SUMMARY = "## Goal\\nread files\\n## Facts, each with its source\\nthe gate is at f1.txt"


def prepare(place: Path, window: int) -> None:
    ws = place / "ws"
    for file, text in (("agents/solo.md", AGENT), ("skills/care/SKILL.md", SKILL)):
        (ws / file).parent.mkdir(parents=True, exist_ok=True)
        (ws / file).write_text(text)
    for number in range(6):
        lines = (f"line {line} of file {number}, which says little else" for line in range(60))
        (ws / f"f{number}.txt").write_text("\n".join(lines))
    (ws / "elenco.yaml").write_text(f"models: {{scripted/script.yaml: {{window: {window}}}}}\n")


def compactions(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "context.compacted"]


def reads(*numbers: int) -> str:
    calls = ", ".join(f"{{name: read_file, arguments: {{path: f{number}.txt}}}}" for number in numbers)
    return f"  - calls: [{calls}]\n"


def test_a_full_window_is_compacted_and_the_run_goes_on(
    elenco: Run, place: Path, script: Script, record: Record
) -> None:
    """A run whose window fills is compacted: todo list, skill and first task stay, and `show` tells the parts."""
    prepare(place, 6000)
    todo = "{name: todo_write, arguments: {items: [{text: read all, status: open}]}}"
    model = script(
        "solo:\n"
        f"  - calls: [{{name: use_skill, arguments: {{name: care}}}}, {todo}]\n"
        + "".join(reads(number) for number in range(6))
        + '  - text: "all read"\n'
        f'summary: [{{repeat: 9, text: "{SUMMARY}"}}]\n'
    )
    done = elenco("run", "solo", "read the files", "--model", model, "--json")
    assert (0, "") == (done.returncode, done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    first, *_ = compactions(events)
    assert first["before"] > 4800
    assert first["after"] <= 3000
    assert first["window"] == 6000
    run = first["run"]
    page = elenco("show", run, "--format", "md").stdout
    assert "> task: read the files" in page
    assert "the gate is at f1.txt" in page
    assert "Skills in use:" in page
    assert "Read every line twice." in page
    assert "- open: read all" in page
    shown = elenco("show", run, "--context").stdout
    assert re.search(r"^solo   ~?[\d.,k]+ of 6k tokens \(\d+ %\)   scripted/", shown, re.M)
    for part in ("skills", "summary of what was compacted", "first task", "system prompt", "tool descriptions"):
        assert part in shown
    data = json.loads(elenco("show", run, "--context", "--format", "json").stdout)["solo"]
    assert data["window"] == 6000
    assert abs(data["used"] - sum(share["tokens"] for share in data["shares"])) <= len(data["shares"])
    wrong = elenco("show", run, "--context", "--format", "md")
    assert (2, "error: --context is shown as text, or with --format json\n") == (wrong.returncode, wrong.stderr)


def test_a_chat_is_compacted_by_a_line(elenco: Run, place: Path, script: Script) -> None:
    """The line /compact makes the conversation smaller, tells the sizes, and the next line goes on with it."""
    prepare(place, 60_000)
    model = script("solo:\n" + reads(0, 1) + '  - text: "two read"\n  - text: "I go on"\n')
    state = ("--state", str(place / "state"))
    lines = "/compact\nread two\n/compact\nand now?\n"
    done = elenco("chat", "solo", "--plain", "--quiet", "--model", model, *state, input=lines)
    assert done.returncode == 0
    assert "error: /compact: nothing has been said yet" in done.stderr
    said = re.fullmatch(r"two read\ncompacted: about ([\d,]+) tokens before, ([\d,]+) after\nI go on\n", done.stdout)
    assert said is not None
    before, after = (int(number.replace(",", "")) for number in said.groups())
    assert after < before // 2 + 500
    newest = json.loads(elenco("runs", "--json").stdout.splitlines()[0])["id"]
    page = elenco("show", newest).stdout
    assert "> task: read two" in page
    assert "/compact" not in page
    assert "characters left out" in elenco("show", newest, "--format", "md").stdout


def test_another_process_asks_for_a_compaction(
    elenco: Run, start: Start, until: Until, place: Path, script: Script, record: Record
) -> None:
    """`elenco compact` reaches a live run and is carried out before its next request; a wrong one is refused."""
    prepare(place, 60_000)
    model = script(
        "solo:\n"
        + reads(0, 1)
        + "  - {calls: [{name: read_file, arguments: {path: f2.txt}}], stall: 8}\n"
        + '  - text: "done"\n'
    )
    live = start("run", "solo", "go", "--model", model, "--quiet")
    run = until("model.requested", 2)
    state = ("--state", str(place / "state"))
    wrong = elenco("compact", run, "--actor", "sola", *state)
    assert (2, True) == (wrong.returncode, "did you mean 'solo'?" in wrong.stderr)
    sent = elenco("compact", run, *state)
    assert (0, "the root agent compacts before its next request\n") == (sent.returncode, sent.stderr)
    assert live.wait(30) == 0
    events = record(run)
    (done,) = compactions(events)
    assert done["by"] == "you"
    assert done["after"] < done["before"]
    asked = next(event["seq"] for event in events if event["type"] == "compaction.requested")
    finished = [event["seq"] for event in events if event["type"] == "model.finished"]
    assert finished[0] < asked < finished[1] < done["seq"] < finished[2]
    late = elenco("compact", run, *state)
    assert (2, f"error: too late: run {run} has ended\n") == (late.returncode, late.stderr)


def test_a_compaction_asked_for_while_nobody_works_comes_with_the_resume(
    elenco: Run, place: Path, script: Script, record: Record
) -> None:
    """A compaction asked of a run that waits is on record and carried out when it goes on."""
    prepare(place, 60_000)
    agent = place / "ws" / "agents" / "solo.md"
    agent.write_text(AGENT.replace("todo_write]", "write_file]"))
    writes = "{name: write_file, arguments: {path: a.txt, content: hi}}"
    model = script("solo:\n" + reads(0, 1) + f'  - calls: [{writes}]\n  - text: "done"\n')
    waits = elenco("run", "solo", "go", "--model", model, "--no-input", "--quiet")
    assert waits.returncode == 4
    run = json.loads(elenco("runs", "--json").stdout.splitlines()[0])["id"]
    state = ("--state", str(place / "state"))
    sent = elenco("compact", run, *state)
    assert sent.stderr == f"the root agent compacts before its next request   then: elenco resume {run}\n"
    assert elenco("approve", run, "a1", *state).returncode == 0
    assert elenco("resume", run, "--quiet").returncode == 0
    (done,) = compactions(record(run))
    assert (done["by"], done["number"]) == ("you", 1)


def test_a_run_whose_window_is_full_goes_on_with_a_model_that_holds_more(
    elenco: Run, place: Path, script: Script, record: Record
) -> None:
    """Who stopped at the window is told how to go on: another model, which must be one that can be asked."""
    prepare(place, 3000)
    (place / "ws" / "wide.yaml").write_text('solo: [{text: "-"}, {text: "-"}, {text: "all read, at last"}]\n')
    told = "usage: {input: 4000, output: 10}"
    model = script(f"solo:\n{reads(0)}    {told}\n  - text: short\n    {told}\n")
    stopped = elenco("run", "solo", "word " * 3000, "--model", model)
    assert (3, True) == (stopped.returncode, stopped.stderr.startswith("solo asks scripted/")), stopped.stderr
    (run,) = re.findall(r"stopped: context_window .* go on: elenco resume (\w+) --model PROVIDER/MODEL", stopped.stderr)
    for words, why in (
        (("--model", "antropic/x"), "unknown provider 'antropic' in --model; did you mean 'anthropic'?"),
        (("--model", "ollama/x", "--cost-budget", "1"), "cost_budget cannot be kept: no price is known for ollama/x"),
    ):
        refused = elenco("resume", run, *words)
        assert (2, True) == (refused.returncode, f"error: {why}" in refused.stderr), refused.stderr
    done = elenco("resume", run, "--model", "scripted/wide.yaml")
    assert 0 == done.returncode, done.stderr
    switches = [event for event in record(run) if event["type"] == "model.changed"]
    assert ["", "solo"] == [event["actor"] for event in switches]
    assert {"scripted/wide.yaml"} == {event["model"] for event in switches}
    assert f"run {run} is completed" in elenco("resume", run, "--model", "antropic/x").stderr


def test_a_model_chosen_for_a_run_is_the_first_agents_whatever_its_file_says(
    elenco: Run, place: Path, script: Script, record: Record
) -> None:
    """What a budget needs is asked of the chosen model, not of the one in the file; refused, nothing is on record."""
    model = script("solo: [{calls: [{name: read_file, arguments: {path: f0.txt}}]}, {text: by the first}]")
    prepare(place, 60_000)
    (place / "ws" / "agents" / "solo.md").write_text(AGENT.replace("tools:", f"model: {model}\ntools:"))
    (place / "ws" / "other.yaml").write_text("solo: [{text: -}, {text: by the other}]\n")
    assert 3 == elenco("run", "solo", "read", "--max-steps", "1", "--cost-budget", "1", "--no-input").returncode
    run = json.loads(elenco("runs", "--json").stdout.splitlines()[0])["id"]
    before = len(record(run))
    refused = elenco("resume", run, "--max-steps", "+2", "--model", "ollama/x")
    assert (2, True) == (refused.returncode, "no price is known for ollama/x" in refused.stderr)
    assert before == len(record(run))
    assert "by the other\n" == elenco("resume", run, "--max-steps", "+2", "--model", "scripted/other.yaml").stdout
