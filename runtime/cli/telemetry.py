"""A run's telemetry: from its stream while this process works on it, or from its journal afterwards."""

from __future__ import annotations

import trio
from trio import TaskStatus

from runtime.app import LiveRun
from runtime.journal.folder import RunFolder
from runtime.journal.read import follow
from runtime.telemetry.exporter import EVERY, exporter
from runtime.telemetry.target import Target
from runtime.watch.reader import BREATH

from .screen import Screen

LAST = 4.0
"""Seconds that a collector has for what is left when a run has ended."""


async def telemetry(
    live: LiveRun,
    target: Target,
    screen: Screen,
    from_seq: int,
    task_status: TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Send spans and metrics of a live run, of what ends from the event `from_seq` on, until its stream ends.

    A collector that does not take them is told of once, at the end.
    """
    async with live.stream.subscribe(1, BREATH) as reader, exporter(live.id, target, from_seq) as sender:
        task_status.started()
        while True:
            batch = None
            with trio.move_on_after(EVERY):
                batch = await reader.batch()
            sender.take(batch or ())
            if batch == []:
                break
            await sender.send_if_due()
        with trio.move_on_after(LAST) as last:
            await sender.send()
        if last.cancelled_caught:
            sender.problem = sender.problem or f"{target.traces} did not answer within {LAST:g} s"
        if sender.undelivered:
            await screen.say([f"! {sender.undelivered}"])


async def export_run(folder: RunFolder, target: Target) -> str:
    """Send what is on record of a run, and what is still to come of it; returns what could not be delivered."""
    async with exporter(folder.id, target) as sender:
        async with follow(folder) as records:
            async for record in records:
                sender.take([record])
                await sender.send_if_due()
        await sender.send()
        return sender.undelivered
