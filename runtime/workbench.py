"""What the tool of one call may touch and tell: its actor's workspace, memory, humans and record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from .bounds import Bounds
from .changes import Changes
from .events import Event, ToolOutput, ToolRetried
from .messages import JsonObject, ToolCall
from .policy.subjects import Subject
from .providers.redaction import Redactor
from .questions import ask_human
from .tools import RunHooks, ToolContext

if TYPE_CHECKING:
    from .agent import Agent


def tool_context(agent: Agent, call: ToolCall, subject: Subject) -> ToolContext:
    """What one call is given, within the bounds of what was decided."""
    run = agent.run
    changes = Changes(run, agent.path, call.id)
    told = _Told(agent, call.id, run.veil.stream())
    return ToolContext(
        workspace=agent.workspace.keeping(changes.keep).bounded(Bounds(subject, agent.permits)),
        call_id=call.id,
        actor=agent.path,
        output=told.output,
        changed=changes.changed,
        report=told.report,
        readable=agent.permits.readable,
        memory=agent.memory,
        original=changes.original,
        ask=told.ask,
        may_fetch=agent.permits.may_fetch,
        may_fetch_private=agent.permits.may_fetch_private,
        reaper=run.reaper,
        sandbox=agent.permits.boxes(run.sandbox),
        jobs=agent.jobs,
        facts=run.facts,
        results=run.results,
        opens=agent.trail.opens,
    )


def run_hooks(agent: Agent) -> RunHooks:
    """What an actor's toolbox tells it of calls under way."""
    heard, run = _Heard(agent), agent.run
    return RunHooks(retried=heard.retried, backoff=_backoff, keep=run.results.keep, data=heard.data, veil=run.veil.text)


# Objects with methods, not closures: of these there is one for each call and actor, and a closure takes 160 bytes.


@attrs.frozen(eq=False)
class _Told:
    agent: Agent
    call_id: str
    unsaid: Redactor

    def output(self, text: str) -> None:
        text = self.unsaid.feed(text)
        self.agent.run.stream.publish_live(ToolOutput(actor=self.agent.path, call_id=self.call_id, text=text))

    def report(self, event: Event) -> None:
        self.agent.run.append(attrs.evolve(event, actor=self.agent.path))

    async def ask(self, text: str, options: Sequence[str]) -> str:
        return await ask_human(self.agent, self.call_id, text, options)


@attrs.frozen(eq=False)
class _Heard:
    agent: Agent

    def retried(self, call: ToolCall, attempt: int, wait: float, message: str) -> None:
        agent = self.agent
        agent.run.append(
            ToolRetried(actor=agent.path, call_id=call.id, name=call.name, attempt=attempt, wait=wait, message=message)
        )

    def data(self, call: ToolCall, data: JsonObject) -> None:
        if self.agent.work is not None:
            self.agent.work.data[call.id] = data


def _backoff(attempt: int) -> float:
    return 0.5 * 2.0**attempt
