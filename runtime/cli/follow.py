"""Following a live run: as JSON lines on standard output, or as progress on standard error."""

from __future__ import annotations

import math
import sys
import time

import trio
from trio import TaskStatus

from runtime.app import LiveRun
from runtime.events import Record
from runtime.journal.state import RunState
from runtime.known import OFFLINE
from runtime.limits.limits import amount_text, count_text
from runtime.watch.lines import line
from runtime.watch.reader import BREATH

from .advice import span
from .screen import Screen
from .streams import silence_stdout
from .tally import used
from .tree import bar, rows
from .watcher import Watcher

SILENCE = 1.0
"""Seconds after which a line says that work goes on, so that nobody wonders."""
REDRAW = 0.1


async def json_lines(live: LiveRun, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Every event as one line on stdout until the stream ends; a reader that has left cancels the run."""
    async with live.stream.subscribe(breath=BREATH) as reader:
        task_status.started()
        while batch := await reader.batch():
            text = b"".join(line(record, live.id) for record in batch)
            try:
                await trio.to_thread.run_sync(_write, text, abandon_on_cancel=True)
            except OSError as error:
                silence_stdout()
                live.cancel(f"the loss of its output ({error.strerror})")
                return


async def progress(
    live: LiveRun, watcher: Watcher, screen: Screen, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Who works on what, on stderr, until the stream ends. While a human is asked, nothing is redrawn.

    Without a tree there is a line for each change, and one a second while nothing changes.
    """
    patience = SILENCE if watcher.detail in ("changes", "alarms") else math.inf
    told = trio.current_time()
    async with live.stream.subscribe(breath=BREATH) as reader:
        task_status.started()
        while True:
            batch: list[Record] | None = None
            with trio.move_on_at(told + patience):
                batch = await reader.batch()
            for record in batch or ():
                watcher.hear(record)
            asking = watcher.asks and bool(watcher.state.pending)
            if asking:
                await screen.clear()
            lines = watcher.flush()
            now = time.time()
            if not lines and not screen.redraws and not asking and batch is None:
                lines = [f"{watcher.still(now)}   {budget(watcher.state, _clock(live, watcher.state, now))}"]
            if lines:
                await screen.say(lines, "> " if asking else "")
            if lines or batch is None:
                told = trio.current_time()
            if batch == []:
                await screen.clear()
                await screen.say(())
                return
            if screen.redraws and not asking:
                clocks = {path: live.run.deadlines.elapsed(path) for path in live.run.live}
                tree = rows(watcher.state, now, watcher.told, watcher.speaking, clocks)
                foot = budget(watcher.state, _clock(live, watcher.state, now), bars=True)
                await screen.draw(tree, f"  {foot}", watcher.said)
            if screen.redraws or not any(record.event.kept for record in batch or ()):
                await trio.sleep(REDRAW)


def _clock(live: LiveRun, state: RunState, now: float) -> float:
    """Seconds that count against the run's time, which stands while a human is waited for."""
    run = live.run
    if (path := next(iter(run.live), None)) is not None:
        return run.deadlines.elapsed(path)
    root = state.actors.get(state.root)
    return state.clock(root, now) if root is not None else 0.0


def budget(state: RunState, seconds: float, *, bars: bool = False) -> str:
    """What the whole run has used of what it may: `13 steps, 18.4k of 200k tokens, 38 s of 10 min`."""
    limits, usage = state.limits, state.usage

    def measured(text: str, used: float, name: str) -> str:
        most = limits.get(name)
        return f"{bar(used / most, 4)} {text}" if bars and most else text

    parts = [measured(used(state.steps, limits.get("total_steps"), "step"), state.steps, "total_steps")]
    offline = all(actor.model == OFFLINE for actor in state.actors.values())
    if usage.total and not offline:
        most = limits.get("token_budget")
        text = f"{count_text(usage.total)}{f' of {count_text(most)}' if most else ''} tokens"
        parts.append(measured(text, usage.total, "token_budget"))
    cost = state.cost_usd
    if cost is None:
        parts.append("cost unknown")
    elif cost:
        most = limits.get("cost_budget")
        parts.append(measured(f"${cost:.3f}{f' of ${most:.2f}' if most is not None else ''}", cost, "cost_budget"))
    most = limits.get("timeout")
    time_used = f"{span(seconds)} of {amount_text('timeout', most)}" if most else span(seconds)
    parts.append(measured(time_used, seconds, "timeout"))
    return ", ".join(parts)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
