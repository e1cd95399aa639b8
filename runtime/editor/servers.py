"""The MCP servers an editor hands over with a session, in the form our own settings know. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import attrs

from runtime.errors import DefinitionError, UsageError
from runtime.mcps.entry import Entry
from runtime.mcps.settings import read


def handed(value: Any) -> Mapping[str, Entry]:
    """The servers of a request's `mcpServers`; null is none.

    Their texts are taken as they are: what looks like a variable is none. Raises UsageError.
    """
    if value is None:
        return {}
    if not isinstance(value, list):
        raise UsageError("mcpServers is a list")
    block: dict[str, Any] = {}
    for each in cast("list[object]", value):
        if not isinstance(each, dict):
            raise UsageError("an entry of mcpServers is an object")
        server = {key: part for key, part in cast("dict[str, Any]", each).items() if key != "_meta"}
        name = server.pop("name", None)
        if not isinstance(name, str) or name in block:
            raise UsageError("each of mcpServers has a name of its own")
        for key in ("env", "headers"):
            if key in server:
                server[key] = _pairs(key, server[key])
        block[name] = server
    try:
        found = read(json.dumps({"mcpServers": block}, ensure_ascii=False), "mcpServers").entries
    except DefinitionError as error:  # its line and column are those of a text that nobody has written
        raise UsageError(f"mcpServers: {'; '.join(fault.text for fault in error.faults)}") from None
    return {name: attrs.evolve(entry, literal=True, path="", line=0) for name, entry in found.items()}


def _pairs(key: str, value: Any) -> dict[str, str]:
    """A list of `{name, value}` as one mapping."""
    found: dict[str, str] = {}
    for each in cast("list[object]", value) if isinstance(value, list) else [value]:
        match each:
            case {"name": str(name), "value": str(text)}:
                found[name] = text
            case _:
                raise UsageError(f"{key} of a server is a list of objects with name and value")
    return found
