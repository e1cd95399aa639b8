"""Earlier conversations in a workspace: chains of runs, each named by its newest. It blocks."""

from __future__ import annotations

import contextlib
from pathlib import Path

import attrs

from runtime.cli.advice import ago
from runtime.cli.visible import one_line
from runtime.errors import JournalError
from runtime.events import RunStarted
from runtime.journal.folder import State
from runtime.journal.read import RunReader, runs

LOOKED_AT = 200


@attrs.frozen
class Conversation:
    """`run` is its newest run, `task` what it began with, `at` when that run began."""

    run: str
    name: str
    status: str
    task: str
    at: float
    turns: int


def conversations(state: State, workspace: Path) -> list[Conversation]:
    """Those of a workspace, newest first; one that branched is one for each end. Raises JournalError for the index."""
    here = str(workspace.resolve())
    found = [info for info in runs(state) if info.row.workspace == here and info.status not in ("newer", "damaged")][
        :LOOKED_AT
    ]
    before = {info.row.id: _continued(state, info.row.id) for info in found}
    inner = set(before.values())
    first = {info.row.id: info.row.task for info in found}
    ends: list[Conversation] = []
    for info in found:
        if info.row.id in inner:
            continue
        run, turns = info.row.id, 1
        while (earlier := before.get(run)) is not None and turns < LOOKED_AT:
            run, turns = earlier, turns + 1
        task = first.get(run, "")
        ends.append(Conversation(info.row.id, info.row.name, info.status, task, info.row.started, turns))
    return ends


def chain(state: State, run: str) -> list[str]:
    """The runs a conversation is made of, oldest first. Raises JournalError."""
    found: list[str] = []
    at: str | None = run
    while at is not None and at not in found and state.run(at).journal.exists():
        found.append(at)
        at = _continued(state, at)
    return found[::-1]


def session_line(each: Conversation, now: float, *, current: bool) -> str:
    """A conversation on one line; the one under way is marked."""
    name = f"{each.name}  " if each.name else ""
    mark, turns = "●" if current else " ", f"{each.turns} turn{'' if each.turns == 1 else 's'}"
    return f"{mark} {each.run}  {name}{ago(each.at, now)}  {each.status}  {turns}  {one_line(each.task, 70)}"


def _continued(state: State, run: str) -> str | None:
    with contextlib.suppress(JournalError), RunReader(state.run(run)) as reader:
        first = reader.page(1, 1)
        if first and isinstance(first[0].event, RunStarted):
            return first[0].event.continues
    return None
