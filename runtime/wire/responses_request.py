"""Responses requests: a history of items, sent whole each time and stored nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runtime.messages import (
    AssistantMessage,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)
from runtime.model import ModelRequest

from .dialects import Dialect
from .encoding import (
    NOTHING,
    Piece,
    call_id,
    effort,
    fields,
    json_bytes,
    same_origin,
    to_json,
    tool_list,
    tool_name,
)
from .output_schema import is_strict

_TOOL = b'{"type":"function","name":%b,"description":%b,"parameters":%b,"strict":false}'
_REASONS = re.compile(r"^(o\d|gpt-[5-9](?!.*chat)|gpt-oss|codex)")


class ResponsesWriter:
    def __init__(self, dialect: Dialect, provider: str, cache_key: str | None) -> None:
        self._dialect = dialect
        self._provider = provider
        self.replays = True
        self.asks_for_schema = True
        self._cache_key = cache_key

    def head(self, request: ModelRequest) -> bytes:
        instructions = "\n\n".join(text for text in request.system if text)
        return b"".join(
            (
                b'{"model":%s' % json_bytes(request.model),
                tool_list(_TOOL, request.tools) if request.tools else b"",
                fields(instructions=instructions or None),
                b',"input":[',
            )
        )

    def joined(self, request: ModelRequest, pieces: list[bytes]) -> list[bytes]:
        return pieces

    def piece(self, message: Message, before: Message | None, model: str) -> Piece:
        left_out = 0
        match message:
            case UserMessage():
                items = [_user(message)]
            case ToolResults():
                items = [_result(result) for result in message.results]
            case AssistantMessage():
                items, left_out = self._assistant(message, model)
        data = b",".join(json_bytes(item) for item in items)
        return Piece(b"," + data if before is not None and data else data, left_out)

    def tail(self, request: ModelRequest) -> bytes:
        dialect, settings = self._dialect, request.settings
        parts = [b"]", fields(stream=True, store=False, max_output_tokens=request.max_output_tokens)]
        parts.append(fields(temperature=settings.temperature, top_p=settings.top_p))
        if request.tools:
            if request.tool_choice != "auto":
                parts.append(fields(tool_choice=request.tool_choice))
            if not settings.parallel_calls:
                parts.append(fields(parallel_tool_calls=False))
        if settings.thinking is not None and dialect.reasoning != "none":
            parts.append(fields(reasoning={"effort": effort(settings.thinking), "summary": "auto"}))
        if dialect.encrypted_reasoning and (settings.thinking is not None or _REASONS.match(request.model)):
            # Models that do not reason refuse to be asked for it.
            parts.append(fields(include=["reasoning.encrypted_content"]))
        schema = request.output_schema if self.asks_for_schema and dialect.schema != "none" else None
        if schema is not None and (dialect.schema_with_tools or not request.tools):
            named = {"type": "json_schema", "name": "output", "schema": schema, "strict": is_strict(schema)}
            parts.append(fields(text={"format": named}))
        if dialect.cache == "key":
            parts.append(fields(prompt_cache_key=(self._cache_key or request.actor)[-64:] or None))
        parts.append(b"}")
        return b"".join(parts)

    def _assistant(self, message: AssistantMessage, model: str) -> tuple[list[dict[str, Any]], int]:
        ours = self.replays and same_origin(
            message, "openai-responses", self._provider, model, strict=self._dialect.own_model_only
        )
        items: list[dict[str, Any]] = []
        left_out = 0
        for part in message.parts:
            match part:
                case Text(text, opaque):
                    if text:
                        _say(items, text, opaque if ours and opaque else {})
                case ToolCall():
                    items.append(self._call(part, ours=ours))
                    left_out += int(bool(part.extra) and not ours)
                case Reasoning(opaque=None):
                    pass
                case Reasoning(opaque=opaque) | Opaque(opaque):
                    if ours and opaque is not None and self._readable_there(opaque):
                        items.append(dict(opaque))
                    else:
                        left_out += 1
        while items and items[-1].get("type") == "reasoning":
            items.pop()  # cut off before what it led to, and refused without that
            left_out += 1
        if not items:
            _say(items, NOTHING, {})
        return items, left_out

    def _readable_there(self, item: Mapping[str, Any]) -> bool:
        """Nothing is stored there, so a reasoning item means something only by its encrypted content."""
        encrypted = self._dialect.encrypted_reasoning
        return item.get("type") != "reasoning" or not encrypted or bool(item.get("encrypted_content"))

    def _call(self, call: ToolCall, *, ours: bool) -> dict[str, Any]:
        arguments = "{}"
        if call.arguments is not None:
            arguments = to_json(call.arguments)
        elif self._dialect.raw_arguments and call.raw:
            arguments = call.raw
        return {
            **(call.extra if call.extra and ours else {}),
            "type": "function_call",
            "call_id": call_id(call.id),
            "name": tool_name(call.name),
            "arguments": arguments,
        }


def _say(items: list[dict[str, Any]], text: str, opaque: Mapping[str, Any]) -> None:
    """Text as a message item; neighbouring parts of one item (the same id and phase) go back as one."""
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    last = items[-1] if items else {}
    if last.get("type") == "message" and {k: last[k] for k in ("id", "phase") if k in last} == dict(opaque):
        last["content"].append(part)
    else:
        items.append({"type": "message", "role": "assistant", **opaque, "content": [part]})


def _user(message: UserMessage) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if message.text or not message.images:
        content.append({"type": "input_text", "text": message.text or NOTHING})
    content.extend(_image(image) for image in message.images)
    return {"type": "message", "role": "user", "content": content}


def _result(result: ToolResult) -> dict[str, Any]:
    output: Any = result.content or NOTHING
    if result.images:
        output = [{"type": "input_text", "text": output}, *(_image(image) for image in result.images)]
    return {"type": "function_call_output", "call_id": call_id(result.call_id), "output": output}


def _image(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:{image.media_type};base64,{image.data}", "detail": "auto"}
