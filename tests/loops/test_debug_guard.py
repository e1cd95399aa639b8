"""`elenco debug guard`: steps in, verdict words out."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.debug_guard import guard

ROOT = Path(__file__).parent.parent.parent


def step(agent: str = "root", **more: Any) -> str:
    call = {"name": "grep", "arguments": {"p": "x"}, "result": "a: x\nb: x", "is_error": False, "seconds": 0.1}
    return json.dumps({"i": 0, "agent": agent, "at": 1.0, "calls": [call], **more}) + "\n"


def test_one_word_a_step() -> None:
    """Each line is answered with one bare word."""
    out = io.StringIO()
    tools = {"grep": {"read_only": True, "mutates": False, "poll": False}}
    assert 0 == guard([step(tools=tools), *[step()] * 6], out)
    assert ["ok", "ok", "nudge", "nudge", "nudge", "block", "stop"] == out.getvalue().split("\n")[:-1]


def test_agents_are_watched_apart() -> None:
    """Two agents that make the same call twice each are no loop."""
    out = io.StringIO()
    assert 0 == guard([step("a"), step("b"), step("a"), step("b")], out)
    assert "ok\nok\nok\nok\n" == out.getvalue()


def test_missing_parts_have_a_default() -> None:
    """A step may leave out text, event, agent and calls; an empty line is skipped."""
    out = io.StringIO()
    assert 0 == guard(['{"at": 0}\n', "\n", '{"at": 1, "text": null, "event": null, "calls": []}\n'], out)
    assert "ok\nok\n" == out.getvalue()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[]", "line 1: a step: expected an object, got list"),
        ('{"calls": {}}', "line 1: calls: expected a list"),
        ('{"calls": [1]}', "line 1: calls[0]: expected an object, got int"),
        ('{"calls": [{"arguments": {}}]}', "line 1: calls[0].name: expected a text"),
        ('{"calls": [{"name": "x", "arguments": []}]}', "line 1: calls[0].arguments: expected an object, got list"),
        ('{"calls": [{"name": "x", "result": 3}]}', "line 1: calls[0].result: expected a text, got int"),
        ('{"calls": [{"name": "x", "seconds": "1"}]}', "line 1: calls[0].seconds: expected a number, got '1'"),
        ('{"event": "lunch"}', "line 1: event: expected one of user_message, continuation, compaction, resume"),
        ('{"at": "now"}', "line 1: at: expected a number, got 'now'"),
        ('{"tools": {"x": 1}}', "line 1: tools.x: expected an object, got int"),
        ("[" * 100_000, "line 1: not JSON"),
    ],
)
def test_unusable_input_is_one_clear_line(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no step ends the command with 2 and says where and why, on one line."""
    out = io.StringIO()
    assert 2 == guard([line], out)
    said = capsys.readouterr().err
    assert said.startswith(message)
    assert 1 == said.count("\n")
    assert "" == out.getvalue()


def test_command_answers_before_the_next_line_comes() -> None:
    """As a process it flushes every answer, so whoever asks step by step is served."""
    command = [sys.executable, "-m", "runtime.cli.debug_guard"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("ok", "ok", "nudge"):
            process.stdin.write(step())
            process.stdin.flush()
            assert word == process.stdout.readline().strip()
        process.stdin.close()
        assert 0 == process.wait(20)
