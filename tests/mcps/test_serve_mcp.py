"""The cast as MCP tools, and the command that looks at servers, as they are installed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import trio

from runtime.events import McpConnected
from runtime.mcps.entry import Entry

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
CASES = Path(__file__).parent.parent / "cases" / "mcps"
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
sleeper: [{stall: 600, text: late}]
asker: [{calls: [{name: write_file, arguments: {path: a, content: b}}]}]
"""


def settle(folder: Path) -> Path:
    """A workspace with one agent and a script, an empty home beside it."""
    (folder / "ws" / "agents").mkdir(parents=True)
    (folder / "ws" / "agents" / "helper.md").write_text(AGENT)
    (folder / "s.yaml").write_text(SCRIPT)
    for name in ("home", "rt"):
        (folder / name).mkdir(mode=0o700)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return settle(tmp_path)


def around(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home / "home"),
        "XDG_RUNTIME_DIR": str(home / "rt"),
        "ELENCO_STATE": str(home / "state"),
    }


def call_elenco(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ELENCO, *words], cwd=home / "ws", env=around(home), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def run(home: Path) -> Run:
    return partial(call_elenco, home)


@pytest.fixture(scope="module")
def cast(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """The address of a cast of three that is served over HTTP to whoever has the token, and its folder."""
    home = settle(tmp_path_factory.mktemp("cast"))
    for name in ("sleeper", "asker"):
        (home / "ws" / "agents" / f"{name}.md").write_text(AGENT.replace("helper", name))
    words = [ELENCO, "serve-mcp", "--port", "0", "--model", f"scripted/{home / 's.yaml'}"]
    environment = {**around(home), "ELENCO_MCP_TOKEN": "t0ken"}
    with subprocess.Popen(words, cwd=home / "ws", env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = next(filter(None, (re.search(r"serving at (http://\S+/mcp) ", line) for line in process.stderr)))
        yield found[1], home
        process.send_signal(signal.SIGINT)
        assert 130 == process.wait(20)


def entry_of(url: str, **settings: Any) -> Entry:
    return Entry("cast", "http", url=url, headers={"Authorization": "Bearer t0ken"}, **settings)


async def test_an_agent_is_a_tool_whose_call_is_a_run(bench: Any, home: Path, run: Run) -> None:
    """Over pipes an agent is a tool; a call is a run with its steps as progress, and is on record."""
    words = ("serve-mcp", "helper", "--model", f"scripted/{home / 's.yaml'}", "--workspace", str(home / "ws"))
    async with bench(Entry("cast", command=ELENCO, args=words, env=around(home))) as it:
        await is_a_tool(it, ["helper"])
    (only,) = (await trio.to_thread.run_sync(lambda: run("runs", "--json"))).stdout.splitlines()
    assert "help me" == json.loads(only)["task"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_agents_are_tools_as_well(bench: Any, cast: tuple[str, Path], mode: Any) -> None:
    """Over HTTP the agents are tools as well, in both dialects of the protocol."""
    async with bench(entry_of(cast[0], mode=mode)) as it:
        await is_a_tool(it, ["helper", "sleeper", "asker"])


async def is_a_tool(it: Any, tools: list[str]) -> None:
    assert set(tools) <= set(it.of(McpConnected)[0].tools)
    result = await it.call("cast_helper", task="help me")
    assert ("ok", "all done") == (result.kind, result.content)
    told = "".join(it.shown)
    assert "helper begins: help me" in told
    assert "helper: list_files" in told
    assert "give it a task" in (await it.call("cast_helper", task=" ")).content
    assert "no run 'none'" in (await it.call("cast_helper", task="x", continue_run="none")).content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_cancelled_call_cancels_its_run(bench: Any, cast: tuple[str, Path], until: Any, mode: Any) -> None:
    """A call that its client cancels cancels the run behind it."""
    async with bench(entry_of(cast[0], mode=mode)) as it:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: it.call("cast_sleeper", task=f"sleep {mode}"))
            await until(lambda: any("begins" in text for text in it.shown))
            nursery.cancel_scope.cancel()

        def state() -> str:
            rows = map(json.loads, call_elenco(cast[1], "runs", "--json").stdout.splitlines())
            return next(str(row["state"]) for row in rows if row["task"] == f"sleep {mode}")

        await until(lambda: state() != "running")
        assert "cancelled" == state()


async def test_a_run_that_needs_a_human_says_how_to_decide(bench: Any, cast: tuple[str, Path]) -> None:
    """A run that needs a human ends the call with the commands that decide."""
    async with bench(entry_of(cast[0])) as it:
        result = await it.call("cast_asker", task="x")
    assert result.is_error
    assert re.search(r"run \w+ waits for a1: elenco approve \w+ a1   then elenco resume \w+", result.content)


async def test_over_http_strangers_are_refused(cast: tuple[str, Path]) -> None:
    """Over HTTP it listens on this machine alone, refuses pages of other origins, other hosts and a missing token."""
    url, _ = cast
    assert url.startswith("http://127.0.0.1:")
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


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Call in a trusted workspace whose shared file names the server `way`."""
    home = settle(tmp_path_factory.mktemp("trusted"))
    shared(home)
    call_elenco(home, "trust", "--yes")
    return partial(call_elenco, home)


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
        (("mcp", "disable", "way"), "write elenco mcp disable NAME --run RUN; for a new run: elenco run --no-mcp way"),
        (("mcp", "enable", "way", "--run", "none"), "no run 'none'"),
        (("mcp", "--workspace", "nowhere"), "the workspace nowhere does not exist"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(trusted: Run, words: tuple[str, ...], said: str) -> None:
    """A wrong word is told in one line, with exit code 2."""
    found = trusted(*words)
    assert 2 == found.returncode
    assert said in found.stderr
    told = [line for line in found.stderr.splitlines() if "to start, 30 s at most" not in line]
    assert 1 == len(told)


def shared(home: Path, *modes: str, **more: Any) -> None:
    words = [str(CASES / "wayward_server.py"), *modes]
    entry = {"command": sys.executable, "args": words, "alwaysAllow": [], **more}
    spare = {"command": sys.executable, "args": words, "disabled": True}
    (home / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": {"way": entry, "spare": spare}}))


def test_servers_of_a_shared_file_are_listed_and_called(trusted: Run) -> None:
    """Servers of a shared file are listed, their tools told and called."""
    listed = trusted("mcp")
    assert re.search(r"way +stdio +- +\.mcp\.json:1", listed.stdout)
    assert "unknown key 'alwaysAllow': not used" in listed.stderr
    tools = trusted("mcp", "tools", "way")
    assert (0, True) == (tools.returncode, "way_echo" in tools.stdout)
    called = trusted("mcp", "call", "way", "echo", '{"a": 1}')
    assert (0, '{"a": 1}\n') == (called.returncode, called.stdout)
    assert "way: wayward 1, protocol 2025-11-25" in trusted("mcp", "test", "way").stdout


def test_a_server_that_quits_is_told_with_its_last_words(home: Path, run: Run) -> None:
    """A server that quits is told with its exit code and its last words, exit code 1."""
    shared(home, "quits")
    run("trust", "--yes")
    found = run("mcp", "test", "way")
    assert 1 == found.returncode
    assert "it ended with exit code 3; its last words:\nno settings found" in found.stderr
    assert "tried again" not in found.stderr, "nobody tries again for a command that looks once"


def test_a_run_has_the_servers_that_are_trusted_and_enabled(home: Path, run: Run) -> None:
    """A run goes without untrusted and disabled servers and says so; flags enable and disable one for that run."""
    shared(home)
    (home / "ws" / "agents" / "helper.md").write_text(
        AGENT.replace("tools: [list_files, write_file]", "mcps: [way, spare]")
    )
    (home / "s.yaml").write_text("helper: [{calls: [{name: way_echo}, {name: spare_echo}]}, {text: end}]\n")
    words = ["run", "helper", "x", "--model", f"scripted/{home / 's.yaml'}", "--no-input", "--json"]
    words += ["--allow", "mcp(way/*)", "--allow", "mcp(spare/*)"]

    def connected(*more: str) -> tuple[set[str], str]:
        said = run(*words, *more).stdout
        events = map(json.loads, said.splitlines())
        return {event["server"] for event in events if event["type"] == "mcp.connected"}, said

    assert "which you do not trust yet" in run("mcp", "tools").stderr
    none, said = connected()
    assert (set(), True) == (none, "there is no tool 'way_echo'" in said)
    run("trust", "--yes")
    assert {"way"} == connected()[0]
    other, said = connected("--no-mcp", "way", "--mcp", "spare")
    assert ({"spare"}, True) == (other, "it is disabled" in said)


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
