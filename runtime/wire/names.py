"""Tool names that every provider takes, for tools whose servers may call them anything.

Providers want `^[a-zA-Z0-9_-]{1,64}$`. A pair of server and tool that is legal and unambiguous as it stands is joined
with an underscore; every other one is cut to size and gets a hash of the exact pair. A name depends on its own pair
and the built-in names only, so no order and no server added later changes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_HASHED = re.compile(r".*-[0-9a-f]{12}", re.DOTALL)
_LENGTH = 64
_HASH = 12


@attrs.frozen
class ExposedName:
    """What a provider is shown for one tool of one server."""

    server: str
    tool: str
    name: str


@attrs.frozen
class RefusedName:
    """A tool that is not shown, and why."""

    server: str
    tool: str
    why: str


@attrs.frozen
class ToolNames:
    """All names, in the order of the servers and their tools."""

    names: tuple[ExposedName, ...]
    refused: tuple[RefusedName, ...] = ()

    def origins(self) -> Mapping[str, tuple[str, str]]:
        """From each shown name back to its exact server and tool."""
        return {entry.name: (entry.server, entry.tool) for entry in self.names}


def expose(servers: Iterable[tuple[str, Sequence[str]]], builtin: Collection[str] = ()) -> ToolNames:
    """Name the tools of all servers. A tool listed twice is shown once; its other copy is refused and named."""
    names: dict[str, ExposedName] = {}
    refused: list[RefusedName] = []
    known: set[tuple[str, str]] = set()
    for server, tools in servers:
        for tool in tools:
            if (server, tool) in known:
                refused.append(RefusedName(server, tool, f"{server!r} offers {tool!r} more than once"))
                continue
            known.add((server, tool))
            name = exposed_name(server, tool, builtin)
            if name in names:  # only if two hashes of 48 bits are equal
                other = names[name]
                refused.append(RefusedName(server, tool, f"named like {other.tool!r} of {other.server!r}"))
            else:
                names[name] = ExposedName(server, tool, name)
    return ToolNames(tuple(names.values()), tuple(refused))


def exposed_name(server: str, tool: str, builtin: Collection[str] = ()) -> str:
    """The name of one tool; equal only for equal pairs (but for a clash of hashes)."""
    plain = _plain(server, tool)
    if plain is not None and plain not in builtin:
        return plain
    salt = 0
    while (name := _with_hash(server, tool, salt)) in builtin:
        salt += 1
    return name


def _plain(server: str, tool: str) -> str | None:
    """The two joined, if the join can be taken apart again and looks like no hashed name.

    A single underscore ends the server when that has none itself; a double one does when it has, and when a double
    one stands nowhere else.
    """
    if not server or not tool or "__" in tool or tool.startswith("_"):
        return None
    if "__" in server or server.endswith("_"):
        return None
    name = f"{server}__{tool}" if "_" in server else f"{server}_{tool}"
    return name if _LEGAL.fullmatch(name) and not _HASHED.fullmatch(name) else None


def _with_hash(server: str, tool: str, salt: int) -> str:
    exact = json.dumps([server, tool, salt] if salt else [server, tool])
    digest = hashlib.sha256(exact.encode()).hexdigest()[:_HASH]
    readable = [text for part in (server, tool) if (text := _ILLEGAL.sub("_", part).strip("_-"))]
    room = _LENGTH - _HASH - 1
    if len(readable) == 2 and len("_".join(readable)) > room:
        readable[0] = readable[0][:20]
    return f"{'_'.join(readable)[:room].rstrip('_-') or 'tool'}-{digest}"
