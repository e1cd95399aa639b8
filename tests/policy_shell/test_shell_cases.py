"""The collected cases: every command found, every flag, every file written, the verdict of the rules."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.debug_shell import shell

CASES = Path(__file__).parent.parent / "cases" / "shell" / "cases.jsonl"
LOADED: list[dict[str, Any]] = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def answered(case: dict[str, Any]) -> dict[str, Any]:
    rules = {effect: case["with_rules"].get(effect, []) for effect in ("allow", "ask", "deny")}
    out = io.StringIO()
    assert 0 == shell([json.dumps({"id": case["id"], "command": case["command"], "rules": rules})], out)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def loosely(argv: list[str]) -> list[str]:
    """Words with expansions are compared loosely."""
    return ["?" if any(mark in word for mark in ("$", "`", "<(", ">(")) else word for word in argv]


@pytest.mark.parametrize("case", LOADED, ids=[case["id"] for case in LOADED])
def test_each_collected_line_is_read_and_decided(case: dict[str, Any]) -> None:
    """Each collected line is read and decided."""
    answer = answered(case)
    assert case["id"] == answer["id"]
    assert case["with_rules"]["expected"] == answer["verdict"], answer["why"]
    found = [loosely(argv) for argv in answer["commands"]]
    assert [] == [argv for argv in case["commands"] if loosely(argv) not in found]
    assert set() == set(case["flags"]) - set(answer["flags"])
    assert case["writes"] == answer["writes"]
    if case["class"] == "harmless":
        assert set(case["flags"]) == set(answer["flags"])
