"""The one module that wires everything: options and files become a live run, a live run becomes a report."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

import attrs
import trio

from actors import ActorFailed, ChildSpec, Supervisor

from .agent import Agent
from .cast import Cast
from .closed import closed_in
from .config import Humans
from .continuation import Continuation
from .deadlines import Deadlines
from .definitions import Definition
from .definitions import Permissions as Written
from .errors import ElencoError, JournalError, UsageError, first_of
from .events import CancelRequested, RunFinished, RunStarted, Warned
from .gate import Gate
from .grants import Grants
from .hiring import hire, limits_from, limits_of, own_tools, reserved_names
from .hooks.settings import Hook
from .journal.elsewhere import in_state
from .journal.folder import RunFolder
from .journal.interface import Journal
from .journal.nursery import serving
from .journal.state import RunState
from .journal.veiled import VeiledJournal
from .limits.ledger import Ledger
from .limits.limits import ROOT_DEFAULTS, Limits, tightest
from .mcps.entry import Entry
from .mcps.fleet import Fleet
from .mcps.session import Surroundings
from .messages import Usage
from .model import Provider
from .models import Models
from .outline import Outline, outline, refuse_faulty
from .outline import RunOptions as RunOptions
from .plugins import plugins
from .policy.decision import Ceiling
from .policy.paths import PathError, Workspace
from .policy.rules import Permissions
from .prices import models_from
from .record import report_from_json, report_to_json
from .report import Assignment, Report
from .resume import take_over
from .run import Run, RunSettings
from .sandbox.box import Sandbox
from .sandbox.places import own_folders
from .sandbox.walls import Walls
from .secrecy import Veil
from .skills.places import Shelf
from .tools import Tool, answered_for
from .tools.registry import built_in
from .watch.stream import LogStream

LAST_COMMIT = 10.0
"""Seconds a disk has for the record of a run's end."""


@attrs.frozen
class Plan:
    """A run that could start: everything a person can have got wrong has been looked at.

    `doubts` are lines about what may be wrong and is no reason not to start.
    """

    options: RunOptions
    cast: Cast
    root: Definition
    limits: Limits
    model: str
    models: Models
    rules: Permissions
    tools: Mapping[str, Tool]
    workspace: Workspace
    humans: Humans = Humans()
    summary_model: str | None = None
    walls: Walls = Walls()
    shelf: Shelf = Shelf()
    trusted: bool = False
    notice: str = ""
    hooks: tuple[Hook, ...] = ()
    left_out: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    servers: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])


def plan(
    options: RunOptions,
    tools: Iterable[Tool] = (),
    providers: Mapping[str, Provider] | None = None,
    seen: Outline | None = None,
) -> Plan:
    """Look at files, flags and keys; nothing is started and nothing written. Raises UsageError, DefinitionError.

    `seen` is the first look at the same options, where the caller has had one.
    """
    added = plugins()
    given = {**added.providers, **(providers or {})}
    seen = seen or outline(options, given)
    seen.refuse_unpriced()
    here, own = seen.here, seen.user
    models = Models(
        options.model,
        {**own.providers, **here.providers},
        {**models_from(own.models, own.path), **models_from(here.models, here.path)},
        given=given,
        addresses=[search.base_url for search in (here.search, own.search) if search is not None],
    )
    options = attrs.evolve(options, task=Veil(models.secrets).text(options.task))
    limits = tightest(
        options.limits,
        limits_of(seen.root),
        limits_from(here.limits, here.path or "elenco.yaml"),
        limits_from(own.limits, own.path),
    ).or_else(ROOT_DEFAULTS)
    known = {
        tool.name: tool for tool in (*built_in(here.search or own.search), *map(answered_for, (*added.tools, *tools)))
    }
    doubts: dict[str, None] = {}
    for member in seen.members:
        if not set(member.tools) <= set(known) or member.permissions != Written() or member.hooks:
            refuse_faulty(seen.cast, member, tools=known, servers=seen.servers, strict=True)
        own_tools(known, member)
        ref = models.resolve(member.model or seen.model)
        doubts[models.doubt(ref.full_name)] = None
    try:
        workspace = Workspace(options.workspace)
    except PathError as error:
        raise UsageError(str(error)) from error
    humans = Humans(
        own.approvals.timeout if here.approvals.timeout is None else here.approvals.timeout,
        own.approvals.answer if here.approvals.answer is None else here.approvals.answer,
    )
    return Plan(
        options,
        seen.cast,
        seen.root,
        limits,
        seen.model,
        models,
        seen.rules,
        known,
        workspace,
        humans,
        walls=seen.walls,
        shelf=seen.shelf or Shelf(),
        trusted=not seen.notice,
        notice=seen.notice,
        hooks=(*own.hooks, *added.hooks, *here.hooks),
        left_out=tuple(map(str, added.broken)),
        doubts=tuple(filter(None, doubts)),
        servers={
            name: entry for name, entry in seen.servers.items() if any(name in member.mcps for member in seen.members)
        },
        summary_model=_summary_model(seen, models),
    )


