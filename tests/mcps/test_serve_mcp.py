"""The cast as MCP tools, and the command that looks at servers, as they are installed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import trio

from runtime.events import McpConnected
from runtime.mcps.entry import Entry

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
ELENCO = str(Path(sys.executable).with_name("elenco"))
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

AGENT = """\
---
name: helper
description: Helps.
tools: [list_files, write_file]
---
You help.
"""
SCRIPT = """\
helper:
  - calls: [{name: list_files, arguments: {path: "."}}]
  - text: all done
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with one agent and a script, an empty home beside it."""
    (tmp_path / "ws" / "agents").mkdir(parents=True)
    (tmp_path / "ws" / "agents" / "helper.md").write_text(AGENT)
    (tmp_path / "s.yaml").write_text(SCRIPT)
    for name in ("home", "rt"):
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path


def around(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home / "home"),
        "XDG_RUNTIME_DIR": str(home / "rt"),
        "ELENCO_STATE": str(home / "state"),
    }


@pytest.fixture
def run(home: Path) -> Run:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ELENCO, *words], cwd=home / "ws", env=around(home), capture_output=True, text=True, timeout=60, check=False
        )

    return call


def served(home: Path, **settings: Any) -> Entry:
    words = ("serve-mcp", "helper", "--model", f"scripted/{home / 's.yaml'}", "--workspace", str(home / "ws"))
    environment = {"ELENCO_STATE": str(home / "state"), "HOME": str(home / "home"), "XDG_RUNTIME_DIR": str(home / "rt")}
    return Entry("cast", command=ELENCO, args=words, env=environment, **settings)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_is_a_tool_whose_call_is_a_run(bench: Any, home: Path, run: Run, mode: Any) -> None:
    """An agent is a tool; a call is a run with its steps as progress, and is on record."""
    async with bench(served(home, mode=mode)) as it:
        assert ["helper"] == list(it.of(McpConnected)[0].tools)
        result = await it.call("cast_helper", task="help me")
        assert ("ok", "all done") == (result.kind, result.content)
        told = "".join(it.shown)
        assert "helper begins: help me" in told
        assert "helper: list_files" in told
        assert "give it a task" in (await it.call("cast_helper", task=" ")).content
        assert "no run 'none'" in (await it.call("cast_helper", task="x", continue_run="none")).content
    (only,) = (await trio.to_thread.run_sync(lambda: run("runs", "--json"))).stdout.splitlines()
    assert "help me" == json.loads(only)["task"]


async def test_a_cancelled_call_cancels_its_run(bench: Any, home: Path, run: Run, until: Any) -> None:
    """A call that its client cancels cancels the run behind it."""
    (home / "s.yaml").write_text("helper: [{stall: 600, text: late}]\n")
    async with bench(served(home)) as it:
        with trio.move_on_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: it.call("cast_helper", task="x"))
                await until(lambda: any("begins" in text for text in it.shown))
                nursery.cancel_scope.cancel()
        shown = (await trio.to_thread.run_sync(lambda: run("runs", "--json"))).stdout
        await until(lambda: "cancelled" in run("runs", "--json").stdout)
    assert "x" == json.loads(shown)["task"]


async def test_a_run_that_needs_a_human_says_how_to_decide(bench: Any, home: Path) -> None:
    """A run that needs a human ends the call with the commands that decide."""
    (home / "s.yaml").write_text("helper: [{calls: [{name: write_file, arguments: {path: a, content: b}}]}]\n")
    async with bench(served(home)) as it:
        result = await it.call("cast_helper", task="x")
    assert result.is_error
    assert re.search(r"run \w+ waits for a1: elenco approve \w+ a1   then elenco resume \w+", result.content)


async def test_over_http_strangers_are_refused(bench: Any, home: Path) -> None:
    """Over HTTP it listens on this machine alone, refuses pages of other origins, other hosts and a missing token."""
    words = [ELENCO, "serve-mcp", "helper", "--port", "0", "--model", f"scripted/{home / 's.yaml'}"]
    environment = {**around(home), "ELENCO_MCP_TOKEN": "t0ken"}
    process = await trio.lowlevel.open_process(words, cwd=home / "ws", env=environment, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        said = b""
        while b"serving at" not in said or not said.endswith(b"\n"):
            said += bytes(await process.stderr.receive_some())
        found = re.search(rb"serving at (http://127\.0\.0\.1:\d+/mcp)", said)
        assert found is not None
        url = found[1].decode()
        right = {"authorization": "Bearer t0ken", "content-type": "application/json"}
        async with httpx.AsyncClient() as client:
            codes = [
                (await client.post(url, json={}, headers=headers)).status_code
                for headers in (
                    {},
                    {"authorization": "Bearer other"},
                    {**right, "origin": "http://evil.example"},
                    {**right, "host": "evil.example"},
                )
            ]
        assert [401, 401, 403, 421] == codes
        async with bench(Entry("cast", "http", url=url, headers={"Authorization": "Bearer t0ken"})) as it:
            assert "all done" == (await it.call("cast_helper", task="x")).content
        process.send_signal(signal.SIGINT)
        assert 130 == await process.wait()
    finally:
        process.kill()
        if process.stderr is not None:
            await process.stderr.aclose()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve-mcp", "helpre"), "unknown agent 'helpre'; did you mean 'helper'?"),
        (("serve-mcp", "--port", "70000"), "--port is a number from 0"),
        (("serve-mcp", "--port", "x"), "--port must be a whole number"),
        (("serve-mcp", "--model", "x"), "'x' names no model"),
        (("mcp", "tolls"), "unknown: elenco mcp tolls; did you mean 'tools'?"),
        (("mcp", "call", "way"), "write elenco mcp call NAME TOOL"),
        (("mcp", "call", "way", "echo", "{"), "the arguments are no JSON"),
        (("mcp", "call", "way", "echo", "[]"), "the arguments must be one JSON object"),
        (("mcp", "test", "wya"), "no MCP server is called 'wya'; did you mean 'way'?"),
        (("mcp", "call", "way", "ehco"), "way has no tool 'ehco'; did you mean 'echo'?"),
        (("mcp", "--workspace", "nowhere"), "the workspace nowhere is no folder"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(home: Path, run: Run, cases: Path, words: tuple[str, ...], said: str) -> None:
    """A wrong word is told in one line, with exit code 2."""
    shared(home, cases)
    run("trust", "--yes")
    found = run(*words)
    assert 2 == found.returncode
    assert said in found.stderr
    told = [line for line in found.stderr.splitlines() if "to start, 30 s at most" not in line]
    assert 1 == len(told)


def shared(home: Path, cases: Path, *modes: str) -> None:
    words = [str(cases / "wayward_server.py"), *modes]
    entry = {"command": sys.executable, "args": words, "alwaysAllow": []}
    (home / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": {"way": entry}}))


def test_servers_of_a_shared_file_are_listed_and_called_once_trusted(home: Path, run: Run, cases: Path) -> None:
    """Servers of a shared file are listed at once, and started once the workspace is trusted."""
    shared(home, cases)
    listed = run("mcp")
    assert "way     stdio  -       .mcp.json:1" in listed.stdout
    assert "unknown key 'alwaysAllow': not used" in listed.stderr
    refused = run("mcp", "tools")
    assert (2, True) == (refused.returncode, "which you do not trust yet" in refused.stderr)
    run("trust", "--yes")
    tools = run("mcp", "tools", "way")
    assert (0, True) == (tools.returncode, "way_echo" in tools.stdout)
    called = run("mcp", "call", "way", "echo", '{"a": 1}')
    assert (0, '{"a": 1}\n') == (called.returncode, called.stdout)
    assert "way: wayward 1, protocol 2025-11-25" in run("mcp", "test", "way").stdout


def test_a_server_that_quits_is_told_with_its_last_words(home: Path, run: Run, cases: Path) -> None:
    """A server that quits is told with its exit code and its last words, exit code 1."""
    shared(home, cases, "quits")
    run("trust", "--yes")
    found = run("mcp", "test", "way")
    assert 1 == found.returncode
    assert "it ended with exit code 3; its last words:\nno settings found" in found.stderr


def test_an_untrusted_workspace_starts_no_server(home: Path, run: Run, cases: Path) -> None:
    """In a workspace nobody has trusted an agent goes without the workspace's servers, and a line says so."""
    shared(home, cases)
    agent = AGENT.replace("tools: [list_files, write_file]", "mcps: [way]")
    (home / "ws" / "agents" / "helper.md").write_text(agent)
    (home / "s.yaml").write_text("helper: [{calls: [{name: way_echo}]}, {text: end}]\n")
    words = (
        "run",
        "helper",
        "x",
        "--model",
        f"scripted/{home / 's.yaml'}",
        "--no-input",
        "--json",
        "--allow",
        "mcp(way/*)",
    )
    first = run(*words)
    assert "there is no tool 'way_echo'" in first.stdout
    assert "mcp.connected" not in first.stdout
    run("trust", "--yes")
    assert '"type":"mcp.connected"' in run(*words).stdout


