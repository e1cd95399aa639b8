"""A play that has everything in it, a world that remembers what was done to it, and processes that die in between."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run
from runtime.definitions import Caps, Definition
from runtime.errors import ElencoError, JournalError, UsageError
from runtime.events import ApprovalRequested, Record, SteerReceived, ToolFinished
from runtime.journal.interface import Journal
from runtime.journal.memory import MemoryJournal
from runtime.journal.replay import replay
from runtime.known import ModelFlags
from runtime.limits.limits import Limits
from runtime.model import Emit, ModelRequest, Reply
from runtime.outline import RunOptions
from runtime.providers.script import Script, read_script
from runtime.providers.scripted import ScriptedProvider
from runtime.report import Report
from runtime.resume import limits_after
from runtime.simulate.stage import staged
from runtime.steering import Steering
from runtime.tools import Tool, ToolContext, tool
from runtime.watch.commands import Say

SCRIPT = """
    lead:
      - text: I look, and ask two people.
        calls:
          - {name: look, arguments: {at: a}}
          - {name: delegate_to_helper, arguments: {task: first}}
          - {name: look, arguments: {at: b}}
          - {name: delegate_to_helper, arguments: {task: second}}
      - calls: [{name: charge, arguments: {what: card}}, {name: start_worker, arguments: {task: build}}]
      - calls: [{name: stamp, arguments: {what: letter}}, {name: put, arguments: {what: sign}}]
      - calls: [{name: await_agent, arguments: {name: worker-1}}]
      - all is done
    helper:
      - calls: [{name: stamp, arguments: {what: form}}]
      - what I have so far
    worker:
      - calls: [{name: put, arguments: {what: brick}}, {name: charge, arguments: {what: cash}}]
      - it is built
"""


@attrs.define(eq=False)
class World:
    """What tools do to the world outlasts any process. `dead` is set while a process dies: then nothing happens."""

    done: list[tuple[str, str, str]] = attrs.Factory(list[tuple[str, str, str]])
    dead: bool = False

    async def act(self, ctx: ToolContext, name: str, what: str) -> str:
        """Take effect somewhere between the start and the end of a call."""
        await trio.lowlevel.checkpoint()
        if not self.dead:
            self.done.append((name, what, ctx.call_id))
        await trio.lowlevel.checkpoint()
        return f"{name} {what}: done"

    def die(self) -> None:
        self.dead = True

    def times(self, call_id: str) -> int:
        return sum(call_id == done for _, _, done in self.done)


class Heard(ScriptedProvider):
    """The script, with somebody who listens to what is asked."""

    def __init__(self, script: Script, listen: Callable[[ModelRequest], None]) -> None:
        super().__init__(script)
        self._listen = listen

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        self._listen(request)
        return await super().complete(request, emit)


@functools.cache
def script_of(text: str) -> Script:
    return read_script("s.yaml", textwrap.dedent(text))


@attrs.define(eq=False)
class Play:
    """The play: `begin` and `go_on` run it to its end, or to the death of its process."""

    folder: Path
    world: World = attrs.Factory(World)
    script: str = SCRIPT
    confirm_unknown: bool = False
    refresh: bool = False
    limits: Limits = Limits()
    window: int | None = None
    voice: str = ""
    why: str = ""
    line: str = "be quick"
    listen: Callable[[ModelRequest], None] = lambda request: None
    answer: str = "allow"
    tools: dict[str, Tool] = attrs.Factory(dict[str, Tool])

    def __attrs_post_init__(self) -> None:
        world = self.world

        @tool(effects="none", private=True)
        async def look(at: str) -> str:
            """Look."""
            await trio.lowlevel.checkpoint()
            return f"saw {at}"

        @tool(effects="once")
        async def charge(ctx: ToolContext, what: str) -> str:
            """Charge something; a human is asked before."""
            return await world.act(ctx, "charge", what)

        @tool(effects="once")
        async def stamp(ctx: ToolContext, what: str) -> str:
            """Stamp something, once."""
            return await world.act(ctx, "stamp", what)

        @tool(effects="idempotent")
        async def put(ctx: ToolContext, what: str) -> str:
            """Put something in its place; twice is as good as once."""
            return await world.act(ctx, "put", what)

        self.tools |= {each.name: each for each in (look, charge, stamp, put)}

    @property
    def cast(self) -> list[Definition]:
        def agent(name: str, tools: Sequence[str], subagents: Sequence[str] = (), **caps: int) -> Definition:
            text = self.voice or f"You are {name}."
            return Definition(
                name, f"The {name}.", text, tools=tuple(tools), subagents=tuple(subagents), caps=Caps(**caps)
            )

        return [
            agent("lead", ("look", "charge", "stamp", "put"), ("helper", "worker")),
            agent("helper", ("stamp",), max_steps=2),
            agent("worker", ("put", "charge")),
        ]

    @asynccontextmanager
    async def opened(self, journal: Journal, resumption: Resumption | None = None) -> AsyncGenerator[LiveRun]:
        options = RunOptions(
            agent="lead",
            task="do it",
            workspace=self.folder,
            allow=("stamp", "put"),
            model=ModelFlags("scripted/s"),
            limits=self.limits,
        )
        provider = Heard(script_of(self.script), self.listen)
        plan = staged(
            options,
            self.cast,
            model="scripted/s",
            providers={"scripted/s": provider},
            tools=self.tools.values(),
            window=self.window,
        )
        async with open_run(plan, journal, "t1", resumption=resumption) as live:
            yield live

    async def begin(self, journal: Journal) -> Report | None:
        """Play from the beginning; None when the process died."""
        return await self._play(journal, None)

    async def go_on(self, journal: MemoryJournal, **changes: str) -> Report | None:
        """Play on from what is on record."""
        state = replay(journal.records)
        limits = limits_after(state, changes)
        return await self._play(journal, Resumption(state, limits, changes, self.refresh, self.confirm_unknown))

    async def _play(self, journal: Journal, resumption: Resumption | None) -> Report | None:
        self.world.dead = False
        report = None
        try:
            async with self.opened(journal, resumption) as live, trio.open_nursery() as nursery:
                nursery.start_soon(self._audience, live)
                report = await live.report()
                nursery.cancel_scope.cancel()
        except* ElencoError:
            report = None
        return report

    async def _audience(self, live: LiveRun) -> None:
        """Somebody decides what is asked, and says something as soon as the first result is in; each only once."""
        spoken = not self.line or any(
            isinstance(record.event, SteerReceived) for record in await live.run.journal.read(1, 1000)
        )
        async with live.stream.subscribe(1) as reader:
            async for record in reader:
                match record.event:
                    case ApprovalRequested() as request if request in live.approvals.pending:
                        with suppress(UsageError, JournalError):
                            await live.approvals.decide(request.id, self.answer, "ada", why=self.why)
                    case ToolFinished(actor="lead") if not spoken:
                        spoken = True
                        with suppress(UsageError, JournalError):
                            await Steering(live).run(Say(text=self.line, by="ada"))
                    case _:
                        pass


@pytest.fixture
def play(tmp_path: Path) -> Play:
    return Play(tmp_path)


@pytest.fixture
def dying() -> Callable[..., MemoryJournal]:
    """A journal whose process dies at an append, or at a barrier: from then on nothing is written, or happens."""

    def make(
        world: World, append: int | None = None, barrier: int | None = None, found: Iterable[Record] = ()
    ) -> MemoryJournal:
        journal = MemoryJournal(found, fail_append=append, fail_barrier=barrier)
        journal.when_failed(lambda _: world.die())
        return journal

    return make
