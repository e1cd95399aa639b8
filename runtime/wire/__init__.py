"""The three wires, sans-IO: requests to bytes, bytes in any cut to deltas and one reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from .assembly import Assembly
from .chat_reply import ChatAssembly
from .decoder import Decoder as Decoder
from .dialects import COMPATIBLE as COMPATIBLE
from .dialects import DIALECTS as DIALECTS
from .dialects import Dialect as Dialect
from .dialects import dialect_of as dialect_of
from .encoder import RequestEncoder as RequestEncoder
from .endpoint import endpoint as endpoint
from .messages_reply import MessagesAssembly
from .responses_reply import ResponsesAssembly

WireName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic-messages"]
WIRES: tuple[WireName, ...] = get_args(WireName)


def decoder(
    wire: WireName,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    n: int = 1,
    now: float | None = None,
) -> Decoder:
    """A decoder for one response of `wire`.

    `headers` may have names in any case. `now` (Unix time) lets a `retry-after` date be counted when the response
    itself has no date. `n` is the number of answers asked for; only the first is read.
    """
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    assembly: Assembly
    match wire:
        case "openai-chat":
            assembly = ChatAssembly(lowered, now, n)
        case "anthropic-messages":
            assembly = MessagesAssembly(lowered, now)
        case "openai-responses":
            assembly = ResponsesAssembly(lowered, now)
    return Decoder(assembly, status, lowered, now)
