"""Chat Completions requests, with each dialect's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.messages import AssistantMessage, Message, Opaque, Reasoning, Text, ToolCall, ToolResults, UserMessage
from runtime.model import ModelRequest
from runtime.shapes import is_list

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

_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google documents for a call that another model made: Gemini 3 refuses one without a signature."""

_TOOL = b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}'
_BRIDGE = json_bytes({"role": "assistant", "content": "(continued)"})


class ChatWriter:
    def __init__(self, dialect: Dialect, provider: str, cache_key: str | None) -> None:
        self._dialect = dialect
        self._provider = provider
        self.replays = True
        self.asks_for_schema = True
        self._cache_key = cache_key

    def head(self, request: ModelRequest) -> bytes:
        parts = [b'{"model":%s' % json_bytes(request.model)]
        if request.tools:
            parts.append(tool_list(_TOOL, request.tools))
        parts.append(b',"messages":[')
        system = "\n\n".join(text for text in request.system if text)
        if system:
            # One message: the templates of local models refuse a second system message.
            parts.append(json_bytes({"role": "system", "content": system}))
        return b"".join(parts)

    def joined(self, request: ModelRequest, pieces: list[bytes]) -> list[bytes]:
        if pieces and not any(request.system):
            pieces[0] = pieces[0][1:]
        return pieces

    def piece(self, message: Message, before: Message | None, model: str) -> Piece:
        match message:
            case UserMessage():
                bridge = isinstance(before, ToolResults) and not self._dialect.user_after_tool
                turn = json_bytes({"role": "user", "content": _user(message)})
                return Piece((b"," + _BRIDGE if bridge else b"") + b"," + turn)
            case ToolResults():
                return Piece(b"".join(b"," + json_bytes(result) for result in self._results(message)))
            case AssistantMessage():
                encoded, left_out = self._assistant(message, model)
                return Piece(b"," + json_bytes(encoded), left_out)

    def tail(self, request: ModelRequest) -> bytes:
        dialect, settings = self._dialect, request.settings
        parts = [b"]", fields(stream=True)]
        if dialect.stream_usage:
            parts.append(fields(stream_options={"include_usage": True}))
        parts.append(fields(**{dialect.output_cap: request.max_output_tokens}))
        parts.append(fields(temperature=settings.temperature, top_p=settings.top_p))
        if request.tools:
            if request.tool_choice != "auto":
                parts.append(fields(tool_choice=request.tool_choice))
            if not settings.parallel_calls and dialect.parallel_switch:
                parts.append(fields(parallel_tool_calls=False))
        parts.append(self._thinking(request))
        parts.append(self._format(request))
        if dialect.cache == "key":
            parts.append(fields(prompt_cache_key=(self._cache_key or request.actor)[-64:] or None))
        elif dialect.cache == "automatic" and "claude" in request.model:
            parts.append(fields(cache_control={"type": "ephemeral"}))
        parts.append(b"}")
        return b"".join(parts)

    def _thinking(self, request: ModelRequest) -> bytes:
        thinking = request.settings.thinking
        if thinking is None:
            return b""
        match self._dialect.reasoning:
            case "effort":
                return fields(reasoning_effort=effort(thinking))
            case "openrouter":
                if isinstance(thinking, int):
                    return fields(reasoning={"max_tokens": thinking})
                return fields(reasoning={"effort": thinking})
            case "deepseek":
                level = "low" if effort(thinking) == "low" else "high"
                return fields(thinking={"type": "enabled"}, reasoning_effort=level)
            case "none":
                return b""

    def _format(self, request: ModelRequest) -> bytes:
        schema = request.output_schema
        if schema is None or not self.asks_for_schema or self._dialect.schema == "none":
            return b""
        if request.tools and not self._dialect.schema_with_tools:
            return b""  # its grammar for the answer would leave no room for a call, or the request is refused
        if self._dialect.schema == "json_object":
            return fields(response_format={"type": "json_object"})
        named = {"name": "output", "schema": schema, "strict": is_strict(schema)}
        return fields(response_format={"type": "json_schema", "json_schema": named})

    def _assistant(self, message: AssistantMessage, model: str) -> tuple[dict[str, Any], int]:
        dialect = self._dialect
        ours = self.replays and same_origin(
            message, "openai-chat", self._provider, model, strict=dialect.own_model_only
        )
        extra: dict[str, Any] = {}
        content: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        left_out = 0
        for part in message.parts:
            match part:
                case Text(text):
                    if text:
                        content.append({"type": "text", "text": text})
                case ToolCall():
                    entry, lost = self._call(part, ours=ours, first=not calls)
                    calls.append(entry)
                    left_out += lost
                case Reasoning(opaque=None):
                    pass
                case Reasoning(opaque=opaque) | Opaque(opaque):
                    if not ours:
                        left_out += 1
                    elif opaque is not None and opaque.get("type") == "thinking":
                        content.append(dict(opaque))
                    elif dialect.replay or (opaque is not None and "extra_content" in opaque):
                        _merge(extra, opaque or {})
        encoded: dict[str, Any] = {"role": "assistant"}
        if any(block["type"] == "thinking" for block in content):
            encoded["content"] = content
        else:
            encoded["content"] = "".join(block["text"] for block in content) or (None if calls else NOTHING)
        if dialect.reasoning == "deepseek" and calls:
            extra.setdefault("reasoning_content", "")  # while thinking it refuses a call without it
        encoded.update(extra)
        if calls:
            encoded["tool_calls"] = calls
        return encoded, left_out

    def _call(self, call: ToolCall, *, ours: bool, first: bool) -> tuple[dict[str, Any], int]:
        arguments = "{}"
        if call.arguments is not None:
            arguments = to_json(call.arguments)
        elif self._dialect.raw_arguments and call.raw:
            arguments = call.raw
        entry: dict[str, Any] = {
            "id": call_id(call.id, self._dialect.call_ids),
            "type": "function",
            "function": {"name": tool_name(call.name), "arguments": arguments},
        }
        if call.extra and ours:
            entry.update(call.extra)
        elif self._dialect.thought_signatures and first:
            entry["extra_content"] = _UNSIGNED
        return entry, int(bool(call.extra) and not ours)

    def _results(self, message: ToolResults) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for result in message.results:
            results.append(
                {
                    "role": "tool",
                    "tool_call_id": call_id(result.call_id, self._dialect.call_ids),
                    "content": result.content or NOTHING,
                }
            )
            if result.images:
                # A tool message holds text only, so pictures follow as the user's.
                shown.append({"type": "text", "text": f"Images from {result.name}:"})
                shown.extend(_image(image.media_type, image.data) for image in result.images)
        if shown:
            results.append({"role": "user", "content": shown})
        return results


def _user(message: UserMessage) -> Any:
    if not message.images:
        return message.text or NOTHING
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    return parts + [_image(image.media_type, image.data) for image in message.images]


def _image(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}


def _merge(extra: dict[str, Any], opaque: Mapping[str, Any]) -> None:
    """Runs of one field make one field of the message: texts are joined, lists follow one another."""
    for key, value in opaque.items():
        old = extra.get(key)
        if (isinstance(old, str) and isinstance(value, str)) or (is_list(old) and is_list(value)):
            extra[key] = [*old, *value] if is_list(old) else f"{old}{value}"
        else:
            extra[key] = value
