"""A run in this process, from its journal to its exit code: signals, progress, questions, the answer."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from runtime.app import LiveRun, Plan, Resumption, open_run
from runtime.continuation import Continuation
from runtime.errors import ElencoError, JournalError, first_of
from runtime.events import ApprovalRequested, QuestionAsked
from runtime.journal import index
from runtime.journal.durable import open_journal
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State, create_run, open_state
from runtime.journal.interface import Journal
from runtime.journal.read import load
from runtime.known import OFFLINE
from runtime.record import report_to_json
from runtime.report import Report
from runtime.signals import ending_signals
from runtime.steering import Steering
from runtime.telemetry.target import Target, asked_for
from runtime.watch.control import serve

from . import closing, faults
from .advice import who_answers
from .detached import Began
from .earlier import Earlier
from .follow import json_lines, progress
from .prompts import answer_questions
from .screen import Screen, leave, screen_for_stderr
from .streams import silence_stdout, stdout_is_absent
from .version import VERSION
from .watcher import Watcher
from .within import Typing, hear

EXIT = {"completed": 0, "failed": 1, "stopped": 3, "cancelled": 130}
WAITING = 4
LAST_WORDS = 5.0
"""Seconds that whoever reads our output has for what is left of it."""


@attrs.frozen
class Shown:
    """What of a run is shown where; `announced`: which model answers was said already.

    `began` is told of a detached run, once it is on record and can be steered. `asks`: questions are put here as well.
    `otel` is where telemetry goes. `typing`: somebody types in lines, also while the run works.
    """

    json: bool = False
    quiet: bool = False
    output: Path | None = None
    announced: bool = False
    began: Began | None = None
    asks: bool = True
    otel: Target | None = None
    typing: Typing | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace, *, announced: bool = False) -> Shown:
        output = Path(arguments.output) if arguments.output else None
        otel = asked_for(getattr(arguments, "otel", False), VERSION)
        return cls(arguments.json, arguments.quiet, output, announced, otel=otel)

    @property
    def silent(self) -> bool:
        return self.json or self.quiet


@attrs.define(eq=False)
class Outcome:
    """How this process's part of a run ended; no report means that it waits for a human."""

    started: float
    watcher: Watcher
    owned: bool = False
    report: Report | None = None
    problem: ElencoError | None = None
    waiting: tuple[ApprovalRequested | QuestionAsked, ...] = ()


def start(ready: Plan, state_flag: str | None, shown: Shown, earlier: Earlier | None = None) -> int:
    """Run a plan to its end. Raises ElencoError where nothing could be started."""
    state = open_state(state_flag)
    if state.note and not shown.silent:
        print(state.note, file=sys.stderr)
    return begin(ready, state, shown, earlier)[0]


def begin(
    ready: Plan, state: State, shown: Shown, earlier: Earlier | None = None, folder: RunFolder | None = None
) -> tuple[int, RunFolder]:
    """The same in an open state folder, `folder` being a new run's: the exit code and the run. Raises ElencoError."""
    folder = folder or create_run(state, random.Random())
    with index.beginning(state, folder):
        continues = earlier.continuation(folder) if earlier is not None else None
        return trio.run(stay, ready, state, folder, shown, None, continues), folder


async def stay(
    ready: Plan,
    state: State,
    folder: RunFolder,
    shown: Shown,
    resumption: Resumption | None = None,
    continues: Continuation | None = None,
) -> int:
    """Own a run, new or resumed, until it has ended or waits for nobody; the exit code says which."""
    asks = shown.asks and not ready.options.headless and (not shown.json or sys.stderr.isatty())
    screen = screen_for_stderr(tree=not shown.silent and shown.began is None and shown.typing is None)
    outcome = Outcome(time.time(), _watcher(asks, shown, screen))
    if resumption is not None:
        outcome.watcher.state = await trio.to_thread.run_sync(lambda: load(folder, histories=False))
    try:
        async with open_journal(folder) as journal:
            if resumption is not None and journal.last_seq != resumption.state.seq:
                # Read before the lock was ours: what the other process did meanwhile must not be done again.
                raise JournalError(
                    f"run {folder.id} went on in another process meanwhile: elenco show {folder.id}{in_state()}"
                )
            journal.subscribe(outcome.watcher.take)
            outcome.owned = True
            await trio.to_thread.run_sync(index.run_started, state, row_of(ready, folder, outcome.started))
            async with _viewed(ready, folder, journal, shown, screen, outcome, resumption, continues) as live:
                outcome.report = await live.report()
                outcome.waiting = (*live.approvals.pending, *live.questions.pending)
    except* ElencoError as group:
        outcome.problem = first_of(group, ElencoError)
    if outcome.owned:
        await trio.to_thread.run_sync(note_end, state, folder, outcome)
    if outcome.problem is not None and resumption is None:
        await trio.to_thread.run_sync(index.discard_unbegun, state, folder)
    return _close(ready, folder, outcome, shown)


