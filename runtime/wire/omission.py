"""Reasoning that need not go back any more: what each wire lets an old reply do without, so that no half block is left.

Anthropic wants the thinking of a turn whose tools are still running, and looks at its first reply; behind a user's
words the turn is settled. Responses ties messages and calls to their reasoning by item ids, so these go with it. Chat
servers take a reply without it; Google's signatures on calls stay, they are no reasoning.
"""

from __future__ import annotations

import attrs

from runtime.messages import AssistantMessage, JsonObject, Opaque, Part, Reasoning, Text, ToolCall
from runtime.shapes import is_object


def without_reasoning(message: AssistantMessage, *, settled: bool) -> AssistantMessage:
    """The reply without reasoning its wire does not ask for again; the same object where there is none to drop.

    `settled`: a user has spoken since, so the turn it belongs to is over.
    """
    if message.wire == "anthropic-messages" and not settled:
        return message
    kept = tuple(part for part in message.parts if not _is_reasoning(part))
    if len(kept) == len(message.parts):
        return message
    if message.wire == "openai-responses":
        kept = tuple(_untied(part) for part in kept)
    return attrs.evolve(message, parts=kept)


def _is_reasoning(part: Part) -> bool:
    match part:
        case Reasoning():
            return True
        case Opaque(data=data):
            if data.get("type") in ("thinking", "redacted_thinking", "reasoning"):
                return True
            return "type" not in data and "extra_content" not in data
        case _:
            return False


def _untied(part: Part) -> Part:
    match part:
        case Text(opaque=opaque) if opaque is not None:
            return attrs.evolve(part, opaque=_without_id(opaque))
        case ToolCall(extra=extra) if extra is not None:
            return attrs.evolve(part, extra=_without_id(extra))
        case _:
            return part


def _without_id(data: JsonObject) -> JsonObject | None:
    assert is_object(data)
    return {key: value for key, value in data.items() if key != "id"} or None
