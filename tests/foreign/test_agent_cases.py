"""The shared agent cases, of all styles, through the command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parent.parent / "cases" / "agents"
EXPECTED = json.loads((CASES / "expected.json").read_text())
SHARED: list[dict[str, Any]] = EXPECTED["agents"]


def questions(case: dict[str, Any]) -> list[dict[str, Any]]:
    """What is asked about the rules of a case's file: its own decisions, and those where it is somebody's child."""
    own = [each for must in musts(case) for each in must.get("decisions", [])]
    found = [{"tool": each["tool"], "arg": each["arg"]} for each in own]
    for other in SHARED:
        for must in musts(other):
            spawn = must.get("spawn")
            if spawn is not None and spawn["child"] == case["name"]:
                found.append({"tool": spawn["tool"], "arg": spawn["arg"], "parent": spawn["parent"]})
    return found


def musts(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [must for must in case.get("must", []) if isinstance(must, dict)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What `elenco debug agent` says of each file."""
    place = tmp_path_factory.mktemp("agents")
    lines = [
        json.dumps(
            {
                "path": str(CASES / "files" / case["path"]),
                "style": case["style"],
                "environment": EXPECTED["environment"],
                "ask": questions(case),
            }
        )
        for case in SHARED
    ]
    words = [sys.executable, "-m", "runtime.cli", "debug", "agent"]
    text = "\n".join(lines) + "\n"
    ended = subprocess.run(words, input=text, capture_output=True, text=True, check=True, timeout=60, cwd=place)
    rows = [json.loads(row) for row in ended.stdout.splitlines()]
    assert [] == list(place.iterdir())
    return {case["path"]: row for case, row in zip(SHARED, rows, strict=True)}


@pytest.mark.parametrize("case", SHARED, ids=lambda case: case["path"])
def test_an_agent_file_is_taken_as_its_case_says(case: dict[str, Any], answers: dict[str, dict[str, Any]]) -> None:
    """An agent file is taken as its case says, and never refused or mended without a word."""
    answer = answers[case["path"]]
    told = " ".join(problem["text"] for problem in answer["problems"])
    assert answer["result"] in case.get("accept", [case["expected"]])
    assert answer["result"] == "load" or told
    for must in case.get("must", []):
        if isinstance(must, str) and must.startswith("message names"):
            for word in re.findall(r"(?:names|suggests) (\S+)", must):
                assert word in told
    if answer["result"] == "reject":
        return
    assert case["name"] in (None, answer["name"])
    assert case["description"] in (None, answer["description"])
    for key, value in case.get("fields", {}).items():
        assert value == answer["fields"][key], key
    for must in musts(case):
        assert must.get("rendered_contains", "") in answer["rendered"]
        assert must.get("body_contains", "") in answer["body"]
        for wanted in must.get("decisions", []):
            assert decided(answer, wanted) in wanted.get("decision_in", [wanted.get("decision")])
        if "spawn" in must:
            child = next(each["path"] for each in SHARED if each["name"] == must["spawn"]["child"])
            assert decided(answers[child], must["spawn"]) in must["spawn"]["decision_in"]


def decided(answer: dict[str, Any], wanted: dict[str, Any]) -> str:
    found: str = next(
        each["decision"]
        for each in answer["decisions"]
        if (each["tool"], each["arg"]) == (wanted["tool"], wanted["arg"])
    )
    return found


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("claude/deny-tools.md", {"write", "edit"}),
        ("claude/empty-tools.md", {"read", "write", "edit", "shell"}),
        ("opencode/reviewer.md", {"write", "edit"}),
        ("opencode/perm-map.md", {"write", "edit"}),
        ("opencode/disabled.md", {"read", "write", "edit", "shell"}),
    ],
)
def test_what_a_file_takes_away_is_not_granted(path: str, gone: set[str], answers: dict[str, dict[str, Any]]) -> None:
    """What a file takes away is not among the granted tools."""
    assert gone.isdisjoint(answers[path]["granted"])
