"""Messages, usage and reports as JSON and back, without loss; pure.

What the journal keeps must give the very request again: parts in their order, opaque blocks as they came, images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from .events import MessageReceived, ModelFinished, ToolFinished
from .handover.sources import kept_from_json, source_from_json
from .messages import (
    AssistantMessage,
    Finish,
    Image,
    JsonObject,
    Message,
    Opaque,
    Part,
    Reasoning,
    ResultKind,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
)
from .report import Report, Status, StopReason

# --- usage and reports -------------------------------------------------------------------------------------------


def usage_to_json(usage: Usage) -> JsonObject:
    return {
        "input": usage.input,
        "output": usage.output,
        "cached_input": usage.cached_input,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
        "estimated": usage.estimated,
    }


def usage_from_json(data: JsonObject) -> Usage:
    """The usage of an event; what is missing is 0."""
    get = data.get
    return Usage(
        get("input", 0),
        get("output", 0),
        get("cached_input", 0),
        get("cache_write", 0),
        get("reasoning", 0),
        get("estimated", False),
    )


def report_to_json(report: Report) -> JsonObject:
    return {
        "status": report.status,
        "text": report.text,
        "usage": usage_to_json(report.usage),
        "cost_usd": report.cost_usd,
        "steps": report.steps,
        "reason": report.reason,
        "detail": report.detail,
        "output": report.output,
        "sources": [source.as_json() for source in report.sources],
        "sources_cut": report.sources_cut,
        "handles": [kept.as_json() for kept in report.handles],
    }


def report_from_json(data: JsonObject) -> Report:
    """Raises KeyError for what is no report."""
    return Report(
        cast("Status", data["status"]),
        data["text"],
        usage_from_json(data["usage"]),
        data["cost_usd"],
        data["steps"],
        cast("StopReason | None", data.get("reason")),
        data.get("detail", ""),
        data.get("output"),
        tuple(map(source_from_json, data.get("sources", ()))),
        tuple(map(kept_from_json, data.get("handles", ()))),
        data.get("sources_cut", False),
    )


# --- parts -------------------------------------------------------------------------------------------------------


def parts_to_json(message: AssistantMessage) -> tuple[JsonObject, ...]:
    """A reply's parts in full, in their order."""
    return tuple(_part_to_json(part) for part in message.parts)


def calls_to_json(message: AssistantMessage) -> tuple[JsonObject, ...]:
    """A reply's calls as readers of the stream see them."""
    return tuple(
        {"id": call.id, "name": call.name, "arguments": call.arguments, "arguments_error": call.arguments_error}
        for call in message.calls
    )


def parts_from_json(data: Iterable[JsonObject]) -> tuple[Part, ...]:
    """Raises ValueError for a part this version does not know, KeyError for half a one."""
    return tuple(_part_from_json(part) for part in data)


def _part_to_json(part: Part) -> JsonObject:
    match part:
        case Text():
            return {"type": "text", "text": part.text, **({"opaque": part.opaque} if part.opaque is not None else {})}
        case Reasoning():
            return {"type": "reasoning", "text": part.text, "opaque": part.opaque}
        case Opaque():
            return {"type": "opaque", "data": part.data}
        case ToolCall():
            return {
                "type": "call",
                "id": part.id,
                "name": part.name,
                "arguments": part.arguments,
                "raw": part.raw,
                "arguments_error": part.arguments_error,
                "provider_id": part.provider_id,
                "extra": part.extra,
            }


def _part_from_json(data: JsonObject) -> Part:
    match data["type"]:
        case "text":
            return Text(data["text"], data.get("opaque"))
        case "reasoning":
            return Reasoning(data["text"], data["opaque"])
        case "opaque":
            return Opaque(data["data"])
        case "call":
            return ToolCall(
                data["id"],
                data["name"],
                data["arguments"],
                data["raw"],
                data["arguments_error"],
                data["provider_id"],
                data["extra"],
            )
        case other:
            raise ValueError(f"a part of type '{other}' is not known here")


# --- messages ----------------------------------------------------------------------------------------------------


def message_to_json(message: Message) -> JsonObject:
    match message:
        case UserMessage():
            return {
                "role": "user",
                "text": message.text,
                "kind": message.kind,
                "images": images_to_json(message.images),
            }
        case AssistantMessage():
            return {
                "role": "assistant",
                "parts": parts_to_json(message),
                "finish": message.finish,
                "usage": None if message.usage is None else usage_to_json(message.usage),
                "model": message.model,
                "wire": message.wire,
            }
        case ToolResults():
            return {"role": "tool", "results": [_result_to_json(result) for result in message.results]}


def message_from_json(data: JsonObject) -> Message:
    """Raises ValueError for a role or part this version does not know, KeyError for half a message."""
    match data["role"]:
        case "user":
            return UserMessage(data["text"], data["kind"], images_from_json(data["images"]))
        case "assistant":
            usage = data["usage"]
            return AssistantMessage(
                parts_from_json(data["parts"]),
                cast("Finish", data["finish"]),
                None if usage is None else usage_from_json(usage),
                data["model"],
                data["wire"],
            )
        case "tool":
            return ToolResults(tuple(_result_from_json(result) for result in data["results"]))
        case other:
            raise ValueError(f"a message of role '{other}' is not known here")


def messages_to_json(messages: Iterable[Message]) -> tuple[JsonObject, ...]:
    return tuple(message_to_json(message) for message in messages)


def messages_from_json(data: Iterable[JsonObject]) -> tuple[Message, ...]:
    return tuple(message_from_json(message) for message in data)


def images_to_json(images: Iterable[Image]) -> tuple[JsonObject, ...]:
    return tuple({"media_type": image.media_type, "data": image.data} for image in images)


def images_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Image, ...]:
    return tuple(Image(image["media_type"], image["data"]) for image in data)


def _result_to_json(result: ToolResult) -> JsonObject:
    return {
        "call_id": result.call_id,
        "name": result.name,
        "content": result.content,
        "kind": result.kind,
        "images": images_to_json(result.images),
    }


def _result_from_json(data: JsonObject) -> ToolResult:
    return ToolResult(
        data["call_id"],
        data["name"],
        data["content"],
        cast("ResultKind", data["kind"]),
        images_from_json(data["images"]),
    )


# --- what events stand for in a history --------------------------------------------------------------------------


def reply_of(event: ModelFinished) -> AssistantMessage:
    """The reply an event records. An estimated usage is ours, not the provider's, and is no part of the message."""
    usage = None if event.usage.get("estimated") else usage_from_json(event.usage)
    parts = (
        parts_from_json(event.parts)
        if event.parts is not None
        else ((Reasoning(event.reasoning),) if event.reasoning else ()) + ((Text(event.text),) if event.text else ())
    )
    return AssistantMessage(parts, cast("Finish", event.finish), usage, event.model, event.wire)


def result_of(event: ToolFinished) -> ToolResult:
    """The result an event records, as the model reads it."""
    return ToolResult(
        event.call_id,
        event.name,
        event.result,
        cast("ResultKind", event.kind),
        images_from_json(event.images) if event.images else (),
    )


def message_of(event: MessageReceived) -> UserMessage:
    """How another actor's message enters a history."""
    return UserMessage(f"Message from {event.sender}:\n{event.text}", "note")
