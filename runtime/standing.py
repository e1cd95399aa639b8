"""Where an actor stands between its steps: what its loop reads, and what control, a stop or the record has set."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from .journal.state import ActorState, PastStep, RunState
from .messages import Message, ToolResults, UserMessage
from .peers import recall_messages
from .record import result_of
from .report import StopReason
from .round import Round
from .skills.hired import recall_skills
from .stop import Stop
from .turn import BYTES_PER_TOKEN
from .words import EMPTY, GO_ON, LAST_TURN

if TYPE_CHECKING:
    from .agent import Agent

RESULT_CAP = 24_000
"""Tokens, estimated, that one round's results may add to the history."""


@attrs.define(eq=False)
class Standing:
    """`too_late` says why a message would no longer be read; `stop` is the end that has been decided.

    `rejected` counts the answers that did not hold and went back.
    """

    begun: bool = False
    ended: bool = False
    said: str = ""
    too_late: str = ""
    cancelled_by: str = ""
    stop: Stop | None = None
    was_empty: bool = False
    rejected: int = 0
    wrapping_up: bool = False
    wrapped_up: bool = False
    orphans: tuple[ActorState, ...] = ()


def restore(agent: Agent, record: RunState, state: ActorState) -> None:
    """Put an actor where an earlier process left it: history, round, steering, children, turn, guard."""
    standing = agent.standing
    standing.begun = True
    standing.orphans = agent.background.recall(record)
    recall_messages(agent, record)
    history, past = list(state.history), list(state.past)
    done = {id: result_of(call.finished) for id, call in state.calls.items() if call.finished is not None}
    seconds = {id: call.finished.seconds for id, call in state.calls.items() if call.finished is not None}
    if not state.judged and isinstance(last := history[-1], ToolResults) and isinstance(step := past[-1], PastStep):
        # The guard had not seen the round yet: it is open again, with nothing left to run.
        del history[-1], past[-1]
        done = {result.call_id: result for result in last.results}
        seconds = {id: call.seconds for id, call in zip(done, step.calls, strict=True)}
    agent.history.restore(history, state.steers.values(), state.measured)
    agent.compactor.restore(state)
    agent.turn = state.turn
    standing.said = state.last_text
    standing.rejected = state.rejected
    agent.memory.restore(state.seen, state.notes)
    agent.trail = state.trail
    recall_skills(agent, state.skills.values())
    agent.result_cap = state.result_cap or RESULT_CAP
    agent.room = agent.result_cap * BYTES_PER_TOKEN
    agent.family.recall(state.children)
    agent.alerts.remember(past)
    agent.user_hooks.restore(state)
    if state.stop is not None:
        standing.stop = Stop(cast("StopReason", state.stop[0]), state.stop[1])
        standing.wrapping_up, standing.wrapped_up = state.wrapping_up, state.wrapped_up
        standing.too_late = "gives its last answer" if state.wrapping_up else ""
    if state.reopened:
        agent.alerts.tell("user_message")
    else:
        notes = [message.text for message in history if isinstance(message, UserMessage) and message.kind == "note"]
        standing.was_empty = EMPTY in notes
    if calls := agent.history.conversation.open_calls:
        agent.work = Round(
            calls,
            agent.result_cap,
            done,
            seconds,
            requested={call.id for call in calls},
            counted={call.call_id for call in state.calls.values() if call.verdict},
            started={call.call_id for call in state.unclear_calls},
            hooked={call.call_id: tuple(call.hooked) for call in state.open_calls},
        )
        for steer in state.steers.values():
            if steer.interrupt:
                agent.work.interrupt(steer.by)
    elif state.reopened and not _asks(agent.history.conversation.messages[-1]):
        agent.history.note(GO_ON, "resume")
    if state.cancel is not None and state.report is None:
        agent.cancel(state.cancel.by or "you")


def _asks(message: Message) -> bool:
    """Whether the model has something new to answer to, other than that its last turn has come."""
    if isinstance(message, UserMessage):
        return not message.text.endswith(LAST_TURN)
    return isinstance(message, ToolResults)
