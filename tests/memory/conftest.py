"""A stage with a state folder, agent files and a script: runs that remember."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run, plan
from runtime.events import Event, Record, ToolFinished
from runtime.journal import MemoryJournal
from runtime.journal.folder import RunFolder
from runtime.journal.replay import replay
from runtime.known import ModelFlags
from runtime.memory.store import FactStore, memory_file
from runtime.outline import RunOptions
from runtime.report import Report
from runtime.resume import limits_after


@attrs.define(eq=False)
class Stage:
    """`cast` writes the agent file, `script` what its model says; `store` is the memory of all its runs."""

    workspace: Path
    state: Path
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    options: dict[str, Any] = attrs.Factory(dict[str, Any])
    id: str = "t1"

    @property
    def store(self) -> FactStore:
        return FactStore(memory_file(self.state))

    def cast(self, tools: str, more: str = "") -> None:
        folder = self.workspace / "agents"
        folder.mkdir(exist_ok=True)
        (folder / "lead.md").write_text(
            f"---\nname: lead\ndescription: Leads.\ntools: [{tools}]\n{more}---\nLead.\n", encoding="utf-8"
        )

    def script(self, text: str) -> None:
        (self.state / "script.yaml").write_text(textwrap.dedent(text), encoding="utf-8")

    @asynccontextmanager
    async def opened(self, records: Sequence[Record] | None = None) -> AsyncGenerator[LiveRun]:
        """A new run, or one that goes on after these records."""
        options = RunOptions(
            agent="lead",
            task="the task",
            model=ModelFlags(f"scripted/{self.state / 'script.yaml'}"),
            workspace=self.workspace,
            **self.options,
        )
        self.journal = MemoryJournal(records or ())
        state = replay(self.journal.records)
        resumption = Resumption(state, limits_after(state, {})) if records else None
        folder = RunFolder(self.state / "runs" / self.id)
        folder.path.mkdir(parents=True, exist_ok=True)
        async with open_run(plan(options), self.journal, self.id, folder, resumption) as live:
            yield live

    async def run(self, records: Sequence[Record] | None = None) -> Report | None:
        with trio.fail_after(20):
            async with self.opened(records) as live:
                return await live.report()

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [record.event for record in self.journal.records if isinstance(record.event, kinds)]

    @property
    def results(self) -> list[str]:
        return [event.result for event in self.of(ToolFinished)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir()
    return Stage(tmp_path / "work", tmp_path / "state")
