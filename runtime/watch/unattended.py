"""Commands to a run that no process works on: take the lock, record what was said, leave; a resume finds it."""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

from runtime.errors import UsageError
from runtime.events import LimitsChanged, Record
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder
from runtime.journal.overview import overview
from runtime.journal.read import load
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.journal.visit import visit
from runtime.messages import JsonObject

from .client import connect
from .commands import Command, Status
from .exchange import NotRunning
from .recorded import events_for


async def deliver(folder: RunFolder, command: Command, new_id: Callable[[], str]) -> JsonObject:
    """Have a command carried out by the run's process, or recorded for the next one where there is none.

    `new_id` names a message that is recorded. Raises UsageError where the command makes no sense or comes too late,
    NotRunning where only a live run could carry it out, JournalError, ElencoError. A cancelled call may have taken
    effect.
    """
    try:
        async with connect(folder) as client:
            return await client.send(command)
    except NotRunning as absent:
        return await trio.to_thread.run_sync(record_command, folder, command, new_id, absent)


def record_command(
    folder: RunFolder, command: Command, new_id: Callable[[], str], absent: NotRunning | None = None
) -> JsonObject:
    """Record a command in a run that nobody owns, or tell of the run; what the answer to the command tells. Blocks.

    Raises as `deliver` does, `absent` where only a live run could carry the command out.
    """
    if isinstance(command, Status):
        return {"run": folder.id, **overview(load(folder, histories=False)), "turns": {}, "outputs": {}}
    record = append_command(folder, command, new_id)
    if record is None:
        raise absent or NotRunning(f"no process works on run {folder.id}")
    result: JsonObject = {"recorded": record.seq, "seq": record.seq}
    event = record.event
    return {**result, "actor": event.actor, "limits": event.limits} if isinstance(event, LimitsChanged) else result


def append_command(
    folder: RunFolder, command: Command, new_id: Callable[[], str], clock: Callable[[], float] = time.time
) -> Record | None:
    """Record a command in a run that nobody owns, durably, and leave; None where it is nothing to be recorded.

    The first decision on a request wins. Blocks. Raises UsageError when it is too late or makes no sense,
    JournalError when the run is owned or cannot be written.
    """
    with visit(folder, clock=clock) as visitor:
        state = RunState(histories=False)
        for record in visitor.records():
            state = fold(state, record)
        if state.started is None:
            raise UsageError(f"run {folder.id} never began: elenco delete {folder.id}{in_state()}")
        events = events_for(state, command, folder.id, new_id)
        records = [Record(state.seq + number, clock(), event) for number, event in enumerate(events, 1)]
        if not records:
            return None
        visitor.write(records)
        return records[-1]
