"""Going on with a run: what its record says becomes the state of a new process, and nothing is done twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .events import (
    ActorFinished,
    ApprovalRequested,
    BudgetOverrun,
    BudgetSettled,
    Event,
    LimitsChanged,
    Record,
    RunResumed,
    ToolFinished,
)
from .journal.replay import fold
from .journal.state import ActorState, RunState
from .limits.budget import Barred
from .limits.limits import Limits
from .messages import Usage
from .record import report_to_json, usage_to_json
from .report import Report
from .resumable import check_resumable as check_resumable
from .resumable import limits_after as limits_after
from .run import Run
from .switching import switched_by_resume

if TYPE_CHECKING:
    from .models import ModelRef

NOT_TAKEN_UP = "interrupted, and not taken up"


def take_over(
    run: Run, state: RunState, limits: Limits, changes: Mapping[str, str], model: ModelRef | None = None
) -> None:
    """Give a new process's run what the old one knew: spending, numbers, approvals; record that it goes on.

    A reservation nobody settled is charged in full: the provider may have generated all of it. With a `model` the root
    and all whose files name none go on.
    """

    def record(event: Event) -> None:
        run.append(event)
        fold(state, Record(state.seq, state.at, event))

    ended = state.finished.report.get("reason") if state.finished is not None else None
    record(RunResumed(pid=os.getpid(), why=f"stopped: {ended}" if ended else ""))
    if changes:
        record(LimitsChanged(actor=state.root, limits=limits.as_json(), by="resume"))
    for change in switched_by_resume(run, state, model) if model is not None else ():
        record(change)
    for actor in state.actors.values():
        for reservation in list(actor.reservations.values()):
            usage = Usage(reservation.input, reservation.output_cap, estimated=True)
            record(
                BudgetSettled(
                    actor=actor.path,
                    id=reservation.id,
                    usage=usage_to_json(usage),
                    cost_usd=reservation.cost_usd,
                    replied=False,
                )
            )
    run.recovered = state
    run.numbers = max((actor.number for actor in state.actors.values()), default=-1) + 1
    open_calls = {(actor.path, call.call_id) for actor in state.actors.values() for call in actor.open_calls}
    run.approvals.restore(len(state.requests), _still_asked(state), state.decisions)
    questions = [question for question in state.questions.values() if (question.actor, question.within) in open_calls]
    run.questions.restore(len(state.questions), questions, state.answers)
    run.holds.restore(state)
    run.mcps.switched.update(state.switched)
    run.originals.update(state.originals)
    run.told.update(state.told)
    run.results.restore(state.kept)
    for decision in state.decisions.values():
        request = state.requests.get(decision.id)
        if request is not None and decision.decision == "allow":
            _grant(run, decision.scope, request.always)
    for handle, text in state.long_reports.items():
        run.results.keep(handle, text)
    if state.root in state.actors:
        for path in _reopen(run, state, state.actors[state.root], limits):
            for account in run.gate.ledger.accounts(path):
                if account.spent > account.of:  # its report may have been lost with the process
                    by = account.spent - account.of
                    run.append(BudgetOverrun(actor=path, limit=account.name, scope=path, by=by))


def _still_asked(state: RunState) -> Iterator[ApprovalRequested]:
    """The questions about calls that have no result; what became of a call is asked anew each time it was begun."""
    calls = {(actor.path, call.call_id): call for actor in state.actors.values() for call in actor.open_calls}
    for request in state.requests.values():
        call = calls.get((request.actor, request.call_id))
        if request.id in state.void:
            continue
        if call is not None and (request.about != "unclear" or call.unclear == request.id):
            yield request


def _grant(run: Run, scope: str, grants: tuple[str, ...]) -> None:
    """What was allowed for more than once; where nobody ran meanwhile, it is kept for the workspace only now."""
    match scope:
        case "run":
            run.grants.add(grants)
        case "workspace":
            with contextlib.suppress(OSError):
                run.grants.keep(grants)
        case _:
            pass


def _reopen(run: Run, state: RunState, actor: ActorState, limits: Limits) -> list[str]:
    """Give all who were at work their place in the ledger, before anybody spends; returns their paths."""
    ledger = run.gate.ledger
    opened = ledger.open(actor.path, actor.parent, limits)
    if isinstance(opened, Barred):
        return []
    found = [actor.path]
    children = [state.actors[path] for path in actor.children]
    for child in children:
        if child.report is None:
            found += _reopen(run, state, child, Limits.from_json(child.limits))
    ledger.recall(actor.path, actor.usage, actor.cost_usd, own_steps=actor.steps, tool_calls=actor.tool_calls)
    for child in children:
        if child.report is not None:
            for below in state.subtree(child.path):
                ledger.recall(
                    actor.path,
                    below.usage,
                    below.cost_usd,
                    steps=below.steps,
                    tool_calls=below.tool_calls,
                    opened=1,
                )
    return found


def abandon(run: Run, parent: str) -> None:
    """Record the end of those an earlier process left at work below an actor and nobody took up again."""
    state = run.recovered
    if state is None or parent not in state.actors:
        return
    for actor in reversed(state.subtree(parent)[1:]):
        if actor.report is None and actor.path not in run.taken_up:
            spent = Usage() + actor.usage
            report = Report("cancelled", actor.last_text, spent, actor.cost_usd, actor.steps, detail=NOT_TAKEN_UP)
            run.taken_up.add(actor.path)
            for call in actor.open_calls:
                run.approvals.withdraw(actor.path, call.call_id)
                run.questions.withdraw(actor.path, call.call_id)
                run.append(
                    ToolFinished(
                        actor=actor.path,
                        call_id=call.call_id,
                        name=call.name,
                        result="interrupted: the agent was not taken up again",
                        is_error=True,
                        seconds=0.0,
                        kind="unknown" if call.started else "interrupted",
                    )
                )
            run.append(ActorFinished(actor=actor.path, report=report_to_json(report), elapsed=actor.elapsed))
