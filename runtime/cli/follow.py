"""Following a live run: as JSON lines on standard output, or as progress on standard error."""

from __future__ import annotations

import sys
from typing import TextIO

import trio
from trio import TaskStatus

from runtime.app import LiveRun
from runtime.events import Record
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.watch.lines import line

from .tree import changed_lines

SILENCE = 1.5
"""Seconds after which a line says that work goes on, so that nobody wonders."""


async def json_lines(live: LiveRun, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Every event as one line on stdout until the stream ends; a reader that has left cancels the run."""
    async with live.stream.subscribe() as reader:
        task_status.started()
        while batch := await reader.batch():
            text = b"".join(line(record, live.id) for record in batch)
            try:
                await trio.to_thread.run_sync(_write, text)
            except BrokenPipeError:
                live.cancel("the reader of its output, who left")
                return


async def progress(live: LiveRun, task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Who works on what, on stderr, until the stream ends."""
    state = RunState(histories=False)
    async with live.stream.subscribe() as reader:
        task_status.started()
        while True:
            batch: list[Record] | None = None
            with trio.move_on_after(SILENCE):
                batch = await reader.batch()
            if batch is None:
                await _say(_still(state), sys.stderr)
                continue
            if not batch:
                return
            said: list[str] = []
            for record in batch:
                if record.event.kept:
                    state = fold(state, record)
                    said += changed_lines(state, record)
            if said:
                await _say("\n".join(said), sys.stderr)


def _still(state: RunState) -> str:
    busy = [actor for actor in state.actors.values() if actor.status == "running" and actor.request is not None]
    if busy:
        names = ", ".join(actor.path.rpartition("/")[2] for actor in busy[:3])
        return f"… {names} waits for the model"
    return "… working"


async def _say(text: str, stream: TextIO) -> None:
    await trio.to_thread.run_sync(lambda: print(text, file=stream, flush=True))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