def test_check_and_doctor_look_at_servers(home: Path, run: Run) -> None:
    """Faults of entries are told by check with their place, missing programs and variables by doctor."""
    settings = (
        "mcpServers:\n  a: {command: no-such-program}\n  b: {url: 'http://h/', headers: {K: '${SURELY_NOT_SET}'}}\n"
    )
    (home / "ws" / "elenco.yaml").write_text(settings)
    agent = AGENT.replace("tools: [list_files, write_file]", "mcps: [a, c]")
    (home / "ws" / "agents" / "helper.md").write_text(agent)
    doctor = run("doctor").stdout
    assert "⚠ a: there is no program no-such-program (elenco.yaml:2)" in doctor
    assert "⚠ b: the variable SURELY_NOT_SET is not set (elenco.yaml:3)" in doctor
    assert "agents/helper.md:4:11: unknown MCP server 'c'" in run("check").stdout
    (home / "ws" / "elenco.yaml").write_text("mcpServers:\n  a: {comand: x}\n")
    assert "elenco.yaml:2:7: unknown key 'comand'; did you mean 'command'?" in run("check").stdout
    (home / "ws" / ".mcp.json").write_text('{"mcpServers": {"x": {"type": "ftp"}}}')
    assert ".mcp.json:1:31: type: expected stdio, http, sse or tcp" in run("check").stdout


def test_servers_are_enabled_and_disabled_for_one_run(home: Path, run: Run, cases: Path) -> None:
    """A flag disables a server for one run, another enables one that is disabled."""
    shared(home, cases)
    agent = AGENT.replace("tools: [list_files, write_file]", "mcps: [way]")
    (home / "ws" / "agents" / "helper.md").write_text(agent)
    (home / "s.yaml").write_text("helper: [{calls: [{name: way_echo}]}, {text: end}]\n")
    run("trust", "--yes")
    words = ("run", "helper", "x", "--model", f"scripted/{home / 's.yaml'}", "--json", "--allow", "mcp(way/*)")
    off = run(*words, "--no-mcp", "way").stdout
    assert "it is disabled" in off
    assert "there is no tool 'way_echo'" in off
    entry = {"command": sys.executable, "args": [str(cases / "wayward_server.py")], "disabled": True}
    (home / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": {"way": entry}}))
    run("trust", "--yes")
    assert "mcp.connected" not in run(*words).stdout
    assert "mcp.connected" in run(*words, "--mcp", "way").stdout
