"""A stage for hooks: an agent, a script, commands written into the workspace; a report and a record out."""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from runtime import config
from runtime.app import LiveRun, Resumption, open_run
from runtime.definitions import Caps, Definition, Permissions
from runtime.events import Event, HookFinished, ToolFinished
from runtime.hooks.settings import Hook
from runtime.journal import MemoryJournal
from runtime.journal.replay import replay
from runtime.limits.limits import Limits
from runtime.model import Provider
from runtime.outline import RunOptions
from runtime.providers.script import read_script
from runtime.providers.scripted import ScriptedProvider
from runtime.report import Report
from runtime.resume import limits_after
from runtime.simulate.stage import staged
from runtime.tools import Tool, tool
from runtime.tools.registry import built_in


@attrs.define(eq=False)
class Stage:
    """What plays: one agent `a` with a few tools; `ran` notes what the tool `act` was called with."""

    folder: Path
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    model: Provider | None = None
    hooks: list[Hook] = attrs.Factory(list[Hook])
    ran: list[str] = attrs.Factory(list[str])
    subagents: tuple[str, ...] = ()
    limits: Limits = Limits()
    allow: tuple[str, ...] = ("act", "look")
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    yes: bool = False
    headless: bool = False
    caps: Caps = Caps()
    act: Tool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        @tool(effects="once")
        async def act(thing: str) -> str:
            """Act on something."""
            self.ran.append(thing)
            return f"acted on {thing}"

        self.act = act

    def settings(self, text: str) -> None:
        """Hooks as elenco.yaml would have them."""
        self.hooks += config.read(textwrap.dedent(text), "elenco.yaml").hooks

    def command(self, name: str, body: str) -> str:
        """A Python program in the workspace that has the event as `event`; the line that starts it.

        Whatever it is told is kept, for `told`.
        """
        program = self.folder / f"{name}.py"
        program.write_text(
            "import json, os, sys, time\n"
            "raw = sys.stdin.read()\n"
            "event = json.loads(raw)\n"
            f"open({str(self.folder / name)!r} + '.told', 'a').write(raw)\n" + textwrap.dedent(body)
        )
        return f"python3 -I -S {program}"

    def told(self, name: str) -> list[dict[str, Any]]:
        file = self.folder / f"{name}.told"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def script(self, text: str) -> None:
        self.model = ScriptedProvider(read_script("script.yaml", textwrap.dedent(text)))

    @asynccontextmanager
    async def opened(self, resumption: Resumption | None = None) -> AsyncGenerator[LiveRun]:
        assert self.model is not None
        names = ("act", "read_file", "write_file")
        agents = [
            Definition(name, f"The {name}.", f"You are {name}.", path=f"agents/{name}.md", tools=names, caps=self.caps,
                       permissions=Permissions(), subagents=self.subagents if name == "a" else ())
            for name in ("a", *self.subagents)
        ]  # fmt: skip
        options = RunOptions(
            agent="a", task="the task", workspace=self.folder, limits=self.limits, allow=self.allow, ask=self.ask,
            deny=self.deny, yes=self.yes, headless=self.headless,
        )  # fmt: skip
        ready = staged(
            options,
            agents,
            model="scripted/s",
            providers={"scripted/s": self.model},
            tools=[self.act, *(each for each in built_in() if each.name in names)],
            hooks=self.hooks,
        )
        async with open_run(ready, self.journal, "t1", resumption=resumption) as live:
            live.run.chance = random.Random(0)
            yield live

    async def run(self) -> Report:
        async with self.opened() as live:
            report = await live.report()
        assert report is not None
        return report

    async def resume(self, after: Callable[[Event], bool] | None = None, **changes: str) -> Report:
        """Go on in another process that finds the record up to the first event that `after` is true of."""
        records = self.journal.records
        if after is not None:
            records = records[: next(at for at, record in enumerate(records) if after(record.event)) + 1]
        self.journal = MemoryJournal(records)
        state = replay(self.journal.records)
        async with self.opened(Resumption(state, limits_after(state, changes), changes)) as live:
            report = await live.report()
        assert report is not None
        return report

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.journal.records]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        """The hooks that have run, as moment and outcome."""
        return [(event.event, event.outcome) for event in self.of(HookFinished)]

    @property
    def results(self) -> list[str]:
        return [event.result for event in self.of(ToolFinished)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
