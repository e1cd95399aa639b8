"""A stage with a team: agent files, a script for each, files in the workspace, runs that may be resumed anywhere."""

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
from runtime.events import ActorStarted, Event, Record, ToolFinished
from runtime.journal import MemoryJournal
from runtime.journal.folder import RunFolder
from runtime.journal.memory import MemoryContents
from runtime.journal.replay import replay
from runtime.known import ModelFlags
from runtime.messages import UserMessage
from runtime.outline import RunOptions
from runtime.report import Report
from runtime.resume import limits_after


@attrs.define(eq=False)
class Stage:
    """`cast` writes an agent file, `script` what the models say, `file` a file of the workspace."""

    workspace: Path
    state: Path
    contents: MemoryContents = attrs.Factory(MemoryContents)
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    options: dict[str, Any] = attrs.Factory(dict[str, Any])

    def cast(self, name: str, tools: str = "", more: str = "") -> None:
        folder = self.workspace / "agents"
        folder.mkdir(exist_ok=True)
        text = f"---\nname: {name}\ndescription: Does its part.\ntools: [{tools}]\n{more}---\nDo your part.\n"
        (folder / f"{name}.md").write_text(text, encoding="utf-8")

    def script(self, text: str) -> None:
        (self.state / "script.yaml").write_text(textwrap.dedent(text), encoding="utf-8")

    def file(self, path: str, content: str | bytes) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

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
        self.journal = MemoryJournal(records or (), contents=self.contents)
        state = replay(self.journal.records)
        resumption = Resumption(state, limits_after(state, {})) if records else None
        folder = RunFolder(self.state / "runs" / "t1")
        folder.path.mkdir(parents=True, exist_ok=True)
        async with open_run(plan(options), self.journal, "t1", folder, resumption) as live:
            yield live

    async def run(self, records: Sequence[Record] | None = None) -> Report:
        with trio.fail_after(30):
            async with self.opened(records) as live:
                report = await live.report()
        assert report is not None
        return report

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [record.event for record in self.journal.records if isinstance(record.event, kinds)]

    def results(self, actor: str = "lead") -> list[str]:
        return [event.result for event in self.of(ToolFinished) if event.actor == actor]

    def first_message(self, actor: str) -> str:
        """What an actor's history begins with."""
        first = replay(self.journal.records).actors[actor].history[0]
        assert isinstance(first, UserMessage)
        return first.text

    def begun(self, actor: str) -> ActorStarted:
        found: list[ActorStarted] = [event for event in self.of(ActorStarted) if event.actor == actor]
        return found[0]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "work").mkdir()
    (tmp_path / "state").mkdir()
    stage = Stage(tmp_path / "work", tmp_path / "state")
    stage.cast("lead", "read_file, shell", "subagents: [worker]\n")
    stage.cast("worker", "read_file, search_text")
    return stage
