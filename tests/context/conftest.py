"""A stage with a small window: one agent, a model that is a function of its request, and what is left of the run."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption, open_run
from runtime.continuation import Continuation
from runtime.definitions import Caps, Definition
from runtime.events import ContextCompacted, Event
from runtime.hooks.settings import Hook
from runtime.journal import MemoryJournal
from runtime.journal.replay import replay
from runtime.journal.state import RunState
from runtime.limits.limits import Limits
from runtime.limits.price import Price
from runtime.messages import AssistantMessage, Message, Text, ToolCall, ToolResults, Usage, UserMessage, size_of
from runtime.model import Emit, ModelRequest, Reply
from runtime.outline import RunOptions
from runtime.record import messages_from_json
from runtime.report import Report
from runtime.resume import limits_after
from runtime.simulate.stage import staged
from runtime.skills.places import find_skills
from runtime.tools import Tool, tool

Answers: TypeAlias = Callable[[ModelRequest], "str | tuple[ToolCall, ...] | Exception"]


def request_size(request: ModelRequest) -> int:
    """Tokens at four bytes each: half of what the runtime guesses, as with real models."""
    tools = sum(each.size for each in request.tools)
    return (sum(map(len, request.system)) + tools + sum(map(size_of, request.messages))) // 4


@attrs.define(eq=False)
class Model:
    """A provider that answers as `answers` says: with words, with calls, or by raising. It keeps all requests."""

    answers: Answers
    counts: bool = False
    reports: bool = True
    requests: list[ModelRequest] = attrs.Factory(list[ModelRequest])
    name: str = "lab"

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        self.requests.append(request)
        await trio.lowlevel.checkpoint()
        said = self.answers(request)
        if isinstance(said, Exception):
            raise said
        parts = (Text(said[: request.max_output_tokens * 4]),) if isinstance(said, str) else said
        usage = Usage(request_size(request), max(1, size_of(AssistantMessage(parts)) // 4))
        finish = "stop" if isinstance(said, str) else "tool_calls"
        return Reply(parts, finish, usage if self.reports else None, None, "lab")  # type: ignore[arg-type]

    def count(self, request: ModelRequest) -> int | None:
        return request_size(request) if self.counts else None

    def forget(self, actor: str) -> None:
        del actor

    def tokens(self, request: ModelRequest) -> int:
        return request_size(request)

    @property
    def turns(self) -> list[ModelRequest]:
        return [request for request in self.requests if request.agent != "summary"]

    @property
    def summaries(self) -> list[ModelRequest]:
        return [request for request in self.requests if request.agent == "summary"]


@attrs.define(eq=False)
class Small:
    """What plays; `window` in tokens."""

    folder: Path
    model: Model = attrs.Factory(lambda: Model(lambda request: "done"))
    window: int | None = 8000
    tools: dict[str, Tool] = attrs.Factory(dict[str, Tool])
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    limits: Limits = Limits()
    price: Price | None = None
    agent_loops: Any = "off"
    task: str = "the first task"
    hooks: list[Hook] = attrs.Factory(list[Hook])
    continues: Continuation | None = None
    compacts: bool = False
    aides: tuple[str, ...] = ()
    others: dict[str, Model] = attrs.Factory(dict[str, Model])
    summary_model: str | None = None
    caps: Caps = Caps(max_steps=2000)

    def tool(self, **settings: Any) -> Callable[[Callable[..., Any]], Tool]:
        def make(function: Callable[..., Any]) -> Tool:
            made = self.tools[function.__name__] = tool(**settings)(function)
            return made

        return make

    @asynccontextmanager
    async def opened(self, resumption: Resumption | None = None) -> AsyncGenerator[LiveRun]:
        solo = Definition(
            "solo",
            "Works alone.",
            "You work alone.",
            path="agents/solo.md",
            tools=tuple(self.tools),
            caps=self.caps,
            subagents=self.aides,
            skills="all" if (self.folder / "skills").is_dir() else (),
            loops=self.agent_loops,
        )
        options = RunOptions(
            agent="solo",
            task=self.task,
            workspace=self.folder,
            compacts=self.compacts,
            limits=self.limits.or_else(Limits(max_steps=2000, total_steps=5000, token_budget=100_000_000)),
        )
        aides = [Definition(name, "Helps.", "You help.", path=f"agents/{name}.md") for name in self.aides]
        ready = staged(
            options,
            [solo, *aides],
            model="lab/m",
            providers={"lab": self.model, **self.others},
            price=self.price,
            window=self.window,
            tools=self.tools.values(),
            hooks=self.hooks,
        )
        ready = attrs.evolve(ready, shelf=find_skills(self.folder), summary_model=self.summary_model)
        follows = self.continues if resumption is None else None
        async with open_run(ready, self.journal, "t1", resumption=resumption, continues=follows) as live:
            live.run.chance = random.Random(0)
            yield live

    async def run(self) -> Report:
        async with self.opened() as live:
            report = await live.report()
        assert report is not None
        return report

    async def resume(self, **changes: str) -> Report:
        state = replay(self.journal.records)
        async with self.opened(Resumption(state, limits_after(state, changes), changes)) as live:
            report = await live.report()
        assert report is not None
        return report

    @property
    def state(self) -> RunState:
        return replay(self.journal.records)

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.journal.records]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def compactions(self) -> list[ContextCompacted]:
        return [event for event in self.of(ContextCompacted) if event.number]

    def histories(self) -> list[tuple[ContextCompacted, tuple[Message, ...]]]:
        """Each compaction with the history it left."""
        return [(event, messages_from_json(event.history or ())) for event in self.compactions]


@pytest.fixture
def make_small(tmp_path: Path) -> Callable[[], Small]:
    """A fresh stage each time, for tests that play many runs."""
    return lambda: Small(tmp_path)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.fixture(name="Model")
def model_fixture() -> type[Model]:
    return Model


@pytest.fixture
def call() -> Callable[..., tuple[ToolCall, ...]]:
    """`call("name", key=value)` is a reply that calls one tool."""

    def make(name: str, /, **arguments: Any) -> tuple[ToolCall, ...]:
        return (ToolCall("", name, arguments),)

    return make


def texts(messages: Iterable[Any]) -> list[str]:
    found: list[str] = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                found.append(text)
            case ToolResults(results=results):
                found += [result.content for result in results]
            case _:
                found.append(message.text)
    return found


@pytest.fixture
def said() -> Callable[[Iterable[Any]], str]:
    """All texts of a history in one."""
    return lambda messages: "\n".join(texts(messages))
