"""After a cancel at any moment no task, no process and no descriptor is left, and the record says how it ended."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from runtime.app import open_run
from runtime.conversation import checked
from runtime.definitions import Caps, Definition
from runtime.journal import RunFolder, State, create_run, load, open_journal, open_state
from runtime.known import ModelFlags
from runtime.outline import RunOptions
from runtime.providers.script import read_script
from runtime.providers.scripted import ScriptedProvider
from runtime.simulate.stage import staged
from runtime.steering import Steering
from runtime.tools import Tool, ToolContext, tool
from runtime.watch.control import serve

CANCELS = 100 if os.environ.get("ELENCO_FULL") else 25
SCRIPT = """\
lead:
  - text: I start
    calls:
      - {name: serve_files, arguments: {}}
      - {name: delegate_to_helper, arguments: {task: x}}
      - {name: delegate_to_helper, arguments: {task: y}}
  - calls: [{name: start_helper, arguments: {task: z}}, {name: serve_files, arguments: {}}]
  - {repeat: 3, text: done}
helper:
  - stall: 0.01
    calls: [{name: serve_files, arguments: {}}]
  - calls: [{name: read_slowly, arguments: {}}]
  - helped
"""


@tool(effects="none", private=True)
async def serve_files(ctx: ToolContext) -> str:
    """Start a server that leaves a daemon behind, and read what it says."""
    assert ctx.reaper is not None
    script = "setsid sleep 300 & echo up; sleep 0.02; echo done"
    async with ctx.reaper.running(["sh", "-c", script], cwd="/", grace=0.5) as process:
        assert process.stdout is not None
        text = b""
        while b"done" not in text:
            text += await process.stdout.receive_some()
        await process.wait()
    return text.decode()


@tool(effects="none", private=True)
def read_slowly() -> str:
    """Work in a thread."""
    subprocess.run(["sleep", "0.02"], check=True)
    return "read"


TOOLS: list[Tool] = [serve_files, read_slowly]


@attrs.define
class Here:
    """This process, and what it has besides itself."""

    base: Path
    state: State

    def descriptors(self) -> set[str]:
        found: set[str] = set()
        for name in os.listdir("/proc/self/fd"):
            try:
                found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
            except OSError:
                continue
        return found

    def processes(self) -> set[int]:
        return set(_below(os.getpid()))

    async def run(self, cancel_after: float) -> RunFolder:
        """A run with journal, control socket and processes, cancelled after a while."""
        folder = create_run(self.state, random.Random())
        agents = [
            Definition("lead", "l", "l", tools=("serve_files",), subagents=("helper",), caps=Caps()),
            Definition("helper", "h", "h", tools=("serve_files", "read_slowly"), caps=Caps()),
        ]
        options = RunOptions(agent="lead", task="t", workspace=self.base, model=ModelFlags("scripted/s"))
        provider = ScriptedProvider(read_script("s", SCRIPT))
        plan = staged(options, agents, model="scripted/s", providers={"scripted/s": provider}, tools=TOOLS)
        async with (
            open_journal(folder) as journal,
            open_run(plan, journal, folder.id, folder) as live,
            serve(live.stream, Steering(live), folder, {"XDG_RUNTIME_DIR": str(self.base / "rt")}),
        ):
            with trio.move_on_after(cancel_after):
                await live.report()
                return folder
            live.cancel("the test")
            with trio.fail_after(20):
                await live.report()
        return folder


def _below(pid: int) -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                yield int(name)
                yield from _below(int(name))


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "rt").mkdir(mode=0o700)
    return Here(tmp_path, open_state(str(tmp_path / "state")))


async def test_a_cancel_at_any_moment_leaves_nothing(here: Here) -> None:
    """Cancelled again and again in one process: no process, descriptor or task is left, and the history is valid."""
    ended = await here.run(60)
    assert load(ended).finished is not None
    chance = random.Random(5)
    tasks = trio.lowlevel.current_statistics().tasks_living
    descriptors, processes = here.descriptors(), here.processes()
    for number in range(CANCELS):
        folder = await here.run(chance.random() * 0.6)
        assert tasks == trio.lowlevel.current_statistics().tasks_living, number
        assert processes == here.processes(), number
        assert descriptors == here.descriptors(), number
        assert {"journal.db", "lock"} == {path.name for path in folder.path.iterdir()}
        check(load(folder))
    assert [] == list((here.base / "rt").rglob("*.sock"))


def check(state: Any) -> None:
    """A run that was cancelled, or had ended before: every actor has its report and a valid history."""
    assert state.finished is not None
    assert state.finished.report["status"] in ("cancelled", "completed"), (state.finished, state.warnings)
    for actor in state.actors.values():
        assert actor.report is not None
        assert not actor.open_calls
        assert not actor.reservations
        checked(actor.history)
