"""`elenco debug stream|names|schema`: a line in, a line out, and a clear word about what cannot be used."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import debug_wire

CASES = Path(__file__).parents[1] / "cases"


def run(family: Any, *lines: str) -> tuple[int, list[dict[str, Any]]]:
    out = io.StringIO()
    code = family(lines, out)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def test_stream_answers_every_case_in_order() -> None:
    """One line per case, in the words of the cases, with an id on every call."""
    cases = [path.read_text(encoding="utf-8") for path in sorted((CASES / "wire" / "cases").glob("*.json"))]
    code, found = run(debug_wire.stream, *(json.dumps(json.loads(case)) for case in cases))
    assert code == 0
    assert [line["name"] for line in found] == [json.loads(case)["name"] for case in cases]
    for line, case in zip(found, map(json.loads, cases), strict=True):
        assert set(line) == {"name", "text", "reasoning", "tool_calls", "finish", "usage", "error"}
        assert line["error"] is None or set(line["error"]) == {"kind", "retryable"}
        expected = case["expect"]["tool_calls"]
        for call, want in zip(line["tool_calls"], expected, strict=False):
            assert call["id"] == want["id"] or (want["id"] is None and call["id"])
        assert len({call["id"] for call in line["tool_calls"]}) == len(line["tool_calls"])


def test_names_answers_every_case() -> None:
    """Names and refusals, each with its pair."""
    cases = json.loads((CASES / "names" / "cases.json").read_text(encoding="utf-8"))["cases"]
    code, found = run(debug_wire.names, *map(json.dumps, cases))
    assert code == 0
    assert [len(line["names"]) for line in found] == [case["exposed"] for case in cases]
    assert all(set(entry) == {"server", "tool", "why"} for line in found for entry in line["refused"])


def test_schema_answers_every_case_also_a_deep_one() -> None:
    """Verdicts with their reasons; five hundred levels are read."""
    cases = json.loads((CASES / "schemas" / "cases.json").read_text(encoding="utf-8"))["cases"]
    lines = [json.dumps(case) for case in cases if "generate" not in case]
    deep = '{"type":"object","properties":{"n":' * 500 + "{}" + "}}" * 500
    code, found = run(debug_wire.schema, *lines, f'{{"id":"deep","schema":{deep}}}', "\n")
    assert code == 0
    assert len(found) == len(lines) + 1
    assert (found[-1]["id"], found[-1]["verdict"]) == ("deep", "fix")
    assert all(("schema" in line) == (line["verdict"] != "quarantine") for line in found)


@pytest.mark.parametrize(
    ("family", "line", "words"),
    [
        (debug_wire.stream, "nonsense", "not JSON"),
        (debug_wire.stream, "[]", "not a JSON object"),
        (debug_wire.stream, "{}", "'wire' is missing"),
        (debug_wire.stream, '{"wire":"openai","chunks":[]}', "must be one of"),
        (debug_wire.stream, '{"wire":"openai-chat"}', "'chunks' is missing"),
        (debug_wire.stream, '{"wire":"openai-chat","chunks":[1]}', "chunk 0"),
        (debug_wire.stream, '{"wire":"openai-chat","chunks":["*"],"encoding":"base64"}', "chunk 0"),
        (debug_wire.stream, '{"wire":"openai-chat","chunks":[],"encoding":"hex"}', "utf8 or base64"),
        (debug_wire.stream, '{"wire":"openai-chat","chunks":[],"status":"x"}', "'status'"),
        (debug_wire.stream, '{"wire":"openai-chat","chunks":[],"headers":3}', "'headers'"),
        (debug_wire.names, '{"servers":3}', "'servers'"),
        (debug_wire.names, '{"servers":[3]}', "no object"),
        (debug_wire.names, '{"servers":[{"name":"a","tools":[1]}]}', "no text"),
        (debug_wire.names, '{"servers":[{"name":"a","tools":[]}],"builtin":3}', "'builtin'"),
        (debug_wire.schema, '{"id":1}', "is missing"),
        (debug_wire.schema, '{"schema_text":3}', "'schema_text'"),
    ],
)
def test_unusable_input_ends_with_one_clear_line(
    family: Any, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one line on standard error that says which line and why, and the answers so far kept."""
    good = {
        debug_wire.stream: '{"wire":"openai-chat","chunks":[],"name":"x"}',
        debug_wire.names: '{"servers":[]}',
        debug_wire.schema: '{"schema":{}}',
    }[family]
    code, found = run(family, good, line)
    said = capsys.readouterr().err
    assert (code, len(found)) == (2, 1)
    assert said.count("\n") == 1
    assert "line 2" in said
    assert words in said


def test_it_runs_as_a_module() -> None:
    """`python -m runtime.cli.debug_wire schema` reads standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "runtime.cli.debug_wire", "schema"],
        input='{"id":1,"schema":{"type":"object","properties":{}}}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "id": 1,
        "verdict": "ok",
        "why": "",
        "schema": {"type": "object", "properties": {}},
    }
    usage = subprocess.run(
        [sys.executable, "-m", "runtime.cli.debug_wire"], capture_output=True, text=True, check=False
    )
    assert (usage.returncode, "usage" in usage.stderr) == (2, True)
