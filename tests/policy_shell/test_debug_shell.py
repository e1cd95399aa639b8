"""`elenco debug shell`: JSON lines in, JSON lines out, in the same order."""

from __future__ import annotations

import io
import json

import pytest

from runtime.cli.debug_shell import shell


def test_every_line_gets_one_answer_in_the_same_order() -> None:
    """Every line gets one answer in the same order."""
    cases = [
        {"id": "a", "command": "ls && rm x > f", "rules": {"allow": ["ls *"], "ask": [], "deny": ["rm *"]}},
        {"id": "b", "command": "git status", "rules": {"allow": ["git status"]}},
        {"id": "c", "command": "ls"},
    ]
    out = io.StringIO()
    assert 0 == shell([json.dumps(case) + "\n" for case in cases] + ["\n"], out)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ["a", "b", "c"] == [answer["id"] for answer in answers]
    assert {
        "id": "a",
        "commands": [["ls"], ["rm", "x"]],
        "flags": ["chain", "redirect_write"],
        "writes": ["f"],
        "verdict": "deny",
        "why": "shell(rm *)",
    } == answers[0]
    assert ["allow", "ask"] == [answer["verdict"] for answer in answers[1:]]


@pytest.mark.parametrize("line", ["no json", "[]", '{"id": 1}', '{"command": "ls"}', '{"id": 1, "command": 2}', '"x"'])
def test_a_line_that_is_no_case_ends_it_with_a_message(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is no case ends it with a message."""
    out = io.StringIO()
    assert 2 == shell(['{"id": 0, "command": "ls"}', line], out)
    assert 1 == len(out.getvalue().splitlines())
    assert "line 2" in capsys.readouterr().err


def test_a_rule_with_a_lone_quote_is_still_words() -> None:
    """A rule with a lone quote is still words."""
    out = io.StringIO()
    case = {"id": "a", "command": 'echo "it\'s"', "rules": {"allow": ["echo it's"]}}
    assert 0 == shell([json.dumps(case)], out)
    assert "allow" == json.loads(out.getvalue())["verdict"]
