"""What every wire's request has in common: JSON bytes, call ids, tool names, how hard to think."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import attrs

from runtime.json_text import json_encoder
from runtime.messages import AssistantMessage, Message
from runtime.model import ModelRequest, ToolSpec

from .surrogates import to_utf8

Effort = Literal["low", "medium", "high"]

NOTHING = "(no content)"
"""Stands where a wire refuses a message without any content."""

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"

to_json = json_encoder(ascii=False, nan=False)


@attrs.frozen
class Piece:
    """One message as bytes, with how many opaque parts had to be left out of it."""

    data: bytes
    left_out: int = 0


class RequestWriter(Protocol):
    """One wire's way to write a request: what comes before the messages, each message, what comes after.

    A piece may depend on the message before it and on nothing else, and joined pieces are the list's inside. Where
    `replays` is false, no opaque part goes back; where `asks_for_schema` is, none is asked for.
    """

    replays: bool
    asks_for_schema: bool

    def head(self, request: ModelRequest) -> bytes: ...

    def piece(self, message: Message, before: Message | None, model: str) -> Piece: ...

    def joined(self, request: ModelRequest, pieces: list[bytes]) -> list[bytes]: ...

    def tail(self, request: ModelRequest) -> bytes: ...


def json_bytes(value: Any) -> bytes:
    """`value` as JSON in UTF-8, whatever surrogates it holds."""
    return to_utf8(to_json(value))


def fields(**values: Any) -> bytes:
    """Members to put after others, each with its comma; those that are None are left out."""
    return b"".join(b',"%s":%s' % (name.encode(), json_bytes(v)) for name, v in values.items() if v is not None)


def tool_list(template: bytes, tools: Sequence[ToolSpec], *, end: bytes = b"") -> bytes:
    """The member `tools`, with its comma, in one wire's form: `template` takes name, description and schema.

    `end` goes behind the last tool's brace in place of it.
    """
    written = [
        template % (json_bytes(tool.name), json_bytes(tool.description), to_utf8(tool.schema_text)) for tool in tools
    ]
    if end:
        written[-1] = written[-1][:-1] + end
    return b',"tools":[%s]' % b",".join(written)


def call_id(id: str, form: Literal["any", "nine"] = "any") -> str:
    """A call's id of ours as a provider takes it: unchanged where legal, else shortened, always the same way."""
    if form == "nine":
        if _NINE.fullmatch(id):
            return id
        number = int.from_bytes(hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()[:8], "big")
        digits: list[str] = []
        for _ in range(9):
            number, digit = divmod(number, 36)
            digits.append(_BASE36[digit])
        return "".join(digits)
    if _ID.fullmatch(id):
        return id
    return f"{_ILLEGAL.sub('_', id)[-40:]}-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def tool_name(name: str) -> str:
    """A tool's name as it may stand in a history: models also call tools that were never offered."""
    return name if _ID.fullmatch(name) else (_ILLEGAL.sub("_", name)[:64] or "unnamed")


def same_origin(message: AssistantMessage, wire: str, provider: str, model: str, *, strict: bool) -> bool:
    """Whether a reply's opaque parts may go back: they came over this wire from this provider.

    Where `strict`, from this very model: makers behind one router cannot read each other's, and some bind theirs to
    the model.
    """
    if message.wire != wire:
        return False
    name, _, own = message.model.partition("/")
    return name == provider and (not strict or own == model)


def effort(thinking: int | Effort) -> Effort:
    """A thinking budget in tokens as one of three words."""
    if isinstance(thinking, str):
        return thinking
    return "low" if thinking < 4096 else "medium" if thinking < 16384 else "high"


def budget(thinking: int | Effort) -> int:
    """A word as a thinking budget in tokens."""
    if isinstance(thinking, int):
        return thinking
    return {"low": 2048, "medium": 8192, "high": 24576}[thinking]
