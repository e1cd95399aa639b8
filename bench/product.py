"""Elenco as a Subject: used as a program uses it, with everything on.

Each run has its own plan, journal, ledger, guard, permissions and control socket, and a reader
that takes every event, with a breath between two batches as `elenco run` has it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from runtime.app import LiveRun, RunOptions, open_run, plan
from runtime.events import ModelDelta, Record
from runtime.journal.durable import open_journal
from runtime.journal.folder import State, create_run, open_state
from runtime.journal.memory import MemoryJournal
from runtime.limits.limits import Limits
from runtime.models import ModelFlags
from runtime.steering import Steering
from runtime.tools import tool
from runtime.watch.control import serve
from runtime.watch.reader import BREATH

from .subject import SYSTEM, TASK, Timer, add, note

KEY = "sk-bench-0123456789abcdef0123456789abcdef"
LIMITS = Limits(max_steps=500, total_steps=100_000, token_budget=10**9, max_children=500, max_total_children=500)
TOOLS = (tool(effects="none")(add), tool(effects="none")(note))


@attrs.define
class Seen:
    """What a reader of one run's events has seen."""

    records: int = 0
    words: int = 0

    def take(self, records: list[Record]) -> None:
        """Count them; deltas of one wake-up come as one event, so they are told by their words."""
        self.records += len(records)
        for record in records:
            if isinstance(record.event, ModelDelta):
                self.words += record.event.text.count(" ")


class ElencoSubject:
    """Runs in a workspace of their own in `folder`; with `durable` False the journal is one in memory."""

    def __init__(self, base: str, folder: Path, durable: bool = True) -> None:
        os.environ["LAB_API_KEY"] = KEY  # what comes back is then searched for it, as in a real run
        self._workspace = folder / "workspace"
        self._state: State | None = open_state(str(folder / "state")) if durable else None
        self._base = base
        self._children: dict[str, int] = {}
        self.work = Timer()
        self._write("adder", "tools: [add]")
        self._write("noter", "tools: [note]")

    async def loop(self, model: str) -> None:
        await self._run("adder", model)

    async def fan(self, model: str) -> None:
        await self._run("noter", model)

    async def stream(self, model: str) -> int:
        seen = await self._run("adder", model)
        return seen.words

    async def delegate(self, children: int, child: str, latency: str = "") -> None:
        number = self._children.get(child)
        if number is None:
            number = self._children[child] = len(self._children)
            self._write(f"child-{number}", f"tools: [add]\nmodel: {json.dumps(f'lab/{child}')}")
            self._write(f"lead-{number}", f"subagents: [child-{number}]\nmax_children: 500")
        await self._run(f"lead-{number}", f"fan-{children}:delegate_to_child-{number}(task){latency}")

    async def crowd(self, model: str, count: int) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(self.loop, model)

    async def aclose(self) -> None:
        """Nothing is left of a run that has ended."""

    def _write(self, name: str, keys: str) -> None:
        agents = self._workspace / "agents"
        agents.mkdir(parents=True, exist_ok=True)
        head = f"---\nname: {name}\ndescription: One of the measured agents.\nmax_steps: 500\n{keys}\n---\n"
        (agents / f"{name}.md").write_text(f"{head}{SYSTEM}\n")

    async def _run(self, agent: str, model: str) -> Seen:
        options = RunOptions(
            agent=agent,
            task=TASK,
            model=ModelFlags(f"lab/{model}", f"{self._base}/v1", "openai-chat"),
            workspace=self._workspace,
            limits=LIMITS,
            headless=True,
        )
        seen = Seen()
        async with self._open(options) as live:
            with Timer() as work:
                async with live.stream.subscribe(breath=BREATH) as reader:
                    while records := await reader.batch():
                        seen.take(records)
                report = await live.report()
        self.work = work
        assert report is not None
        if report.status != "completed":
            raise RuntimeError(f"{agent} on {model}: {report.status}, {report.detail}")
        return seen

    @asynccontextmanager
    async def _open(self, options: RunOptions) -> AsyncGenerator[LiveRun]:
        ready = plan(options, TOOLS)
        if self._state is None:
            async with open_run(ready, MemoryJournal(clock=time.time), "memory") as live:
                yield live
            return
        folder = create_run(self._state, random.Random())
        async with (
            open_journal(folder) as journal,
            open_run(ready, journal, folder.id, folder) as live,
            serve(live.stream, Steering(live), folder),
        ):
            yield live
