"""What the tool of one call may touch and tell: its actor's workspace, memory, humans and record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .changes import Changes
from .events import ToolOutput, ToolRetried
from .messages import JsonObject, ToolCall
from .questions import ask_human
from .tools import RunHooks, ToolContext

if TYPE_CHECKING:
    from .agent import Agent


def tool_context(agent: Agent, call: ToolCall) -> ToolContext:
    """What one call is given."""
    run, path, id = agent.run, agent.path, call.id
    changes = Changes(run, path, id)
    return ToolContext(
        workspace=run.workspace.keeping(changes.keep),
        call_id=id,
        actor=path,
        output=lambda text: run.stream.publish_live(ToolOutput(actor=path, call_id=id, text=text)),
        changed=changes.changed,
        report=lambda event: run.append(attrs.evolve(event, actor=path)),
        readable=agent.permits.readable,
        memory=agent.memory,
        original=changes.original,
        ask=lambda text, options: ask_human(agent, id, text, options),
        may_fetch=agent.permits.may_fetch,
        may_fetch_private=agent.permits.may_fetch_private,
        reaper=run.reaper,
    )


def run_hooks(agent: Agent) -> RunHooks:
    """What an actor's toolbox tells it of calls under way."""

    def retried(call: ToolCall, attempt: int, wait: float, message: str) -> None:
        agent.run.append(
            ToolRetried(actor=agent.path, call_id=call.id, name=call.name, attempt=attempt, wait=wait, message=message)
        )

    def data(call: ToolCall, data: JsonObject) -> None:
        if agent.work is not None:
            agent.work.data[call.id] = data

    return RunHooks(retried=retried, backoff=_backoff, keep=agent.run.results.keep, data=data)


def _backoff(attempt: int) -> float:
    return 0.5 * 2.0**attempt
