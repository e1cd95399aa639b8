"""A run in this process, from its journal to its exit code: signals, progress, questions, the answer."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from pathlib import Path

import attrs
import trio

from runtime.app import LiveRun, Plan, Resumption, open_run
from runtime.errors import ElencoError
from runtime.journal import index
from runtime.journal.durable import open_journal
from runtime.journal.folder import RunFolder, State, create_run, open_state
from runtime.record import report_to_json
from runtime.report import Report
from runtime.steering import Steering
from runtime.watch.control import serve

from . import closing
from .follow import json_lines, progress
from .prompts import ask_on_terminal

EXIT = {"completed": 0, "failed": 1, "stopped": 3, "cancelled": 130}
WAITING = 4
LAST_WORDS = 5.0
"""Seconds that whoever reads our output has for what is left of it."""


@attrs.frozen
class Shown:
    """What of a run is shown where."""

    json: bool = False
    quiet: bool = False
    output: Path | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Shown:
        return cls(arguments.json, arguments.quiet, Path(arguments.output) if arguments.output else None)


def start(ready: Plan, state_flag: str | None, shown: Shown) -> int:
    """Run a plan to its end. Raises ElencoError where nothing could be started."""
    state = open_state(state_flag)
    if state.note and not shown.quiet:
        print(state.note, file=sys.stderr)
    folder = create_run(state, random.Random())
    return trio.run(stay, ready, state, folder, shown)


async def stay(ready: Plan, state: State, folder: RunFolder, shown: Shown, resumption: Resumption | None = None) -> int:
    """Own a run, new or resumed, until it has ended or waits for nobody; the exit code says which."""
    started = time.time()
    report: Report | None = None
    problem: ElencoError | None = None
    waiting: tuple[str, ...] = ()
    try:
        async with open_journal(folder) as journal:
            await trio.to_thread.run_sync(index.run_started, state, _row(ready, folder, started))
            async with trio.open_nursery() as nursery:
                async with trio.open_nursery() as viewers:
                    async with (
                        open_run(ready, journal, folder.id, folder, resumption) as live,
                        serve(live.stream, Steering(live), folder),
                    ):
                        nursery.start_soon(_on_signals, live)
                        if shown.json:
                            await viewers.start(json_lines, live)
                        elif not shown.quiet:
                            await viewers.start(progress, live)
                        if not ready.options.headless and not shown.json:
                            nursery.start_soon(ask_on_terminal, live)
                        report = await live.report()
                        waiting = tuple(request.id for request in live.approvals.pending)
                    viewers.cancel_scope.deadline = trio.current_time() + LAST_WORDS
                nursery.cancel_scope.cancel()
    except* ElencoError as group:
        problem = _first(group)
    await trio.to_thread.run_sync(_note_end, state, folder, report)
    if problem is not None:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return _close(ready, folder, report, waiting, time.time() - started, shown)


def _close(
    ready: Plan, folder: RunFolder, report: Report | None, waiting: tuple[str, ...], seconds: float, shown: Shown
) -> int:
    if report is None:
        print(closing.waiting_line(folder.id, waiting), file=sys.stderr)
        return WAITING
    if shown.output is not None and report.text:
        shown.output.write_text(report.text + "\n", encoding="utf-8")
    if not shown.json:
        if text := closing.answer(report):
            print(text, flush=True)
        if not shown.quiet:
            print(closing.line(report, folder.id, ready.model, seconds), file=sys.stderr)
    return EXIT[report.status]


async def _on_signals(live: LiveRun) -> None:
    """The first signal cancels the run cleanly, the second ends the process at once."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        count = 0
        async for number in signals:
            count += 1
            if count > 1:
                os._exit(130)
            live.cancel("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)


def _row(ready: Plan, folder: RunFolder, started: float) -> index.RunRow:
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


def _note_end(state: State, folder: RunFolder, report: Report | None) -> None:
    json = report_to_json(report) if report is not None else None
    index.run_ended(state, folder.id, ended=time.time(), report=json)


def _first(group: BaseExceptionGroup[ElencoError]) -> ElencoError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ElencoError)
    return error
