"""A tool as a server lists it, and what of a list can be used: pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from runtime.messages import JsonObject
from runtime.shapes import is_list
from runtime.tools import Effects


@attrs.frozen
class Offer:
    """One tool of a server: its own name there, and its hints, None where it says nothing.

    `resources` marks the one that stands for the server's resources.
    """

    name: str
    description: str = ""
    parameters: JsonObject = attrs.field(factory=dict[str, Any])
    read_only: bool | None = None
    idempotent: bool | None = None
    resources: bool = False

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> Offer:
        """The offer in a server's own JSON, which has been checked."""
        hints: Mapping[str, Any] = tool.get("annotations") or {}
        about = tool.get("description") or tool.get("title") or hints.get("title") or ""
        return cls(
            tool["name"], about, tool.get("inputSchema") or {}, hints.get("readOnlyHint"), hints.get("idempotentHint")
        )

    def effects(self, *, trusted: bool) -> Effects:
        """What a call may do. A server that is not trusted may say what it wants: a call is taken to do anything."""
        if not trusted:
            return "once"
        if self.read_only:
            return "none"
        return "idempotent" if self.idempotent else "once"


def mend(result: dict[str, Any], is_tool: Callable[[object], bool]) -> tuple[str, ...]:
    """Put right what of an answer would spoil all of it; what was left out.

    One tool that is none must not cost the others, and an answer that does not say that it is complete is meant to be.
    """
    result.setdefault("resultType", "complete")
    tools = result.get("tools")
    if not is_list(tools):
        return ()
    kept = [is_tool(tool) for tool in tools]
    if all(kept):
        return ()
    result["tools"] = [tool for tool, good in zip(tools, kept, strict=True) if good]
    return tuple(_name_of(tool) for tool, good in zip(tools, kept, strict=True) if not good)


def _name_of(tool: object) -> str:
    name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return repr(name) if isinstance(name, str) else "one without a name"
