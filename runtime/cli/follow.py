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

from .advice import span
from .screen import Screen
from .streams import silence_stdout
from .tally import used
from .tree import rows
from .watcher import Watcher

SILENCE = 1.5
"""Seconds after which a line says that work goes on, so that nobody wonders."""
REDRAW = 0.1
IDLE_REDRAW = 1.0


async def json_lines(live: LiveRun, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Every event as one line on stdout until the stream ends; a reader that has left cancels the run."""
    async with live.stream.subscribe() as reader:
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
    """Who works on what, on stderr, until the stream ends. While a human is asked, nothing is redrawn."""
    patience = {"changes": SILENCE, "alarms": IDLE_REDRAW}.get(watcher.detail, math.inf)
    async with live.stream.subscribe() as reader:
        task_status.started()
        while True:
            batch: list[Record] | None = None
            with trio.move_on_after(patience):
                batch = await reader.batch()
            for record in batch or ():
                watcher.hear(record)
            asking = watcher.asks and bool(watcher.state.pending)
            if asking:
                await screen.clear()
            lines = watcher.flush()
            if batch is None and not lines and not screen.redraws and not asking:
                lines = [watcher.still(time.time())]
            if lines:
                await screen.say(lines, "> " if asking else "")
            if batch == []:
                await screen.clear()
                await screen.say(())
                return
            if screen.redraws:
                if not asking:
                    now = time.time()
                    tree = rows(watcher.state, now, watcher.told, watcher.speaking)
                    await screen.draw(tree, budget(watcher.state, now))
                await trio.sleep(REDRAW)


def budget(state: RunState, now: float) -> str:
    """What the whole run has used of what it may: `13 steps, 18.4k of 200k tokens, 38 s of 10:00 min`."""
    limits, usage = state.limits, state.usage
    parts = [used(state.steps, limits.get("total_steps"), "step")]
    offline = all(actor.model == OFFLINE for actor in state.actors.values())
    if usage.total and not offline:
        most = limits.get("token_budget")
        parts.append(f"{count_text(usage.total)}{f' of {count_text(most)}' if most else ''} tokens")
    cost = state.cost_usd
    if cost is None:
        parts.append("cost unknown")
    elif cost:
        most = limits.get("cost_budget")
        parts.append(f"${cost:.3f}{f' of ${most:.2f}' if most is not None else ''}")
    seconds = span(max(0.0, now - state.started_at))
    most = limits.get("timeout")
    parts.append(f"{seconds} of {amount_text('timeout', most)}" if most else seconds)
    return f"  {', '.join(parts)}"


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
