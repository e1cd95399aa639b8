"""What the runtime adds to an actor's prompt, and how one prompt differs from another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from runtime.events import PrefixChanged, SkillLoaded
from runtime.instructions import read_instructions
from runtime.skills.hired import skills_section

if TYPE_CHECKING:
    from runtime.agent import Agent

BUDGET = "budget"


def sections(agent: Agent) -> list[tuple[str, str]]:
    """The workspace's instructions and the skills, as far as the actor's file wants them. Blocks the first time."""
    run, definition = agent.run, agent.definition
    found: list[tuple[str, str]] = []
    if definition.instructions:
        if run.instructions is None:
            run.instructions = read_instructions(run.workspace)
        if agent.parent is None:
            agent.remarks += run.instructions.remarks
        found.append(("instructions", run.instructions.text))
    if definition.style != "native" or "{skills}" not in definition.prompt:
        found.append(("skills", skills_section(agent)))
    return found


def lasting(prompt: Sequence[str]) -> tuple[str, ...]:
    """The parts of a prompt that do not depend on what is left of the budget."""
    return tuple(part for part in prompt if not part.startswith(f"<{BUDGET}>"))


def announce(agent: Agent) -> None:
    """Tell what has changed on disk since the run that an actor's run continues: for the record, and for its model."""
    earlier = agent.earlier
    if earlier is None:
        return
    if earlier.compact and not agent.run.settings.compacts:
        agent.compactor.ask_for(earlier.compact)
    for event in earlier.skills:
        if event.name in agent.skills.loaded:
            agent.run.append(_carried(event, agent.path))
    if earlier.agent != agent.definition.name:
        return
    before, now = lasting(earlier.prompt), lasting(agent.system)
    whys = list(_differences(before, now))
    if earlier.tools != tuple(spec.as_json() for spec in agent.specs):
        whys.append("its tools have changed")
    stale = agent.skills.changed()
    whys += [f"the skill {name}, loaded before, has changed" for name in stale]
    if whys:
        agent.run.append(PrefixChanged(actor=agent.path, why="; ".join(whys)))
    there = [name for name in stale if name in agent.skills.offered]
    agent.stale_skills = tuple(there)


def _carried(event: SkillLoaded, actor: str) -> SkillLoaded:
    """What the run before had loaded, on this run's record as well; it pre-approves nothing any more."""
    return SkillLoaded(actor=actor, name=event.name, path=event.path, text=event.text, digest=event.digest)


def _differences(before: Sequence[str], now: Sequence[str]) -> Iterable[str]:
    old, new = dict(map(_named, before)), dict(map(_named, now))
    for tag in dict.fromkeys([*old, *new]):
        was, is_now = old.get(tag, ""), new.get(tag, "")
        if was == is_now:
            continue
        if tag == "skills":
            yield f"skills: {_lines(was, is_now)}"
        elif tag == "instructions":
            yield "the workspace's instruction files have changed"
        else:
            yield "its prompt has changed" if not tag else f"the part {tag} of its prompt has changed"


def _named(part: str) -> tuple[str, str]:
    tag = part[1:].partition(">")[0] if part.startswith("<") and part.rstrip().endswith(">") else ""
    return tag, part


def _lines(was: str, is_now: str) -> str:
    """Which entries of a listing came, went or are others now."""
    old, new = _entries(was), _entries(is_now)
    words = [f"{name} is new" for name in new if name not in old]
    words += [f"{name} is gone" for name in old if name not in new]
    words += [f"{name} has changed" for name in new if name in old and old[name] != new[name]]
    return ", ".join(words) or "told in other words"


def _entries(section: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in section.split("\n"):
        if line.startswith("- "):
            name, _, text = line[2:].partition(": ")
            found[name] = text
    return found
