"""The fold of a run's record into its state: pure, one event at a time, the same for watching and for resuming."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.events import Record, RunResumed

from .actor_steps import ACTOR_STEPS
from .run_steps import RUN_STEPS
from .state import RunState


def replay(records: Iterable[Record], *, histories: bool = True) -> RunState:
    """The state after all the records."""
    state = RunState(histories=histories)
    for record in records:
        state = fold(state, record)
    return state


def fold(state: RunState, record: Record) -> RunState:
    """The state after one more record; the state given is used up. Live-only and unknown events change nothing.

    Its cost does not grow with the run.
    """
    event = record.event
    if event.kept:
        if state.waiting or isinstance(event, RunResumed):
            _clocks_stood(state, record.at - state.at)
        state.seq, state.at = record.seq, record.at
        step = RUN_STEPS.get(type(event))
        if step is not None:
            step(state, event, record)
        elif (inner := ACTOR_STEPS.get(type(event))) is not None:
            actor = state.actors.get(event.actor)
            if actor is not None:
                actor.last_at = record.at
                inner(state, actor, event, record)
    return state


def _clocks_stood(state: RunState, seconds: float) -> None:
    """Nobody worked since the record before: all waited for a human, or there was no process."""
    for actor in state.actors.values():
        if actor.status == "running":
            actor.stood += seconds
