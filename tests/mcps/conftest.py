"""Servers to be called: the wayward one over pipes, a decent one over HTTP, each with what is seen of it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import trio

from runtime.events import Event
from runtime.mcps.entry import Entry
from runtime.mcps.fleet import Fleet
from runtime.mcps.session import Surroundings
from runtime.messages import ToolCall, ToolResult
from runtime.policy.paths import Workspace
from runtime.reaper import open_reaper
from runtime.tools import ToolBox, ToolContext

CASES = Path(__file__).parent.parent / "cases" / "mcps"


@attrs.define(eq=False)
class Bench:
    """A fleet that is open, what it has put on record, and what its calls have shown."""

    fleet: Fleet
    workspace: Workspace
    events: list[Event]
    shown: list[str] = attrs.Factory(list[str])

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """Call a tool under its name here, as an agent would."""
        tools = ToolBox(self.fleet.tools_of(list(self.fleet.entries)))
        context = ToolContext(self.workspace, "c1", output=self.shown.append)
        return await tools.run(ToolCall("c1", name, arguments), context)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


Until: TypeAlias = Callable[[Callable[[], "Awaitable[bool] | bool"]], Awaitable[None]]
Opened: TypeAlias = Callable[..., AbstractAsyncContextManager[Bench]]


@pytest.fixture
def bench(tmp_path: Path) -> Opened:
    """Open servers by their entries and wait for them."""

    @asynccontextmanager
    async def opened(*entries: Entry) -> AsyncGenerator[Bench]:
        events: list[Event] = []
        workspace = Workspace(tmp_path)
        async with open_reaper() as reaper:
            fleet = Fleet({each.name: each for each in entries}, Surroundings(reaper, str(tmp_path)), events.append)
            async with fleet.open():
                await fleet.ready(list(fleet.entries))
                yield Bench(fleet, workspace, events)
        workspace.close()

    return opened


@pytest.fixture
def wayward() -> Callable[..., Entry]:
    """The entry of a wayward server with these modes."""

    def entry(*modes: str, name: str = "way", **settings: Any) -> Entry:
        command = (str(CASES / "wayward_server.py"), *modes)
        settings.setdefault("mode", "legacy")
        return Entry(name, command=sys.executable, args=command, **settings)

    return entry


def start_decent(port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, str(CASES / "decent_server.py"), str(port)])
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        process.poll()
        assert process.returncode is None
        time.sleep(0.05)
    return process


@pytest.fixture(scope="session")
def decent() -> Generator[Callable[[str], str]]:
    """The addresses of a decent server that all tests share: `mcp`, `sse`, and `closed/mcp`, which wants a token."""
    port = a_free_port()
    process = start_decent(port)
    yield lambda path: f"http://127.0.0.1:{port}/{path}"
    process.kill()
    process.wait()


@pytest.fixture
def mortal() -> Generator[tuple[str, list[subprocess.Popen[bytes]], Callable[[], None]]]:
    """A decent server of this test's own: its address, its processes, and how to start it again."""
    port = a_free_port()
    started = [start_decent(port)]
    yield f"http://127.0.0.1:{port}/mcp", started, lambda: started.append(start_decent(port))
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def free_port() -> int:
    return a_free_port()


@pytest.fixture
def cases() -> Path:
    return CASES


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def until() -> Until:
    """Wait for something to be so, for half a minute at most."""

    async def wait(condition: Callable[[], Awaitable[bool] | bool]) -> None:
        with trio.fail_after(30):
            while True:
                found = condition()
                if found is True or (not isinstance(found, bool) and await found):
                    return
                await trio.sleep(0.02)

    return wait


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    return lives
