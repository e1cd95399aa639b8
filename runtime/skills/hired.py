"""An actor's skills: those its file names, taken from the run's shelf, with what they bring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from runtime.errors import Fault
from runtime.policy.rules import Permissions, Rule

from .active import ActiveSkills, listed
from .lessons import Lessons
from .places import Entry, Shelf

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.definitions import Definition
    from runtime.events import SkillLoaded
    from runtime.run import Run

ABOUT = (
    "A skill tells how a kind of work is done well. When the task fits one of these, call use_skill with its name "
    "before you begin, and follow what it says."
)


def offered_to(definition: Definition, shelf: Shelf) -> dict[str, Entry]:
    """The skills an agent may use: those its file names, or all but those that only a person may choose."""
    if definition.skills == "all":
        return {
            name: entry for name, entry in shelf.skills.items() if entry.skill is not None and not entry.skill.manual
        }
    return {name: shelf.skills[name] for name in dict.fromkeys(definition.skills) if name in shelf.skills}


def give_skills(run: Run, agent: Agent) -> None:
    """Give an actor its skills before its tools and its prompt are made."""
    definition = agent.definition
    if not definition.skills:
        return
    agent.skills = ActiveSkills(
        root=run.workspace.root,
        offered=offered_to(definition, run.shelf),
        lessons=Lessons(run.state) if run.state is not None else None,
        trusted=run.trusted,
        reader="read_file" in definition.tools,
    )
    for name, entry in agent.skills.offered.items():
        for problem in entry.reading.problems:
            if problem.level in ("deviation", "warning"):
                agent.remarks.append(f"skill {name} ({entry.shown}:{problem.line}): {problem.text}")
    if definition.skills != "all":
        for name in definition.skills:
            if name not in agent.skills.offered:
                agent.remarks.append(f"{agent.path} goes without the skill {name}: there is none of that name")


def skills_section(agent: Agent) -> str:
    """What a prompt says of the actor's skills, "" where it has none."""
    lines, shortened = listed(agent.skills.offered)
    if not lines:
        return ""
    if shortened:
        agent.remarks.append(f"{agent.path} has {len(lines)} skills: their descriptions are shortened in its prompt")
    return "\n".join([ABOUT, "", *(f"- {name}: {text}" for name, text in lines)])


def approve(agent: Agent, rules: Sequence[Rule]) -> None:
    """Let what an actor has loaded pre-approve calls: allow rules of its own; no ask or deny yields to them."""
    if rules:
        agent.permits = attrs.evolve(agent.permits, own=agent.permits.own + Permissions(allow=tuple(rules)))


def recall_skills(agent: Agent, events: Iterable[SkillLoaded]) -> None:
    """Count as loaded what an earlier process, or the run before, had loaded. Blocks."""
    approve(agent, agent.skills.restore(events))
    for loaded in agent.skills.loaded.values():
        agent.user_hooks.add(loaded.hooks)


def explained(faults: Iterable[Fault], shelf: Shelf) -> list[Fault]:
    """Faults about skills nobody knows, with the reason where one of that name is there and cannot be used."""
    reasons = {entry.folder.name: entry for entry in reversed(shelf.broken)}
    found: list[Fault] = []
    for fault in faults:
        named = fault.text.partition("unknown skill '")[2].partition("'")[0]
        entry = reasons.get(named)
        if entry is not None:
            why = next(iter(entry.reading.problems))
            text = f"skill '{named}' cannot be used: {entry.shown}:{why.line}: {why.text}"
            found.append(attrs.evolve(fault, text=text))
        else:
            found.append(fault)
    return found