def _summary_model(seen: Outline, models: Models) -> str | None:
    """The model the settings name for summaries. Raises UsageError for one nobody can ask."""
    name = seen.here.context.summary_model or seen.user.context.summary_model
    if name is not None:
        models.resolve(name)
    return name


class LiveRun:
    """A run that is under way in this process, or has just ended."""

    def __init__(self, run: Run, folder: RunFolder | None) -> None:
        self.run = run
        self.id = run.id
        self.folder = folder
        self.stream = run.stream
        self.approvals = run.approvals
        self.questions = run.questions
        self._done = trio.Event()
        self._report: Report | None = None
        self._error: ElencoError | None = None
        self._root: Agent | None = None
        self._cancelled_by = ""
        self._starting = trio.CancelScope()

    @property
    def begun(self) -> bool:
        """Whether there is a root, at work or ended."""
        return self._root is not None or self._done.is_set()

    async def report(self) -> Report | None:
        """The root's report, None if the run was suspended to wait for a human. Raises ElencoError if it broke.

        A cancelled call leaves the run going.
        """
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._report

    def cancel(self, by: str = "you") -> None:
        """Cancel the whole run; it ends with a report that says so. Nothing happens to a run that has ended."""
        if self._root is None:
            self._cancelled_by = by
            self._starting.cancel()
        elif self._root.path in self.run.live:
            self.run.append(CancelRequested(actor=self._root.path, by=by))
            self._root.cancel(by)

    async def work(self, root: str, task: str, limits: Limits, report: Report | None = None) -> None:
        """Run the root to its end, unless its `report` is there already, and record how it ended."""
        run = self.run
        try:
            try:
                with run.scope:
                    self._report = report or await self._work(root, task, limits)
                if run.failure is not None:
                    raise run.failure
                run.mcps.stop()
                if self._report is not None:
                    run.append(RunFinished(report=report_to_json(self._report)))
            except ActorFailed as failed:
                self._error = first_of(failed.cause, ElencoError) or self._broken(failed.cause)
            with trio.move_on_after(LAST_COMMIT) as bound:
                await run.journal.barrier()
            if bound.cancelled_caught:
                raise JournalError(f"the end of the run could not be written within {LAST_COMMIT:g} s")
        except ElencoError as error:
            self._error = self._error or error
        finally:
            # Whoever reads the stream gets what is left, then its end, while the run's owner still holds the block.
            self.stream.close()
            self._done.set()

    async def _work(self, root: str, task: str, limits: Limits) -> Report:
        run = self.run
        with self._starting:
            await run.mcps.ready(run.cast.get(root).mcps)
        agent = self._root = hire(run, root, None, None, limits)
        assignment = Assignment(task)
        agent.begin(assignment)
        if run.recovered is not None and run.recovered.cancel is not None:
            agent.cancel(run.recovered.cancel.by or "you")
        if self._cancelled_by:
            self.cancel(self._cancelled_by)
        async with Supervisor() as supervisor:
            ref = await supervisor.start(ChildSpec(root, lambda: agent))
            return await ref.ask(assignment)

    def _broken(self, cause: BaseException) -> ElencoError:
        """A fault of ours: one line for the person, the traceback for the record."""
        text = f"{type(cause).__name__}: {cause}"
        self.run.append(Warned(text="".join(traceback.format_exception(cause))))
        report = self._root.report if self._root is not None else None
        report = report or Report("failed", "", Usage(), None, 0, detail=text)
        self.run.append(RunFinished(report=report_to_json(report)))
        return ElencoError(
            f"a fault of Elenco's own ended the run: {text}  (elenco show {self.id}{in_state()} has the traceback)"
        )