@asynccontextmanager
async def _viewed(
    ready: Plan,
    folder: RunFolder,
    journal: Journal,
    shown: Shown,
    screen: Screen,
    outcome: Outcome,
    resumption: Resumption | None,
    continues: Continuation | None,
) -> AsyncGenerator[LiveRun]:
    """The run with all that goes on around it; whoever shows it may finish after it has ended."""
    watcher = outcome.watcher
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as viewers:
            async with open_run(ready, journal, folder.id, folder, resumption, continues) as live:
                await nursery.start(_on_signals, live, None if shown.silent or shown.typing is not None else screen)
                async with (
                    _announced(ready, folder, journal, shown, screen, resumption),
                    serve(live.stream, Steering(live), folder),
                ):
                    if shown.json:
                        await viewers.start(json_lines, live)
                    if shown.otel is not None:
                        first = resumption.state.seq + 1 if resumption is not None else 1
                        from .telemetry import telemetry

                        await viewers.start(telemetry, live, shown.otel, screen, first)
                    if watcher.detail != "none":
                        await viewers.start(progress, live, watcher, screen)
                    if shown.typing is not None:
                        nursery.start_soon(hear, live, watcher, screen, shown.typing)
                    elif watcher.asks:
                        nursery.start_soon(answer_questions, live, watcher, screen)
                    if shown.began is not None:
                        shown.began(folder.path)
                    yield live
            viewers.cancel_scope.deadline = trio.current_time() + LAST_WORDS
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def _announced(
    ready: Plan, folder: RunFolder, journal: Journal, shown: Shown, screen: Screen, resumption: Resumption | None
) -> AsyncGenerator[None]:
    """The run's id is shown once there is a run: from then on it can be taken up, however this process ends."""
    await journal.barrier()
    if not shown.silent and shown.began is None:
        await screen.say(_head(ready, folder, shown, resumption))
    yield


def _watcher(asks: bool, shown: Shown, screen: Screen) -> Watcher:
    thinking = shown.typing is not None and shown.typing.thinking
    if shown.silent:
        return Watcher("questions" if asks or thinking else "none", asks, thinking)
    return Watcher("alarms" if screen.redraws else "changes", asks, thinking)


def _head(ready: Plan, folder: RunFolder, shown: Shown, resumption: Resumption | None) -> list[str]:
    """What answers, and within which limits."""
    lines: list[str] = []
    if ready.model == OFFLINE and not shown.announced:
        lines.append(who_answers(ready.root.name, ready.model, asked=ready.options.model.model is not None))
    limits = resumption.limits if resumption is not None else ready.limits
    goes_on = " goes on" if resumption is not None else ""
    head = f"run {folder.id}{goes_on}   limits: {limits}"
    return [*lines, f"{head:<55}   Ctrl-C stops cleanly"]


def _close(ready: Plan, folder: RunFolder, outcome: Outcome, shown: Shown) -> int:
    if outcome.problem is not None:
        return faults.show(outcome.problem)
    report = outcome.report
    if report is None:
        print(closing.waiting_line(folder.id, outcome.waiting), file=sys.stderr)
        return WAITING
    as_json = ready.options.output_schema is not None
    text = closing.output(report, indent=_indent()) if as_json else report.text
    written = shown.output is not None and bool(text)
    lost = _write_answer(shown.output, text) if shown.output is not None and written else ""
    if not shown.silent and (above := closing.before_answer(report, outcome.watcher.state)):
        print(above, file=sys.stderr, flush=True)
    text = text if as_json else closing.answer(report)
    if not shown.json and text:
        lost = _print_answer(text, elsewhere=written and not lost) or lost
    if as_json and not text and not shown.silent and (said := closing.answer(report)):
        print(said, file=sys.stderr, flush=True)
    if not shown.silent or report.status == "failed" or (shown.quiet and report.status == "stopped"):
        last = closing.line(
            report,
            folder.id,
            ready.model,
            outcome.watcher.state,
            outcome.watcher.state.seconds,
            outcome.watcher.failure,
        )
        gap = "" if shown.silent or report.status != "completed" else "\n"
        print(f"{gap}{last}", file=sys.stderr)
    if lost:
        print(f"error: {lost}; it is on record: elenco show {folder.id}{in_state()}", file=sys.stderr)
    return EXIT[report.status] or int(bool(lost))


def _indent() -> int | None:
    """JSON for a person has lines, for a program it is one."""
    return 2 if sys.stdout.isatty() else None


def _print_answer(text: str, *, elsewhere: bool) -> str:
    """Why the answer could not be printed, or nothing; without a standard output, `elsewhere` is good enough."""
    if stdout_is_absent():
        return "" if elsewhere else "cannot write the answer: standard output is closed"
    try:
        print(text, flush=True)
    except OSError as error:
        silence_stdout()
        return f"cannot write the answer: {error.strerror}"
    return ""


def _write_answer(path: Path, text: str) -> str:
    """Why the answer could not be written to the file, or nothing."""
    try:
        path.write_text(text + "\n", encoding="utf-8", errors="replace")
    except OSError as error:
        return f"cannot write the answer to {path}: {error.strerror}"
    return ""


async def _on_signals(
    live: LiveRun, screen: Screen | None, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """The first signal cancels the run cleanly, and is told on the `screen`; the second ends the process at once."""
    with trio.open_signal_receiver(*ending_signals()) as signals:
        async with trio.open_nursery() as nursery:
            task_status.started()
            count = 0
            async for number in signals:
                count += 1
                if count > 1:
                    leave(f"run {live.id}   go on: elenco resume {live.id}{in_state()}")
                    os._exit(130)
                live.cancel("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
                if screen is not None:
                    nursery.start_soon(screen.say, [f"stopping run {live.id}; the same again ends it at once"])


def row_of(ready: Plan, folder: RunFolder, started: float) -> index.RunRow:
    limits = ready.limits
    return index.RunRow(
        id=folder.id,
        agent=ready.root.name,
        task=ready.options.task,
        model=ready.model,
        workspace=ready.workspace.root,
        started=started,
        pid=os.getpid(),
        max_steps=limits.max_steps,
    )


def note_end(state: State, folder: RunFolder, outcome: Outcome) -> None:
    """The index tells of the whole tree's steps, as the closing line does."""
    report = outcome.report
    json = {**report_to_json(report), "steps": outcome.watcher.state.steps} if report is not None else None
    index.run_ended(state, folder.id, ended=time.time(), report=json)
