"""Planted secrets: whatever an agent reads, is told or provokes, none is on disk, on a stream, or in a request."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

KEY = "sk-planted-key-0123456789abcdef"
OTHER = "ghp_planted_token_0123456789"
PASSWORD = "planted-pass-word"
ENV = {
    "LAB_API_KEY": KEY,
    "GITHUB_TOKEN": OTHER,
    "DATABASE_URL": f"postgres://ada:{PASSWORD}@db.example/x",
}
PLANTED = (KEY, OTHER, PASSWORD)
LEAKY = f"""\
KEY={KEY}
TOKEN={OTHER}
URL=postgres://ada:{PASSWORD}@db.example/x
JSON={{"key": "{KEY}"}}
"""
AGENT = """\
---
name: spy
description: x
tools: [read_file, write_file, edit_file, search_text, todo_write, ask_user, delete_file]
subagents: [aide]
permissions: {deny: [delete_file]}
---
Look.
"""
AIDE = "---\nname: aide\ndescription: y\ntools: [read_file]\n---\nRead.\n"
SCRIPT = """\
spy:
  - text: looking
    calls:
      - {name: read_file, arguments: {path: leaky.env}}
      - {name: search_text, arguments: {pattern: planted}}
      - {name: read_file, arguments: {path: big.txt}}
      - {name: delegate_to_aide, arguments: {task: read it}}
  - calls:
      - {name: write_file, arguments: {path: leaky.env, content: "gone"}}
      - {name: todo_write, arguments: {items: [{text: "SECRET", state: open}]}}
      - {name: delete_file, arguments: {path: "SECRET"}}
      - {name: read_file, arguments: {path: "SECRET"}}
      - {name: read_file, arguments: {nothing: "SECRET"}}
  - text: "it says SECRET"
aide:
  - calls: [{name: read_file, arguments: {path: leaky.env}}]
  - text: "SECRET it is"
"""


@pytest.fixture
def leaky(place: Path) -> Path:
    """A workspace whose files hold what the environment holds."""
    ws = place / "ws"
    (ws / "agents").mkdir()
    (ws / "agents" / "spy.md").write_text(AGENT)
    (ws / "agents" / "aide.md").write_text(AIDE)
    (ws / "leaky.env").write_text(LEAKY)
    (ws / "big.txt").write_text("".join(f"line {n} {KEY} {OTHER}\n" for n in range(3000)))
    return place


def written(place: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file outside the workspace, as it is on disk."""
    for path in sorted(place.rglob("*")):
        if path.is_file() and place / "ws" not in path.parents and path.name != "script.yaml":
            yield path, path.read_bytes()


def planted_in(data: bytes) -> list[str]:
    return [secret for secret in PLANTED if secret.encode() in data]


def test_no_secret_is_kept_or_shown_by_a_run(leaky: Path, elenco: Run, script: Callable[[str], str]) -> None:
    """Read, searched, overwritten, delegated, in arguments, errors, answers: no file of ours, no stream holds one."""
    words = (
        "run",
        "spy",
        f"use {KEY} and {OTHER}",
        "--model",
        script(SCRIPT.replace("SECRET", KEY)),
        "--yes",
        "--json",
    )
    done = elenco(*words, env=ENV)
    assert 0 == done.returncode, done.stderr
    assert [] == planted_in((done.stdout + done.stderr).encode())
    assert "[redacted]" in done.stdout
    results = [json.loads(line) for line in done.stdout.splitlines() if '"tool.finished"' in line]
    assert len(results) == 10
    files = list(written(leaky))
    assert {"journal.db", "index.db"} <= {path.name for path, _ in files}
    assert [] == [(path.name, planted_in(data)) for path, data in files if planted_in(data)]
    run = next((leaky / "state" / "runs").iterdir()).name
    for command in (("show", run), ("show", run, "--format", "md"), ("tail", run, "--json"), ("runs",)):
        shown = elenco(*command)
        assert [] == planted_in((shown.stdout + shown.stderr).encode()), command


def test_a_change_to_a_file_with_a_secret_cannot_be_undone(
    leaky: Path, elenco: Run, script: Callable[[str], str]
) -> None:
    """No copy of such a file is made, so its old content is not kept; undo says so and touches nothing."""
    turns = "spy:\n  - calls: [{name: read_file, arguments: {path: leaky.env}}]\n"
    turns += "  - calls: [{name: write_file, arguments: {path: leaky.env, content: gone}}]\n  - text: done\n"
    assert 0 == elenco("run", "spy", "go", "--model", script(turns), "--yes", env=ENV).returncode
    assert "gone" == (leaky / "ws" / "leaky.env").read_text()
    run = next((leaky / "state" / "runs").iterdir()).name
    done = elenco("undo", run, state=False, env={**ENV, "ELENCO_STATE": str(leaky / "state")})
    assert 2 == done.returncode
    assert "leaky.env" in done.stderr
    assert "gone" == (leaky / "ws" / "leaky.env").read_text()