@attrs.frozen
class Resumption:
    """A run on record that goes on: its state, the limits it goes on under, and the model where that is another."""

    state: RunState
    limits: Limits
    changes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    refresh: bool = False
    confirm_unknown: bool = False
    model: str = ""

    @property
    def report(self) -> Report | None:
        """That of a root which had ended before the run could record it, if nobody wants more of it now."""
        root = self.state.actors.get(self.state.root)
        if root is None or root.report is None or self.state.finished is not None or self.changes or self.model:
            return None
        return report_from_json(root.report)


@asynccontextmanager
async def open_run(
    ready: Plan,
    journal: Journal,
    id: str,
    folder: RunFolder | None = None,
    resumption: Resumption | None = None,
    continues: Continuation | None = None,
) -> AsyncGenerator[LiveRun]:
    """A run that works in the background of the block; leaving the block early cancels it.

    Raises JournalError, also for a resumption of what is no longer the newest. However the block is left, no task,
    connection or descriptor stays behind.
    """
    if resumption is not None and journal.last_seq != resumption.state.seq:
        ready.workspace.close()
        raise JournalError(f"run {id} has gone on in another process meanwhile: try again")
    veil = Veil(ready.models.secrets)
    if veil:
        journal = VeiledJournal(journal, veil)
    stream = LogStream(journal, clock=time.time)
    options = ready.options
    state = folder.path.parent.parent if folder is not None else None
    root = ready.workspace.root
    closed = closed_in(root, state)
    walls = ready.walls
    ceiling = Ceiling(
        options.mode, ready.rules.ask, ready.rules.deny, walls.level, walls.network, root=root, closed=closed
    )
    run = Run(
        id=id,
        journal=journal,
        stream=stream,
        gate=Gate(Ledger()),
        deadlines=Deadlines(),
        models=ready.models,
        cast=ready.cast,
        workspace=ready.workspace,
        tools=ready.tools,
        settings=RunSettings(
            ready.model,
            ceiling,
            ready.rules,
            options.yes,
            options.headless,
            time.strftime("%Y-%m-%d"),
            ready.humans,
            refresh=resumption is not None and resumption.refresh,
            confirm_unknown=resumption is not None and resumption.confirm_unknown,
            summary_model=ready.summary_model,
            compacts=options.compacts,
            output_schema=options.output_schema,
            hooks=ready.hooks,
        ),
        grants=await trio.to_thread.run_sync(Grants.of_workspace, state, ready.workspace.root) if state else Grants(),
        chance=random.Random(),
        veil=veil,
        shelf=ready.shelf,
        trusted=ready.trusted,
        state=state,
    )
    scratch = folder.path / "tmp" if folder is not None else None
    run.sandbox = Sandbox(run.reaper, root, walls, own_folders(state), scratch)
    if ready.servers:
        around = Surroundings(run.reaper, run.workspace.root, state)
        run.mcps = Fleet(ready.servers, around, run.append, run.chance.random, reserved_names(run), run.peer)
    limits = ready.limits
    report = resumption.report if resumption is not None else None
    if resumption is None:
        run.append(
            RunStarted(
                task=options.task,
                agent=ready.root.name,
                model=ready.model,
                limits=limits.as_json(),
                workspace=ready.workspace.root,
                options=options.as_json(),
                continues=continues.run if continues is not None else None,
            )
        )
        if continues is not None:
            run.follow(continues)
    else:
        limits = resumption.limits
        model = ready.models.resolve(resumption.model) if resumption.model else None
        take_over(run, resumption.state, limits, resumption.changes, model)
    if walls.ignored and resumption is None:
        text = (
            f"elenco.yaml, sandbox: {', '.join(walls.ignored)} lowers walls, which only flags and your own settings do"
        )
        run.append(Warned(text=text))
    for text in (*([ready.notice] if ready.notice else []), *ready.left_out, *ready.doubts):
        run.append(Warned(text=text))
    live = LiveRun(run, folder)
    journal.when_failed(run.fail)
    try:
        async with run.mcps.open(), serving() as nursery:
            nursery.start_soon(run.deadlines.watch)
            task = "" if options.compacts else options.task
            nursery.start_soon(live.work, ready.root.name, task, limits, report)
            yield live
            await live.report()
    finally:
        stream.close()
        await run.reaper.aclose()
        await run.sandbox.aclose()
        await ready.models.aclose()
        ready.workspace.close()
