"""Another model within a run: from its next request on an actor asks it; what it has heard and said stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from .errors import UsageError
from .events import Event, ModelChanged, PrefixChanged, Warned
from .known import OFFLINE
from .limits.limits import needs_price

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import RunState
    from .models import ModelRef
    from .run import Run


def switch_model(run: Run, name: str, agent: Agent | None, by: str) -> list[str]:
    """Put on record who goes on with the model; their paths. With no agent: the root, and all whose files name none,
    also those who come later.

    Raises UsageError for a model that cannot be asked, or one whose price a budget needs and nobody knows.
    """
    if not run.live:
        raise UsageError("too late: the run has ended")
    ref = run.models.resolve(name)
    agents = [agent] if agent is not None else [each for each in run.live.values() if _takes_the_runs(each)]
    for each in agents:
        if ref.price is None and needs_price(each.limits):
            raise UsageError(f"cost_budget cannot be kept: no price is known for {ref.full_name}")
        if ref.full_name == OFFLINE and each.answers.sent_form is not None:
            raise UsageError(f"{OFFLINE} quotes files and cannot answer in JSON, as {each.path} has to")
    if agent is None:
        run.append(ModelChanged(model=ref.full_name, before=run.settings.model, by=by))
        run.settings = attrs.evolve(run.settings, model=ref.full_name)
    if doubt := run.models.doubt(ref.full_name):
        run.append(Warned(text=doubt))
    changed: list[str] = []
    for each in agents:
        before = (each.next_model or each.model).full_name
        if before != ref.full_name:
            each.next_model = ref
            for event in _changes(each.path, ref, before, by):
                run.append(event)
            changed.append(each.path)
    return changed


def switched_by_resume(run: Run, state: RunState, ref: ModelRef) -> Iterator[Event]:
    """What puts on record that a run goes on with the model: its root, and all at work whose files name none."""
    assert state.started is not None
    if state.started.model != ref.full_name:
        yield ModelChanged(model=ref.full_name, before=state.started.model, by="resume")
    for actor in state.actors.values():
        member = run.cast.members.get(actor.agent)
        bound = member is not None and member.definition is not None and member.definition.model is not None
        if (actor.path == state.root or (actor.report is None and not bound)) and actor.model != ref.full_name:
            yield from _changes(actor.path, ref, actor.model, "resume")


def _changes(path: str, ref: ModelRef, before: str, by: str) -> Iterator[Event]:
    yield ModelChanged(actor=path, model=ref.full_name, before=before, by=by, window=ref.window)
    why = f"another model, which has cached nothing of this: {ref.full_name}, not {before}"
    yield PrefixChanged(actor=path, why=why)


def take_model(agent: Agent) -> None:
    """To be called between two requests of an actor: what the one before costs is settled by then."""
    if agent.next_model is None:
        return
    agent.model.provider.forget(agent.path)
    agent.model, agent.next_model = agent.next_model, None
    agent.compactor.fit(agent.model.window)
    agent.left_out = 0


def _takes_the_runs(agent: Agent) -> bool:
    return agent.parent is None or agent.definition.model is None
