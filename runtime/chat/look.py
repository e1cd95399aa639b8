"""What a chat can show of its surroundings: agents, skills, servers, models, commands of plugins. It blocks."""

from __future__ import annotations

import os
from typing import Any

from runtime.known import KNOWN, OFFLINE, key_variable
from runtime.messages import JsonObject
from runtime.outline import Outline
from runtime.plugins import plugins
from runtime.prices import models_from, well_known
from runtime.skills.places import find_skills


def surroundings(seen: Outline) -> JsonObject:
    """The pages beside a conversation, as JSON."""
    return {
        "agents": _agents(seen),
        "skills": _skills(seen),
        "servers": _servers(seen),
        "models": _models(seen),
        "commands": [{"name": each.name, "summary": each.summary} for each in plugins().commands.values()],
    }


def _agents(seen: Outline) -> list[JsonObject]:
    mine = set(seen.root.subagents)
    found: list[JsonObject] = []
    for member in seen.cast.members.values():
        definition = member.definition
        found.append(
            {
                "name": member.name,
                "from": member.shown,
                "faults": len(member.faults),
                "description": definition.description if definition is not None else "",
                "model": definition.model if definition is not None else None,
                "subagent": member.name in mine,
            }
        )
    return found


def _skills(seen: Outline) -> list[JsonObject]:
    shelf = seen.shelf or find_skills(seen.options.workspace)
    named = seen.root.skills
    return [
        {
            "name": name,
            "from": os.path.dirname(entry.shown),
            "description": entry.skill.description if entry.skill is not None else "",
            "given": named == "all" or name in named,
        }
        for name, entry in shelf.skills.items()
    ]


def _servers(seen: Outline) -> list[JsonObject]:
    return [
        {
            "name": name,
            "type": entry.transport,
            "from": entry.place,
            "disabled": entry.disabled,
            "given": name in seen.root.mcps,
        }
        for name, entry in seen.servers.items()
    ]


def _models(seen: Outline) -> list[JsonObject]:
    """Those somebody could ask here: of providers with a key or none needed, and of the settings."""
    own: dict[str, Any] = {
        **models_from(seen.user.models, seen.user.path),
        **models_from(seen.here.models, seen.here.path),
    }
    providers = {**seen.user.providers, **seen.here.providers}
    names = [*own, *(name for name, _ in well_known() if name not in own)]
    windows = {**dict(well_known()), **own}
    found: list[JsonObject] = []
    for name in names:
        provider = name.partition("/")[0]
        variable = key_variable(provider, providers.get(provider))
        askable = provider in (*KNOWN, *providers) and (variable is None or bool(os.environ.get(variable)))
        if askable or name in own:
            found.append({"name": name, "window": windows[name].window})
    found.append({"name": OFFLINE, "window": None})
    return found