def test_no_secret_is_told_to_a_model_server(leaky: Path, elenco: Run, serve: Any) -> None:
    """What the server gets holds the key in its Authorization header and no secret anywhere in a body."""
    call = {"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": '{"path": "leaky.env"}'}}
    turns = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]},
        {"choices": [{"index": 0, "delta": {"content": f"You said {KEY[:9]}"}}]},
        {"choices": [{"index": 0, "delta": {"content": f"{KEY[9:]}, didn't you"}, "finish_reason": "stop"}]},
    ]

    def sse(*chunks: Any) -> list[bytes]:
        return [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]

    head = {"content-type": "text/event-stream"}
    url, seen = serve((200, head, sse(turns[0]), False), (200, head, sse(*turns[1:]), False))
    (leaky / "ws" / "agents" / "spy.md").write_text(f"{AGENT}Mind {KEY} and {OTHER}.\n")  # in its very prompt
    record = leaky / "record"
    done = elenco(
        *("run", "spy", f"my key is {KEY}", "--model", "lab/x", "--base-url", url, "--wire", "openai-chat"),
        *("--json", "--record", str(record)),
        env=ENV,
    )
    assert 0 == done.returncode, done.stderr
    assert [2, f"Bearer {KEY}"] == [len(seen), seen[0][1]["authorization"]]
    for _, headers, body in seen:
        assert [] == planted_in(json.dumps(body).encode())
        assert [] == [name for name, value in headers.items() if name != "authorization" and planted_in(value.encode())]
    assert "Mind [redacted] and [redacted]." in json.dumps(seen[0][2])
    assert "KEY=[redacted]" in json.dumps(seen[1][2])
    assert [] == planted_in((done.stdout + done.stderr).encode())
    assert [] == [path.name for path, data in written(leaky) if planted_in(data)]
    assert list(record.iterdir())


def test_an_error_that_quotes_the_key_is_told_without_it(leaky: Path, elenco: Run, serve: Any) -> None:
    """A server that quotes the Authorization header in its error does not get the key onto a screen or a disk."""
    answer = json.dumps({"error": {"message": f"bad token Bearer {KEY}", "type": "invalid"}}).encode()
    url, _ = serve((400, {"content-type": "application/json"}, [answer], False))
    done = elenco("run", "spy", "hello", "--model", "lab/x", "--base-url", url, "--wire", "openai-chat", env=ENV)
    assert 1 == done.returncode
    assert "[redacted]" in done.stderr
    assert [] == planted_in((done.stdout + done.stderr).encode())
    assert [] == [path.name for path, data in written(leaky) if planted_in(data)]


def test_a_password_in_an_address_is_never_shown(leaky: Path, elenco: Run) -> None:
    """Settings and flags with a password in an address are refused by place, and the line is not quoted."""
    for text, where in (
        (f'providers: {{lab: {{base_url: "http://ada:{PASSWORD}@127.0.0.1:9/v1"}}}}\n', "elenco.yaml:1:29"),
        (f'search: {{base_url: "http://ada:{PASSWORD}@127.0.0.1:9"}}\n', "elenco.yaml:1:20"),
    ):
        (leaky / "ws" / "elenco.yaml").write_text(text)
        for command in (
            ("models",),
            ("check",),
            ("run", "hello"),
            ("doctor",),
            ("trust", "--show"),
            ("tools", "--agent", "spy"),
        ):
            done = elenco(*command, env=ENV)
            assert [] == planted_in((done.stdout + done.stderr).encode()), command
            if command[0] != "doctor":
                assert 2 == done.returncode
                assert where in done.stdout + done.stderr
    (leaky / "ws" / "elenco.yaml").unlink()
    done = elenco("run", "x", "--model", "lab/x", "--base-url", f"http://ada:{PASSWORD}@127.0.0.1:9", env=ENV)
    assert (2, []) == (done.returncode, planted_in((done.stdout + done.stderr).encode()))


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8888", "http://", "http://h:99999", "http://[", "http://a b"])
def test_a_search_server_that_cannot_be_asked_is_a_fault_of_its_line(place: Path, elenco: Run, url: str) -> None:
    """A search address that nobody can be asked at is told with its place before anything runs."""
    (place / "ws" / "elenco.yaml").write_text(f'search: {{base_url: "{url}"}}\n')
    done = elenco("check")
    assert 2 == done.returncode
    assert "elenco.yaml:1:20: must be a URL" in done.stdout


def test_models_names_keys_and_never_shows_one(leaky: Path, elenco: Run) -> None:
    """The list of providers says whether a key is set; a query in an address, which may be a key, is not shown."""
    (leaky / "ws" / "elenco.yaml").write_text(f'providers: {{lab: {{base_url: "http://127.0.0.1:9/v1?key={KEY}"}}}}\n')
    for words in (("models",), ("models", "--json")):
        done = elenco(*words, env=ENV)
        assert 0 == done.returncode
        assert [] == planted_in((done.stdout + done.stderr).encode())
    assert "LAB_API_KEY is set" in elenco("models", env=ENV).stdout
