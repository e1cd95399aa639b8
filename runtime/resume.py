"""Going on with a run: what its record says becomes the state of a new process, and nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .errors import UsageError
from .events import BudgetSettled, LimitsChanged, RunResumed
from .journal.state import ActorState, RunState
from .limits.limits import Limits, changed
from .messages import Usage
from .record import usage_to_json
from .run import Run


def check_resumable(state: RunState, id: str) -> None:
    """Raises UsageError for a run with nothing left to do."""
    if state.started is None:
        raise UsageError(f"run {id} has no beginning on record: start it anew")
    if state.finished is None:
        return
    status = state.finished.report.get("status")
    if status == "completed":
        raise UsageError(f'run {id} is completed; a follow-up is a new run: elenco run --continue {id} "…"')


def limits_after(state: RunState, changes: Mapping[str, str]) -> Limits:
    """The root's limits with the resume's changes. Raises UsageError."""
    return changed(Limits.from_json(state.limits), changes, "resume")


def take_over(run: Run, state: RunState, limits: Limits, changes: Mapping[str, str]) -> None:
    """Give a new process's run what the old one knew: spending, numbers, approvals; record that it goes on."""
    ended = state.finished.report.get("reason") if state.finished is not None else None
    run.append(RunResumed(pid=os.getpid(), why=f"stopped: {ended}" if ended else ""))
    if changes:
        run.append(LimitsChanged(actor=state.root, limits=limits.as_json(), by="resume"))
    run.recovered = state
    run.numbers = max((actor.number for actor in state.actors.values()), default=-1) + 1
    run.approvals.restore(state.requests.values(), state.decisions.values())


def recall_spending(run: Run, state: RunState, actor: ActorState) -> None:
    """Charge an actor that is open again, and those above, what it and its ended children have spent.

    A reservation nobody settled is charged in full: the provider may have generated all of it.
    """
    ledger = run.gate.ledger
    ledger.recall(actor.path, actor.usage, actor.cost_usd, own_steps=actor.steps, tool_calls=actor.tool_calls)
    for reservation in actor.reservations.values():
        usage = Usage(reservation.input, reservation.output_cap, estimated=True)
        ledger.recall(actor.path, usage, reservation.cost_usd)
        run.append(
            BudgetSettled(
                actor=actor.path, id=reservation.id, usage=usage_to_json(usage), cost_usd=reservation.cost_usd
            )
        )
    for path in actor.children:
        if state.actors[path].status == "running":
            continue
        for below in state.subtree(path):
            ledger.recall(
                actor.path,
                below.usage,
                below.cost_usd,
                steps=below.steps,
                tool_calls=below.tool_calls,
                opened=1,
            )
