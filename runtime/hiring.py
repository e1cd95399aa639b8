"""How an actor comes to be: its file, the run's ceiling and what is left of the budget make an Agent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial

import attrs

from .agent import Agent
from .background import AWAIT, START, await_tool, start_tool
from .context.prompt import listing, render, system_parts
from .context.sections import BUDGET, lasting, sections
from .definitions import Caps, Definition
from .errors import DefinitionError, Fault, NotHired, did_you_mean
from .events import ModelChanged, PrefixChanged, Warned
from .journal.state import ActorState
from .limits.budget import Barred
from .limits.limits import CHILD_DEFAULTS, Limits
from .limits.loops import GuardSettings, guard_settings
from .model import ToolSpec
from .peers import TELLS, message_tool
from .permits import Permits
from .policy.rules import RuleError, parse_permissions
from .run import Run
from .skills.active import listed
from .skills.hired import give_skills
from .standing import restore
from .tools import Tool, ToolBox
from .tools.delegate import PREFIX, delegate_tool, tool_name
from .tools.results import read_result
from .tools.skill import skill_tool


def hire(run: Run, name: str, parent: Agent | None, call_id: str | None, limits: Limits | None = None) -> Agent:
    """An Agent with its place in the ledger and its clock running.

    `limits` are the root's own, composed already. Raises NotHired where depth or width forbid it, DefinitionError for
    a faulty file, UsageError for an unknown agent or model.
    """
    definition = run.cast.get(name)
    above = parent.path if parent is not None else None
    recovered = run.recovered.child_of(above, call_id) if run.recovered is not None else None
    if recovered is not None and recovered.path in run.taken_up:
        recovered = None
    kept_model = recovered.model if recovered is not None and not run.settings.refresh else None
    model = run.models.resolve(kept_model or definition.model or run.settings.model)
    permits = permits_of(run, definition, parent)
    own = own_tools(run.tools, definition)
    if recovered is not None:
        path, number = recovered.path, recovered.number
        bounds = limits or Limits.from_json(recovered.limits)
    else:
        path, number = (parent.family.next_path(name) if parent is not None else name), run.numbers
        bounds = limits or _childs_limits(definition.caps, definition.path)
    ledger = run.gate.ledger
    if not ledger.is_open(path) and isinstance(opened := ledger.open(path, above, bounds), Barred):
        raise NotHired(opened.message)
    run.numbers = max(run.numbers, number + 1)
    agent = Agent(
        run,
        definition,
        path=path,
        number=number,
        parent=parent,
        model=model,
        permits=permits,
        limits=bounds,
        hire=_hire,
    )
    run.deadlines.start(path, above, bounds.timeout, recovered.elapsed if recovered is not None else 0.0)
    give_skills(run, agent)
    toolbox = _toolbox(run, agent, own, recovered)
    agent.tools_version = run.mcps.version
    prompt, specs = _prefix(run, agent, toolbox, recovered)
    agent.equip(toolbox, prompt, specs, _guard(run, definition))
    if parent is None and recovered is None and run.earlier is not None:
        agent.follow(run.earlier)
    if recovered is not None and run.recovered is not None:
        run.taken_up.add(path)
        restore(agent, run.recovered, recovered)
        ledger.keep(path, agent.ask(agent.request("turn", 0), "turn"))
    return agent


def _hire(name: str, parent: Agent, call_id: str) -> Agent:
    return hire(parent.run, name, parent, call_id)


def _guard(run: Run, definition: Definition) -> GuardSettings:
    found = run.guards.get(definition.name)
    if found is None:
        found = run.guards[definition.name] = guard_settings(definition.loops)
    return found


def own_tools(known: Mapping[str, Tool], definition: Definition) -> list[Tool]:
    """The tools an agent file names, in its order. Raises DefinitionError for one nobody knows."""
    missing = [name for name in definition.tools if name not in known]
    if missing:
        raise DefinitionError(
            Fault(definition.path, 1, f"unknown tool '{name}'{did_you_mean(name, known)}") for name in missing
        )
    return [known[name] for name in dict.fromkeys(definition.tools)]


def reserved_names(run: Run) -> frozenset[str]:
    """The names that tools of MCP servers may not take, whoever they are for."""
    agents = [tool_name(prefix, name) for name in run.cast.members for prefix in (PREFIX, START, TELLS)]
    return frozenset((*run.tools, read_result.name, AWAIT, "use_skill", *agents))


def limits_of(definition: Definition) -> Limits:
    """The limits an agent file sets, each said by that file."""
    return limits_from(definition.caps, definition.path)


@lru_cache(maxsize=256)
def _childs_limits(caps: Caps, source: str) -> Limits:
    return limits_from(caps, source).or_else(CHILD_DEFAULTS)


def limits_from(caps: Caps, source: str) -> Limits:
    return Limits(**attrs.asdict(caps)).said_by(source)


def permits_of(run: Run, definition: Definition, parent: Agent | None) -> Permits:
    """What an agent of that file may do below `parent`. Raises DefinitionError for a faulty rule."""
    written = definition.permissions
    try:
        own = parse_permissions(written.allow, written.ask, written.deny, origin=definition.path)
    except RuleError as error:
        raise DefinitionError([Fault(definition.path, 1, str(error))]) from None
    settings = run.settings
    ceiling = parent.permits.handed_down() if parent is not None else settings.ceiling
    return Permits(own + settings.rules, ceiling, settings.yes, run.grants)


def refit(agent: Agent) -> None:
    """Give an actor the tools its servers have now, where they are others than its model was shown."""
    run = agent.run
    agent.tools_version = run.mcps.version
    toolbox = _toolbox(run, agent, own_tools(run.tools, agent.definition), None)
    if toolbox.specs() == agent.specs:
        return
    agent.refit(toolbox)
    why = f"the tools of {' or '.join(agent.definition.mcps)} have changed"
    run.append(PrefixChanged(actor=agent.path, why=why, tools=tuple(spec.as_json() for spec in agent.specs)))


def _toolbox(run: Run, agent: Agent, own: list[Tool], recovered: ActorState | None) -> ToolBox:
    """The actor's tools. Where none belongs to this very actor, all actors of its file have the same box."""
    name = agent.definition.name
    file = agent.definition
    own_box = bool(file.subagents or file.talks_to or file.skills or file.mcps)
    shared = None if own_box else run.toolboxes.get(name)
    if shared is not None:
        return shared
    skills = [skill_tool(agent)] if agent.skills.offered else []
    tools = [*own, *skills, *_served(run, agent, recovered), *_delegates(run, agent), *_peers(run, agent)]
    if tools:
        tools.append(read_result)
    toolbox = ToolBox(tools, missing=partial(run.mcps.missing, agent.definition.mcps))
    if not own_box:
        run.toolboxes[name] = toolbox
    return toolbox


