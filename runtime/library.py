"""Elenco inside another program: open a runtime, give it tools, run agents, read their events."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import trio

from .app import LiveRun, Plan, Resumption, RunOptions, open_run, plan
from .continuation import Continuation, continuation_of
from .errors import ElencoError
from .events import Record
from .journal import index
from .journal.blobs import Blobs
from .journal.durable import open_journal
from .journal.elsewhere import in_state
from .journal.folder import RunFolder, State, create_run, find_run, open_state
from .journal.read import load
from .limits.limits import Limits
from .model import Provider
from .models import ModelFlags
from .report import Report
from .resume import check_resumable, limits_after
from .steering import Steering
from .tools import Tool
from .watch.control import serve
from .watch.reader import Reader
from .workplace import check_workspace


class WaitingForHuman(ElencoError):
    """The run waits for decisions and its part in this process has ended; `elenco approve` and `resume` go on."""

    exit_code = 4


@asynccontextmanager
async def open_runtime(
    workspace: str | os.PathLike[str] = ".",
    *,
    tools: Iterable[Tool] = (),
    model: str | None = None,
    providers: Mapping[str, Provider] | None = None,
    state: str | None = None,
) -> AsyncGenerator[Runtime]:
    """A runtime over one workspace. `tools` join the built-in ones; agent files choose among them by name.

    `model` is provider/model for agents whose file names none; `providers` adds some of your own, by the word before
    the slash. `state` is the folder runs are kept in. Raises JournalError where that cannot be used,
    UsageError for a workspace that is no folder.
    """
    await trio.to_thread.run_sync(check_workspace, Path(workspace))
    yield Runtime(Path(workspace), tuple(tools), ModelFlags(model), dict(providers or {}), open_state(state))


class Runtime:
    """Made by `open_runtime`; starts runs, any number of them side by side."""

    def __init__(
        self,
        workspace: Path,
        tools: tuple[Tool, ...],
        model: ModelFlags,
        providers: Mapping[str, Provider],
        state: State,
    ) -> None:
        self._workspace = workspace
        self._tools = tools
        self._model = model
        self._providers = providers
        self._state = state

    @asynccontextmanager
    async def run(
        self,
        agent: str,
        task: str,
        *,
        limits: Limits | None = None,
        allow: Iterable[str] = (),
        yes: bool = False,
        continues: str | None = None,
    ) -> AsyncGenerator[RunHandle]:
        """A run that works while the block lasts; leaving it early cancels the run and all below it.

        `limits` may only be tightened by agent files. `allow` are permission rules, `yes` answers every question with
        yes. `continues` is the id of an earlier run: the agent begins with what that run's first agent has heard and
        said. Raises UsageError, DefinitionError before anything starts, JournalError.
        """
        options = RunOptions(
            agent=agent,
            task=task,
            model=self._model,
            workspace=self._workspace,
            limits=limits or Limits(),
            allow=tuple(allow),
            yes=yes,
            headless=True,
        )
        before = find_run(self._state, continues) if continues is not None else None
        ready = plan(options, self._tools, self._providers)
        folder = create_run(self._state, random.Random())
        earlier = None
        with index.beginning(self._state, folder):
            if before is not None:
                earlier = await trio.to_thread.run_sync(
                    lambda: continuation_of(load(before), before.id, Blobs(before.blobs), Blobs(folder.blobs))
                )
            async with self._opened(ready, folder, continues=earlier) as handle:
                yield handle

    @asynccontextmanager
    async def resume(
        self,
        run: str,
        *,
        changes: Mapping[str, str] | None = None,
        yes: bool = False,
        refresh: bool = False,
        confirm_unknown: bool = False,
        model: str = "",
    ) -> AsyncGenerator[RunHandle]:
        """A run on record that goes on while the block lasts: interrupted, waiting for a human, or stopped.

        `changes` are limits by name, such as `{"max_steps": "+20"}`. `refresh` takes agent files as they are now,
        `confirm_unknown` has a human asked what became of calls that may have taken effect. `model` (provider/model)
        takes the place of the run's own. Raises UsageError, DefinitionError, JournalError: the run is live, or damaged.
        """
        folder = find_run(self._state, run)
        state = await trio.to_thread.run_sync(load, folder)
        check_resumable(state, run)
        assert state.started is not None
        options = RunOptions.recorded(state.started, yes=yes, headless=True, trusted=not state.imported)
        limits = limits_after(state, changes or {})
        options = attrs.evolve(options, limits=limits).on_model(model)
        resumption = Resumption(state, limits, changes or {}, refresh, confirm_unknown, model)
        async with self._opened(plan(options, self._tools, self._providers), folder, resumption) as handle:
            yield handle

    @asynccontextmanager
    async def _opened(
        self,
        ready: Plan,
        folder: RunFolder,
        resumption: Resumption | None = None,
        continues: Continuation | None = None,
    ) -> AsyncGenerator[RunHandle]:
        async with (
            AsyncExitStack() as readers,
            open_journal(folder) as journal,
            open_run(ready, journal, folder.id, folder, resumption, continues) as live,
            serve(live.stream, Steering(live), folder),
        ):
            yield RunHandle(live, readers)


class RunHandle:
    """One run: its events as they come, and its report."""

    def __init__(self, live: LiveRun, readers: AsyncExitStack) -> None:
        self._live = live
        self._readers = readers

    @property
    def id(self) -> str:
        """The short id, as `elenco show` takes it."""
        return self._live.id

    def events(self, from_seq: int = 0, breath: float = 0.0) -> Events:
        """All events from `from_seq` on, kept ones and deltas, until the run has ended.

        They come as they happen, or with `breath` in batches so many seconds apart: 0.01 saves a busy run a few
        percent of its CPU. A question and the end are told at once all the same.
        """
        return Events(self._live, self._readers, from_seq, breath)

    async def report(self) -> Report:
        """How the run ended. Raises WaitingForHuman, ElencoError. A cancelled call leaves the run going."""
        report = await self._live.report()
        if report is None:
            ids = self._live.run.waits_for
            raise WaitingForHuman(
                f"run {self.id} waits for {', '.join(ids)}: elenco approve {self.id} {ids[0]}{in_state()}"
            )
        return report

    def cancel(self) -> None:
        """Cancel the run; its report says so."""
        self._live.cancel("the program")


class Events:
    """An asynchronous iterator over a run's records, in order and without gap."""

    def __init__(self, live: LiveRun, readers: AsyncExitStack, from_seq: int, breath: float) -> None:
        self._live = live
        self._readers = readers
        self._from = from_seq
        self._breath = breath
        self._reader: Reader | None = None

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Record:
        """The next record. A cancelled call loses nothing."""
        if self._reader is None:
            stream = self._live.stream.subscribe(self._from, self._breath)
            self._reader = await self._readers.enter_async_context(stream)
        return await self._reader.__anext__()
