"""The models that other runtimes' files name, as far as they can be asked here; else the run's model answers."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from runtime.definitions import Definition
from runtime.errors import Fault
from runtime.known import KNOWN

ALIASES: Mapping[str, str] = {
    "sonnet": "claude-sonnet-5-5",
    "opus": "claude-opus-5-5",
    "haiku": "claude-haiku-5-5",
    "fable": "claude-fable-5-2",
}


def settled(definition: Definition, environment: Mapping[str, str]) -> Definition:
    """The definition with its model as it is called here; what cannot be asked is told and left to the run's model."""
    written = definition.model
    if definition.style == "native" or written is None:
        return definition
    if written == "inherit":
        return attrs.evolve(definition, model=None)
    full = written if "/" in written else of_claude(written)
    if full is None:
        return _without(definition, f"the model '{written}' is not known here")
    known = KNOWN.get(full.partition("/")[0])
    if known is not None and known.key_env and not environment.get(known.key_env):
        return _without(definition, f"{full} needs a key in {known.key_env}")
    return attrs.evolve(definition, model=full)


def of_claude(name: str) -> str | None:
    """The full name of a model that Claude Code calls so, None where there is none."""
    name = name.partition("[")[0]
    model = ALIASES.get(name, name)
    return f"anthropic/{model}" if model.startswith("claude-") else None


def _without(definition: Definition, why: str) -> Definition:
    told = Fault(definition.path, 1, f"{why}; the run's model answers", warning=True)
    return attrs.evolve(definition, model=None, warnings=(*definition.warnings, told))
