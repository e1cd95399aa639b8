"""Delegation: the tool through which a parent's model sends a child its task and reads the child's report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from actors import ActorFailed, ChildSpec, Supervisor
from runtime.handover.attachment import MOST
from runtime.handover.brief import with_brief
from runtime.hooks.hired import hooks_of
from runtime.policy.rules import REACHES
from runtime.report import Assignment, Report

from ._tool import Output, Tool, ToolContext, ToolError

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.definitions import Definition

PREFIX = REACHES
LONGEST = 64
"""Characters a provider takes in a tool's name."""


def tool_name(prefix: str, agent: str) -> str:
    """The tool through which an agent is reached: `prefix` and its name, cut and marked where that is too long."""
    name = f"{prefix}{agent}"
    if len(name) <= LONGEST:
        return name
    from runtime.wire.names import exposed_name

    return exposed_name(prefix.rstrip("_"), agent)


async def _nobody(ctx: ToolContext, task: str, attach: Sequence[str] = ()) -> Output:
    raise ToolError("this tool belongs to no agent")


TASK_TOOL = Tool(
    name="delegate",
    description="A task for an agent.",
    parameters={
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "Everything it must know: it sees nothing of this conversation."},
            "attach": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MOST,
                "description": "What it is shown beside the task: files (src/a.py, or src/a.py:10-40 for lines), "
                "handles of long results. Only what you may read yourself.",
            },
        },
        "required": ["task"],
        "additionalProperties": False,
    },
    run=_nobody,
)
"""What every tool that gives an agent a task is like."""


def delegate_tool(parent: Agent, child: Definition) -> Tool:
    """The tool `delegate_to_<child>` of this very parent; every call works with a new, empty child.

    The same ask to the same child while one is at work joins it: both calls get the one report.
    """

    async def run(ctx: ToolContext, task: str, attach: Sequence[str] = ()) -> Output:
        return await parent.family.ask(child.name, task, ctx.call_id, attach)

    name = tool_name(PREFIX, child.name)
    when = f" {child.when_to_use}" if child.when_to_use else ""
    return Tool(
        name=name,
        description=f"{child.description}{when} Gives back its report. A new call starts with an empty memory.",
        parameters=TASK_TOOL.parameters,
        like=TASK_TOOL,
        run=run,
        effects="idempotent",
        progress=False,
        delegates=True,
        begins_on_record=bool(child.mcps or hooks_of(parent.run, child)),  # else the child's first request sees to that
        subject=parent.family.subject(child.name, name),
    )


async def delegate(parent: Agent, agent: Agent, assignment: Assignment) -> Output:
    """A child's report as the result of the call that sent it; the parent rests meanwhile.

    Raises ToolError. A cancelled call leaves what the child had by then with its parent.
    """
    try:
        with parent.activity.awaiting(agent.path):
            report = await call_child(agent, assignment)
    except ActorFailed as failed:
        raise ToolError(f"{agent.path} crashed: {failed.cause}") from failed
    except trio.Cancelled:
        if parent.work is not None and assignment.call_id is not None:
            parent.work.partial[assignment.call_id] = agent.words
        raise
    return output(agent.path, report)


async def call_child(agent: Agent, assignment: Assignment) -> Report:
    """Run a child in a supervisor block of its own: one cancel ends its whole subtree, its crash is ours to hear.

    Raises ActorFailed. A cancelled call leaves the child's `cancelled` report on record.
    """
    agent.begin(assignment)
    try:
        async with Supervisor() as supervisor:
            ref = await supervisor.start(ChildSpec(agent.path.rpartition("/")[2], lambda: agent))
            return await ref.ask(assignment)
    finally:
        agent.dismiss()


def output(path: str, report: Report) -> Output:
    """A child's report as its parent's model reads it."""
    name = path.rpartition("/")[2]
    match report.status:
        case "completed":
            return Output(with_brief(name, report.text, report))
        case "stopped":
            head = f"{name} was stopped ({report.reason}): {report.detail}"
        case status:
            head = f"{name} {status}: {report.detail}" if report.detail else f"{name} {status}"
    text = f"{head}\n\nIts partial work:\n{report.text}" if report.text else f"{head}. It left no partial work."
    return Output(with_brief(name, text, report), is_error=report.status != "stopped")
