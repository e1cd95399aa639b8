"""What one may tell a run while it works: the commands as values, and as JSON; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

import attrs

from runtime.errors import UsageError, did_you_mean
from runtime.messages import JsonObject


@attrs.frozen(kw_only=True)
class Approve:
    """Allow a call; `scope` is once, run or workspace, `arguments` the edited ones, if they were edited."""

    op: ClassVar[str] = "approve"
    id: str
    scope: str = "once"
    arguments: JsonObject | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class Deny:
    """Refuse a call; the model reads `why`."""

    op: ClassVar[str] = "deny"
    id: str
    why: str = ""
    by: str = ""


@attrs.frozen(kw_only=True)
class Answer:
    """Answer an agent's question."""

    op: ClassVar[str] = "answer"
    id: str
    text: str
    by: str = ""


@attrs.frozen(kw_only=True)
class Cancel:
    """Cancel an actor and all below it, or the whole run."""

    op: ClassVar[str] = "cancel"
    actor: str | None = None
    by: str = ""


def _says_something(_: object, __: object, text: str) -> None:
    if not text.strip():  # model servers refuse an empty message, which would end the run
        raise UsageError("say: the text is empty")


@attrs.frozen(kw_only=True)
class Say:
    """Tell an actor something, the root if none is named; `interrupt` cancels its running calls first."""

    op: ClassVar[str] = "say"
    text: str = attrs.field(validator=_says_something)
    actor: str | None = None
    interrupt: bool = False
    by: str = ""


@attrs.frozen(kw_only=True)
class ChangeLimits:
    """Change limits by name: a number, or text such as +20; only if those of `expect` have these values still."""

    op: ClassVar[str] = "limits"
    limits: JsonObject
    actor: str | None = None
    expect: JsonObject | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class SetModel:
    """Go on with another model from the next request on: an actor, or the root and all whose files name none."""

    op: ClassVar[str] = "set_model"
    model: str
    actor: str | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class Hold:
    """Let one actor, or everybody in the run, stop before the next step."""

    op: ClassVar[str] = "hold"
    actor: str | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class Continue:
    """Let one actor, or everybody who is held, go on."""

    op: ClassVar[str] = "continue"
    actor: str | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class Compact:
    """Make an actor's history smaller before its next request, the root's if none is named."""

    op: ClassVar[str] = "compact"
    actor: str | None = None
    by: str = ""


@attrs.frozen(kw_only=True)
class SwitchServer:
    """Bring an MCP server into the run, or take it out; its agents see it at their next step."""

    op: ClassVar[str] = "mcp"
    server: str
    on: bool
    by: str = ""


@attrs.frozen(kw_only=True)
class Status:
    """Ask where the run stands; the answer is the snapshot, as `LogStream.overview` has it."""

    op: ClassVar[str] = "status"


Command: TypeAlias = (
    Approve | Deny | Answer | Cancel | Say | ChangeLimits | SetModel | Hold | Continue | Compact | SwitchServer | Status
)


class Commands(Protocol):
    """Who carries out commands: the application."""

    async def run(self, command: Command) -> JsonObject:
        """Carry out a command and return what its sender should know.

        Raises ElencoError with a text for the sender: UsageError where the command makes no sense, such as an id
        that waits for nothing. A cancelled call may have taken effect.
        """
        ...


OPS: Mapping[str, type[Command]] = {
    cls.op: cls
    for cls in (
        Approve,
        Deny,
        Answer,
        Cancel,
        Say,
        ChangeLimits,
        SetModel,
        Hold,
        Continue,
        Compact,
        SwitchServer,
        Status,
    )
}

SCOPES = ("once", "run", "workspace")
"""How far an approval reaches."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "bool": (bool,),
    "JsonObject": (dict,),
    "JsonObject | None": (dict, type(None)),
}


def command_to_json(command: Command) -> dict[str, Any]:
    body = {field.name: getattr(command, field.name) for field in attrs.fields(type(command))}
    return {"op": command.op, **body}


def command_from_json(data: Mapping[str, Any]) -> Command:
    """Raises UsageError naming what is wrong: an unknown op or key, a missing one, one of the wrong type."""
    op = data.get("op")
    cls = OPS.get(op) if isinstance(op, str) else None
    if cls is None:
        raise UsageError(f"unknown command {op!r}{did_you_mean(str(op), OPS)}")
    fields = {field.name: field for field in attrs.fields(cls)}
    for key, value in data.items():
        if key == "op":
            continue
        if key not in fields:
            raise UsageError(f"{op}: unknown key '{key}'{did_you_mean(key, fields)}")
        if not isinstance(value, _TYPES[str(fields[key].type)]):
            raise UsageError(f"{op}: '{key}' must be {fields[key].type}, not {type(value).__name__}")
    if cls is Approve and (scope := data.get("scope", "once")) not in SCOPES:
        raise UsageError(
            f"approve: unknown scope '{scope}'{did_you_mean(scope, SCOPES)}; it is one of {', '.join(SCOPES)}"
        )
    missing = [name for name, field in fields.items() if field.default is attrs.NOTHING and name not in data]
    if missing:
        raise UsageError(f"{op}: '{missing[0]}' is missing")
    return cls(**{key: value for key, value in data.items() if key != "op"})
