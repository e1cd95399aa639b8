"""How an actor comes to be: its file, the run's ceiling and what is left of the budget make an Agent."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from .agent import Agent
from .context.prompt import listing, render, system_parts
from .definitions import Caps, Definition
from .errors import DefinitionError, Fault, did_you_mean
from .limits.budget import Barred
from .limits.limits import CHILD_DEFAULTS, Limits
from .limits.loops import Guard, guard_settings
from .models import ModelRef
from .policy.rules import Policy, Rules
from .run import Run
from .tools import Tool, ToolBox
from .tools.delegate import delegate_tool


@attrs.frozen
class NotHired(Exception):
    """There is no place for one more actor; the message is for the parent's model."""

    message: str

    def __str__(self) -> str:
        return self.message


def hire(run: Run, name: str, parent: Agent | None, call_id: str | None, limits: Limits | None = None) -> Agent:
    """An Agent with its place in the ledger and its clock running.

    `limits` are the root's own, composed already. Raises NotHired where depth or width forbid it, DefinitionError for
    a faulty file, UsageError for an unknown agent or model.
    """
    definition = run.cast.get(name)
    recovered = run.recovered.child_of(parent.path if parent else None, call_id) if run.recovered else None
    path = recovered.path if recovered else _path(definition, parent)
    bounds = limits or limits_of(definition).or_else(CHILD_DEFAULTS)
    opened = run.gate.ledger.open(path, parent.path if parent else None, bounds)
    if isinstance(opened, Barred):
        raise NotHired(opened.message)
    model = run.models.resolve(definition.model or run.settings.model)
    number = recovered.number if recovered else run.numbers
    run.numbers = max(run.numbers, number + 1)
    agent = Agent(
        run,
        definition,
        path=path,
        number=number,
        parent=parent,
        model=model,
        policy=_policy(run, definition, parent),
        guard=guard_of(definition),
        limits=bounds,
    )
    agent.equip(ToolBox([*own_tools(run.tools, definition), *_delegates(run, agent)]))
    run.deadlines.start(path, parent.path if parent else None, bounds.timeout)
    agent.system = recovered.prompt if recovered else _system(run, agent, model)
    if recovered is not None:
        agent.restore(recovered)
    return agent


def own_tools(known: dict[str, Tool], definition: Definition) -> list[Tool]:
    """The tools an agent file names, in its order. Raises DefinitionError for one nobody knows."""
    missing = [name for name in definition.tools if name not in known]
    if missing:
        raise DefinitionError(
            Fault(definition.path, 1, f"unknown tool '{name}'{did_you_mean(name, known)}") for name in missing
        )
    return [known[name] for name in dict.fromkeys(definition.tools)]


def limits_of(definition: Definition) -> Limits:
    """The limits an agent file sets, each said by that file."""
    return limits_from(definition.caps, definition.path)


def limits_from(caps: Caps, source: str) -> Limits:
    return Limits(**attrs.asdict(caps)).said_by(source)


def guard_of(definition: Definition) -> Guard | None:
    """The loop guard an agent works under: on by default."""
    found = guard_settings(definition.loops)
    return None if found.off else Guard(found)


def _path(definition: Definition, parent: Agent | None) -> str:
    if parent is None:
        return definition.name
    number = parent.children[definition.name] = parent.children.get(definition.name, 0) + 1
    return f"{parent.path}/{definition.name}-{number}"


def _policy(run: Run, definition: Definition, parent: Agent | None) -> Policy:
    own = Rules.parse(
        allow=definition.permissions.allow, ask=definition.permissions.ask, deny=definition.permissions.deny
    )
    ceiling = parent.policy.handed_down() if parent is not None else run.settings.ceiling
    return Policy(own=own, ceiling=ceiling)


def _delegates(run: Run, agent: Agent) -> Iterable[Tool]:
    for name in agent.definition.subagents:
        yield delegate_tool(agent, run.cast.get(name))


def _system(run: Run, agent: Agent, model: ModelRef) -> tuple[str, ...]:
    definition = agent.definition
    children = [run.cast.get(name) for name in definition.subagents]
    prompt = render(
        definition.prompt,
        {
            "model": model.full_name,
            "workspace": str(run.workspace.root),
            "tools": listing((tool.name, tool.description.split("\n", 1)[0]) for tool in agent.toolbox),
            "subagents": listing((child.name, child.description) for child in children),
            "skills": listing(()),
            "date": run.settings.date,
        },
    )
    budget = run.gate.ledger.remaining(agent.path).text(run.deadlines.left(agent.path))
    return system_parts(prompt, [("budget", budget)])
