"""Tools that a person writes in the playground: described and run in walls, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from runtime.dash.own_tools import describe, faults_of, names_in
from runtime.permits import Permits
from runtime.policy.decision import Ceiling
from runtime.policy.grants import grants_of
from runtime.policy.paths import Workspace
from runtime.policy.rules import Permissions
from runtime.reaper import Reaper, open_reaper
from runtime.sandbox.box import Sandbox, SandboxError
from runtime.sandbox.walls import Walls
from runtime.tools import Output, Tool, ToolContext, ToolError

CODE = '''
import asyncio, os, subprocess
from dataclasses import dataclass
from runtime.tools import Output, ToolError, tool

print("loading")

@dataclass
class Range:
    first: int
    last: int

@tool(effects="none", timeout=30)
def words(text: str, only: Range | None = None) -> int:
    """Count words.

    Args:
        text: The text.
    """
    print("counting")
    found = text.split()
    return len(found[only.first:only.last] if only else found)

@tool
async def put(name: str) -> str:
    """Write a file."""
    await asyncio.sleep(0)
    open(name, "w").write("x")
    return os.getcwd()

@tool(effects="none")
def peek(path: str) -> Output:
    """Read any file."""
    return Output(open(path).read(), data={"path": path})

@tool(effects="none", name="sneak")
def sneak_in(name: str) -> str:
    """Write where nothing is written."""
    open(name, "w").write("x")

@tool(effects="none")
def reach(port: int) -> str:
    """Connect to the machine itself."""
    import socket
    socket.create_connection(("127.0.0.1", port), 2)

@tool(effects="none")
def keys() -> str:
    """Show the environment."""
    return repr(dict(os.environ))

@tool(effects="none")
def refuse() -> str:
    """Fail on purpose."""
    raise ToolError("not today", transient=True)

@tool(effects="none")
def die() -> str:
    """End without a word."""
    os._exit(3)

@tool
def leave() -> str:
    """Leave something running."""
    subprocess.Popen(["sleep", "600"])
    return "left"
'''


@pytest.fixture
async def reaper() -> AsyncGenerator[Reaper]:
    async with open_reaper() as found:
        yield found


@pytest.fixture
async def boxes(reaper: Reaper, tmp_path: Path) -> Sandbox:
    (tmp_path / "ws").mkdir()
    (tmp_path / "secret").write_text("hidden")
    found = Sandbox(reaper, str(tmp_path / "ws"), Walls(), [tmp_path / "state"], tmp_path / "tmp")
    offer = await found.offer()
    if offer.bwrap is None:
        pytest.skip(f"NO WALLS HERE: no bubblewrap that works: {offer.why_not}")
    return found


async def call(tools: Sequence[Tool], ctx: ToolContext, name: str, /, **arguments: object) -> str:
    """What a call gives: its text, or what it failed with."""
    try:
        found: Output = await next(tool for tool in tools if tool.name == name).run(ctx, **arguments)
    except ToolError as error:
        return f"error: {error}"
    return found.text


async def test_own_code_runs_in_walls_alone(boxes: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Own code is described as any tool is, and reaches neither files outside, nor the network, nor keys."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    found = await describe(CODE, boxes, ["read_file"])
    assert () == found.faults
    by_name = {tool.name: tool for tool in found.tools}
    assert by_name["words"].parameters["properties"]["text"] == {"type": "string", "description": "The text."}
    assert ("none", "once", 30.0) == (by_name["words"].effects, by_name["put"].effects, by_name["words"].timeout)
    printed: list[str] = []
    confined = boxes.under("unsandboxed", "all")  # own code has walls even where commands have none
    with Workspace(tmp_path / "ws") as workspace:
        ctx = ToolContext(workspace, output=printed.append, sandbox=confined)
        tools = found.tools
        assert "2" == await call(tools, ctx, "words", text="a b")
        assert "1" == await call(tools, ctx, "words", text="a b c", only={"first": 1, "last": 2})
        assert "loading\ncounting\n" in "".join(printed)
        assert str(tmp_path / "ws") == await call(tools, ctx, "put", name="new")
        assert "x" == await call(tools, ctx, "peek", path="new")
        assert "No such file" in await call(tools, ctx, "peek", path=str(tmp_path / "secret"))
        assert "Read-only file system" in await call(tools, ctx, "sneak", name="other")
        refused = await call(tools, ctx, "reach", port=80)
        assert refused.startswith("error: ")
        assert "sk-secret" not in await call(tools, ctx, "keys")
        assert "error: not today" == await call(tools, ctx, "refuse")
        assert "error: die ended without an answer" == await call(tools, ctx, "die")
        assert "left" == await call(tools, ctx, "leave")
        planning = ToolContext(workspace, sandbox=boxes.under("read-only", "tools"))
        assert "Read-only file system" in await call(tools, planning, "put", name="third")
    assert ["new"] == [path.name for path in (tmp_path / "ws").iterdir()]


async def test_a_call_of_own_code_asks_whatever_it_says_of_itself(boxes: Sandbox, tmp_path: Path) -> None:
    """That own code changes nothing is its own word: it asks, and what was allowed of it once is that code alone."""
    (words, *_) = (await describe(CODE, boxes, ())).tools
    (changed, *_) = (await describe(f"{CODE}\n# otherwise", boxes, ())).tools
    with Workspace(tmp_path / "ws") as workspace:
        permits = Permits(Permissions(), Ceiling())
        assert "ask" == (await permits.decide(words, {"text": "a"}, workspace)).verdict
        permits.grants.add(grants_of(await permits.subject(words, {"text": "a"}, workspace)))
        assert "allow" == (await permits.decide(words, {"text": "b"}, workspace)).verdict
        assert "ask" == (await permits.decide(changed, {"text": "b"}, workspace)).verdict


@pytest.mark.parametrize(
    ("code", "line", "text"),
    [
        ("def f(:\n", 1, "invalid syntax"),
        ("x = 1\nx / 0\n", 2, "ZeroDivisionError"),
        ("raise SystemExit(3)\n", 1, "SystemExit"),
        ("from runtime.tools import tool\n@tool\ndef read_file(path: str) -> str:\n    'x'\n", 2, "already"),
        ("from runtime.tools import tool\n@tool\ndef f(x: object()) -> str:\n    'x'\n", 2, "f: argument 'x'"),
        ("from runtime.tools import tool\n@tool\ndef f(ctx) -> str:\n    'x'\n", 2, "no ctx"),
        ("from runtime.tools import tool\n@tool(paths={})\ndef f() -> str:\n    'x'\n", 2, "paths cannot be given"),
        ("from runtime.tools import tool\n@tool(retries=2)\ndef f() -> str:\n    'x'\n", 2, "retried"),
        ("from runtime.tools import tool\n@tool(effects='all')\ndef f() -> str:\n    'x'\n", 2, "none, idempotent"),
        ("import os\nos.write(1, b'{}')\nos._exit(0)\n", 1, "no answer"),
    ],
)
async def test_what_is_wrong_with_own_code_is_told_with_its_line(
    boxes: Sandbox, code: str, line: int, text: str
) -> None:
    """What is wrong with own code is told with its line; nothing of it is taken."""
    found = await describe(code, boxes, ["read_file"])
    assert [(line, True)] == [(fault.line, text in fault.text) for fault in found.faults]


async def test_without_walls_no_own_code_runs(reaper: Reaper) -> None:
    """Where no walls can be built, not even the names of the tools are asked for, and the reason is told."""
    with pytest.raises(SandboxError, match="no walls can be built around /"):
        await describe(CODE, Sandbox(reaper, "/"), ())


def test_syntax_and_names_are_told_without_running_anything() -> None:
    """While one types, faults of syntax have line and column and names are known, and nothing is run."""
    assert [] == faults_of(CODE)
    assert ("words", "put", "peek", "sneak", "reach", "keys", "refuse", "die", "leave") == names_in(CODE)
    (fault,) = faults_of("import os\nif True print(1)\n")
    assert (2, True) == (fault.line, fault.column > 1)
    assert [True] == [fault.warning for fault in faults_of("import os\n")]
    assert () == names_in("def f(:")
    (deep,) = faults_of("(" * 60_000)
    assert "tools.py" == deep.path
