"""A stage for agents: a cast, a script and tools in; a report and a record out."""

from __future__ import annotations

import random
import textwrap
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run
from runtime.definitions import Caps, Definition, OutputRules, Permissions
from runtime.events import Event, ToolFinished
from runtime.journal import MemoryJournal
from runtime.journal.replay import replay
from runtime.journal.state import RunState
from runtime.limits.limits import Limits
from runtime.messages import JsonObject
from runtime.model import Provider
from runtime.outline import RunOptions
from runtime.providers.script import read_script
from runtime.providers.scripted import ScriptedProvider
from runtime.report import Report
from runtime.resume import limits_after
from runtime.simulate.stage import staged
from runtime.tools import Tool, tool


@tool(effects="none", private=True)
async def look(at: str = "") -> str:
    """Look at something."""
    return f"saw {at}"


@attrs.define(eq=False)
class Stage:
    """What plays: `agent` and `script` set it up, `run` plays it to the end, `opened` while the test acts."""

    folder: Path
    agents: dict[str, Definition] = attrs.Factory(dict[str, Definition])
    tools: dict[str, Tool] = attrs.Factory(lambda: {"look": look})
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    model: Provider | None = None
    limits: Limits = Limits()
    allow: tuple[str, ...] = ()
    yes: bool = False
    headless: bool = False
    output_schema: JsonObject | None = None
    trusted: bool = False

    def agent(
        self,
        name: str,
        *,
        tools: Iterable[str] = (),
        subagents: Iterable[str] = (),
        talks_to: Iterable[str] = (),
        permissions: Permissions | None = None,
        loops: Any = None,
        max_output_tokens: int | None = None,
        output: OutputRules | None = None,
        **caps: Any,
    ) -> None:
        self.agents[name] = Definition(
            name,
            f"The {name}.",
            f"You are the {name}.",
            path=f"agents/{name}.md",
            tools=tuple(tools),
            subagents=tuple(subagents),
            talks_to=tuple(talks_to),
            caps=Caps(**caps),
            permissions=permissions or Permissions(),
            loops=loops or {},
            max_output_tokens=max_output_tokens,
            output=output,
        )

    def tool(self, **settings: Any) -> Callable[[Callable[..., Any]], Tool]:
        """Put a tool on the stage; used as a decorator."""

        def make(function: Callable[..., Any]) -> Tool:
            made = self.tools[function.__name__] = tool(**settings)(function)
            return made

        return make

    def script(self, text: str) -> None:
        self.model = ScriptedProvider(read_script("script.yaml", textwrap.dedent(text)))

    @asynccontextmanager
    async def opened(self, resumption: Resumption | None = None) -> AsyncGenerator[LiveRun]:
        assert self.model is not None
        options = RunOptions(
            agent=next(iter(self.agents)),
            task="the task",
            workspace=self.folder,
            limits=self.limits,
            allow=self.allow,
            yes=self.yes,
            headless=self.headless,
            output_schema=self.output_schema,
        )
        ready = staged(
            options,
            self.agents.values(),
            model="scripted/s",
            providers={"scripted/s": self.model},
            tools=self.tools.values(),
        )
        ready = attrs.evolve(ready, trusted=self.trusted)
        async with open_run(ready, self.journal, "t1", resumption=resumption) as live:
            live.run.chance = random.Random(0)
            yield live

    async def run(self) -> Report:
        async with self.opened() as live:
            report = await live.report()
        assert report is not None
        return report

    def left(self, extra: int = 0, **changes: str) -> Resumption:
        """What another process finds of the run as it stands, and goes on with; the journal is its own now."""
        self.journal = self.journal.crash(extra)
        state = replay(self.journal.records)
        return Resumption(state, limits_after(state, changes), changes)

    async def resume(self, extra: int = 0, **changes: str) -> Report:
        """Go on with the run in another process, to its end."""
        async with self.opened(self.left(extra, **changes)) as live:
            report = await live.report()
        assert report is not None
        return report

    async def killed(self, *, when: Callable[[], bool], until: type[Event] | None = None) -> None:
        """Play until something is so, and die. What is left of the record ends with the last event of that type, or
        else with all that was written: a commit may have been under way."""
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                while not when():
                    await trio.lowlevel.checkpoint()
                ends = [record.seq for record in self.journal.records if until and isinstance(record.event, until)]
                self.journal = MemoryJournal(self.journal.records[: ends[-1] if ends else None])
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            async with self.opened() as live:
                await live.report()

    @property
    def state(self) -> RunState:
        return replay(self.journal.records)

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.journal.records]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    def results(self, actor: str) -> list[ToolFinished]:
        return [event for event in self.of(ToolFinished) if event.actor == actor]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
