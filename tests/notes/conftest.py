"""A stage with agent files, a script and a person who may answer."""

from __future__ import annotations

import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run, plan
from runtime.events import Event, ToolFinished
from runtime.journal import MemoryJournal
from runtime.journal.folder import RunFolder
from runtime.journal.replay import replay
from runtime.known import ModelFlags
from runtime.limits.limits import Limits
from runtime.outline import RunOptions
from runtime.report import Report
from runtime.resume import limits_after
from runtime.tools import Tool


@attrs.define(eq=False)
class Stage:
    """`cast` writes an agent file, `script` what the model says; `opened` is the run while the test acts."""

    workspace: Path
    state: Path
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    tools: list[Tool] = attrs.Factory(list[Tool])
    yes: bool = False
    headless: bool = False
    limits: Limits = Limits()

    def cast(self, tools: str, more: str = "") -> None:
        folder = self.workspace / "agents"
        folder.mkdir(exist_ok=True)
        text = f"---\nname: lead\ndescription: Leads.\ntools: [{tools}]\n{more}---\nLead.\n"
        (folder / "lead.md").write_text(text)

    def script(self, text: str) -> None:
        (self.state / "script.yaml").write_text(textwrap.dedent(text))

    @asynccontextmanager
    async def opened(self, resume: bool = False) -> AsyncGenerator[LiveRun]:
        options = RunOptions(
            agent="lead",
            task="the task",
            model=ModelFlags(f"scripted/{self.state / 'script.yaml'}"),
            workspace=self.workspace,
            yes=self.yes,
            headless=self.headless,
            limits=self.limits,
        )
        state = replay(self.journal.records)
        resumption = Resumption(state, limits_after(state, {})) if resume else None
        folder = RunFolder(self.state / "runs" / "t1")
        folder.path.mkdir(parents=True, exist_ok=True)
        async with open_run(plan(options, self.tools), self.journal, "t1", folder, resumption) as live:
            yield live

    async def run(self, resume: bool = False) -> Report | None:
        with trio.fail_after(20):
            async with self.opened(resume) as live:
                return await live.report()

    async def run_long(self) -> Report | None:
        """For tests with a clock of their own."""
        async with self.opened() as live:
            return await live.report()

    async def pending(self, live: LiveRun) -> Any:
        """The first thing somebody is asked."""
        await self.until(lambda: bool(live.run.waits_for))
        return (*live.approvals.pending, *live.questions.pending)[0]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the run does next."""
        with trio.fail_after(10):
            while not condition():  # noqa: ASYNC110  # the run knows nothing of tests that watch it
                await trio.sleep(0.005)

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.journal.records]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def results(self) -> list[str]:
        return [event.result for event in self.of(ToolFinished)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir()
    return Stage(tmp_path / "work", tmp_path / "state")
