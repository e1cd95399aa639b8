"""What a tool call is about, in the terms in which permission rules speak of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

Use: TypeAlias = Literal["read", "write", "list", "delete"]


@attrs.frozen
class PathUse:
    """What a call does to one path. `path` is the real one, relative to the workspace, links resolved.

    `fault` says why the path cannot be one of the workspace's (it leads out, for instance); `path` is then as written.
    """

    use: Use
    path: str
    fault: str = ""


@attrs.frozen
class PathSubject:
    """A call that names paths of the workspace."""

    tool: str
    uses: tuple[PathUse, ...]
    changes: bool = False

    @property
    def writes(self) -> tuple[PathUse, ...]:
        return tuple(each for each in self.uses if each.use in ("write", "delete"))


@attrs.frozen
class ShellSubject:
    """A command line, as the model wrote it."""

    command: str
    tool: str = "shell"


@attrs.frozen
class HostSubject:
    """A request to a host, by name, without scheme and port."""

    host: str
    tool: str = "fetch_url"


@attrs.frozen
class McpSubject:
    """A tool of an MCP server: `tool` as it is called here, `server` and `name` as it is called there."""

    tool: str
    server: str
    name: str
    changes: bool = True


@attrs.frozen
class AgentSubject:
    """A task for another agent; `declared` says that the caller's own file names it as a subagent."""

    tool: str
    agent: str
    declared: bool = True


@attrs.frozen
class PlainSubject:
    """Any other call. `private` means that it touches nothing but the agent's own notes and results.

    `code` names the very code it runs, where the tool of that name may have other code next time.
    """

    tool: str
    changes: bool = True
    private: bool = False
    code: str = ""


Subject: TypeAlias = PathSubject | ShellSubject | HostSubject | McpSubject | AgentSubject | PlainSubject
