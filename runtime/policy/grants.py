"""What "always" means when a human allows a call: this kind of call on this very thing, and nothing wider. Pure."""

from __future__ import annotations

from .subjects import AgentSubject, HostSubject, McpSubject, PathSubject, PlainSubject, ShellSubject, Subject


def grants_of(subject: Subject) -> tuple[str, ...]:
    """The grants that together cover a call, as a person reads them; none where it cannot be allowed beforehand.

    A grant for a path is for that path and that tool, one for a command for that command line, one for a host for that
    host, one for code of one's own for that very code. Reading a file that the call also changes is covered by the
    change.
    """
    match subject:
        case PathSubject(tool=tool, uses=uses):
            if any(each.fault for each in uses):
                return ()
            changed = {each.path for each in uses if each.use in ("write", "delete")}
            texts = (
                f"{tool} delete({each.path})" if each.use == "delete" else f"{tool}({each.path})"
                for each in uses
                if each.use in ("write", "delete") or each.path not in changed
            )
            return tuple(dict.fromkeys(texts))
        case ShellSubject(tool=tool, command=command):
            return (f"{tool}({command})",) if command.strip() else ()
        case HostSubject(tool=tool, host=host):
            return (f"{tool}({host})",) if host else ()
        case McpSubject(server=server, name=name):
            return (f"mcp({server}/{name})",)
        case AgentSubject(agent=agent):
            return (f"agent({agent})",)
        case PlainSubject(tool=tool, code=code):
            return (f"{tool} as {code}" if code else tool,)