def _served(run: Run, agent: Agent, recovered: ActorState | None) -> Iterable[Tool]:
    """The tools of the agent's MCP servers; of one that is not there now, those on record."""
    names = agent.definition.mcps
    if not names:
        return ()
    recorded = None
    if recovered is not None and run.recovered is not None:
        shown = {each["name"]: each for each in recovered.tools}
        recorded = run.mcps.recorded(run.recovered.server_tools, shown)
    return run.mcps.tools_of(names, recorded)


def _delegates(run: Run, agent: Agent) -> Iterable[Tool]:
    children = [run.cast.get(name) for name in agent.definition.subagents]
    yield from (delegate_tool(agent, child) for child in children)
    yield from (start_tool(agent, child) for child in children)
    if children:
        yield await_tool(agent)


def _peers(run: Run, agent: Agent) -> Iterable[Tool]:
    return (message_tool(agent, name) for name in agent.definition.talks_to)


def _prefix(
    run: Run, agent: Agent, toolbox: ToolBox, recovered: ActorState | None
) -> tuple[tuple[str, ...], tuple[ToolSpec, ...]]:
    """Prompt and tools: as recorded for one who goes on, unless changed definitions are to be taken."""
    if recovered is None:
        return _system(run, agent, toolbox, run.settings.date, agent.model.full_name), toolbox.specs()
    begun = time.strftime("%Y-%m-%d", time.localtime(recovered.started_at))
    spoken_of = agent.model.full_name if run.settings.refresh else recovered.prompt_model
    prompt, specs = _system(run, agent, toolbox, begun, spoken_of), toolbox.specs()
    recorded = tuple(ToolSpec(each["name"], each["description"], each["parameters"]) for each in recovered.tools)
    changes = [
        word
        for word, changed in (
            ("prompt", lasting(prompt) != lasting(recovered.prompt)),
            ("tools", specs != recorded),
            ("model", agent.model.full_name != recovered.model),
        )
        if changed
    ]
    if not changes:
        return recovered.prompt, recorded
    what = f"{' and '.join(changes)} of {agent.definition.path or agent.definition.name}"
    if not run.settings.refresh:
        text = f"{agent.path} goes on as it began: {what} changed since (elenco resume --refresh takes the change)"
        run.append(Warned(actor=agent.path, text=text))
        return recovered.prompt, recorded
    if (before := recovered.model) != (now := agent.model).full_name:
        run.append(
            ModelChanged(actor=agent.path, model=now.full_name, before=before, by="resume --refresh", window=now.window)
        )
    run.append(
        PrefixChanged(
            actor=agent.path,
            why=f"{what} changed since the run began",
            prompt=prompt,
            tools=tuple(spec.as_json() for spec in specs),
        )
    )
    return prompt, specs


def _system(run: Run, agent: Agent, toolbox: ToolBox, date: str, model: str) -> tuple[str, ...]:
    definition = agent.definition
    children = [run.cast.get(name) for name in definition.subagents]
    template = definition.style == "native"
    prompt = render(
        definition.prompt,
        {
            "model": model,
            "workspace": str(run.workspace.root),
            "tools": listing((tool.name, tool.description.split("\n", 1)[0]) for tool in toolbox),
            "subagents": listing((child.name, child.description) for child in children),
            "skills": listing(listed(agent.skills.offered)[0]),
            "date": date,
        },
    )
    budget = run.gate.ledger.remaining(agent.path).text(run.deadlines.left(agent.path))
    output = ("output", agent.answers.prompt)
    return system_parts(prompt if template else definition.prompt, [*sections(agent), output, (BUDGET, budget)])
