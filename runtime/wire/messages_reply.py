"""An Anthropic Messages stream assembled into a reply, block by block, each fit to be sent back unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from runtime.messages import Finish, Opaque, Part, Reasoning, Text, ToolCall, Usage
from runtime.model import Delta, ProviderError, Reply
from runtime.shapes import is_list, is_object

from .arguments import parse_arguments
from .assembly import Assembly, as_id, tool_call
from .failures import protocol
from .surrogates import repaired
from .usage import messages_usage

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
    "content_filter": "content_filter",
}
_STARTS = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
_KNOWN_CALL = {"type", "id", "name", "input", "cache_control"}


@attrs.define(eq=False)
class _Block:
    """A content block as its start event gave it, and the pieces that came after."""

    index: Any
    kind: str
    start: dict[str, Any]
    number: int = 0
    pieces: list[str] = attrs.field(factory=list[str])
    citations: list[Any] = attrs.field(factory=list[Any])
    stopped: bool = False
    strange: bool = False  # had deltas nobody here knows, so it is not whole


class MessagesAssembly(Assembly):
    wire = "anthropic-messages"

    def __init__(self, headers: Mapping[str, str], now: float | None = None) -> None:
        super().__init__(headers, now)
        self._blocks: list[_Block] = []
        self._at: dict[Any, _Block] = {}
        self._calls = 0
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self._started = False

    def event(self, name: str, data: str, out: list[Delta]) -> None:
        if data[0] == "{" or data.strip() != "[DONE]":
            super().event(name, data, out)

    def chunk(self, name: str, chunk: dict[str, Any], out: list[Delta]) -> None:
        kind = chunk.get("type") or name
        if kind == "content_block_delta":
            delta = chunk.get("delta")
            if is_object(delta):
                self._delta(chunk.get("index"), delta, out)
        elif kind == "content_block_start":
            block = chunk.get("content_block")
            if is_object(block):
                self._start(chunk.get("index"), block, out)
        elif kind == "content_block_stop":
            block = self._at.get(chunk.get("index"))
            if block is not None:
                block.stopped = True
        elif kind == "message_start":
            self._message(chunk.get("message"), out)
        elif kind == "message_delta":
            self._count(chunk.get("usage"))
            delta = chunk.get("delta")
            if is_object(delta) and delta.get("stop_reason"):
                self._reason = str(delta["stop_reason"])
        elif kind == "message_stop":
            self.done = True
        elif kind == "error" or name == "error" or chunk.get("error"):
            self.fail(chunk.get("error") or chunk)

    def whole(self, body: dict[str, Any], out: list[Delta]) -> bool:
        if not is_list(body.get("content")) or body.get("role", "assistant") != "assistant":
            return False
        self._message(body, out)
        self.done = True
        return True

    def fault(self) -> ProviderError | None:
        if self._reason is None:
            return self._cut_off()
        nameless = any(b.kind == "tool_use" and not as_id(b.start.get("name")) for b in self._blocks)
        if nameless and self._reason != "max_tokens":
            return protocol("the server sent a tool call without a name", retryable=True)
        return None

    def reply(self) -> Reply:
        parts = [part for block in self._ordered() if (part := _part(block)) is not None]
        calls = any(isinstance(part, ToolCall) for part in parts)
        finish = _FINISHES.get(self._reason or "", "stop")
        if finish in ("stop", "tool_calls", "pause"):
            finish = "tool_calls" if calls else "pause" if finish == "pause" else "stop"
        if self.error is not None:
            finish = "length"
        return Reply(tuple(parts), finish, self._counted(), None, self.wire)

    def _message(self, message: Any, out: list[Delta]) -> None:
        """The opening event, or a whole message; a repeated opening carries nothing new."""
        if not is_object(message) or self._started:
            return
        self._started = True
        self._count(message.get("usage"))
        if message.get("stop_reason"):
            self._reason = str(message["stop_reason"])
        content = message.get("content")
        if is_list(content):
            for index, block in enumerate(content):
                if is_object(block):
                    self._start(index, block, out)

    def _start(self, index: Any, start: dict[str, Any], out: list[Delta]) -> None:
        kind = str(start.get("type") or "")
        block = self._at.get(index)
        again = (
            block is not None and not block.stopped and block.kind == kind and block.start.get("id") == start.get("id")
        )
        if block is None or not again:
            block = self._begin(index, kind, start)
        match kind:
            case "text":
                self._text(block, "text", start.get("text"), out)
            case "thinking":
                self._text(block, "reasoning", start.get("thinking"), out)
                if again and start.get("signature"):
                    block.start["signature"] = start["signature"]
            case _:
                pass

    def _begin(self, index: Any, kind: str, start: dict[str, Any]) -> _Block:
        block = _Block(index, kind, dict(start))
        if kind == "tool_use":
            block.number, self._calls = self._calls, self._calls + 1
        if is_list(start.get("citations")):
            block.citations.extend(start["citations"])
        self._blocks.append(block)
        self._at[index] = block
        return block

    def _delta(self, index: Any, delta: dict[str, Any], out: list[Delta]) -> None:
        kind = str(delta.get("type") or "")
        block = self._at.get(index)
        if block is None and index is None and self._blocks:
            block = self._blocks[-1]
        if block is None:
            # A gateway lost the start: its text is still text, and a call without a name ends in an error.
            if kind not in _STARTS:
                return
            block = self._begin(index, _STARTS[kind], {"type": _STARTS[kind]})
        match kind:
            case "text_delta":
                self._text(block, "text", delta.get("text"), out)
            case "input_json_delta":
                text = delta.get("partial_json")
                if isinstance(text, str) and text:
                    block.pieces.append(text)
                    if block.kind == "tool_use":
                        self._show("arguments", text, block.number, out)
            case "thinking_delta":
                self._text(block, "reasoning", delta.get("thinking"), out)
            case "signature_delta":
                block.start["signature"] = delta.get("signature")
            case "citations_delta":
                block.citations.append(delta.get("citation"))
            case _:
                block.strange = True

    def _text(self, block: _Block, kind: Any, text: Any, out: list[Delta]) -> None:
        if isinstance(text, str) and text:
            block.pieces.append(text)
            self._show(kind, text, 0, out)

    def _ordered(self) -> list[_Block]:
        indexes = [block.index for block in self._blocks]
        if all(isinstance(index, int) for index in indexes) and len(set(indexes)) == len(indexes):
            return sorted(self._blocks, key=lambda block: block.index)
        return self._blocks

    def _count(self, usage: Any) -> None:
        """Totals so far: each field counts as it was last told, and null tells nothing."""
        if is_object(usage):
            self._usage.update({key: value for key, value in usage.items() if value is not None})

    def _counted(self) -> Usage | None:
        return messages_usage(self._usage) if self._usage else None


def _part(block: _Block) -> Part | None:
    match block.kind:
        case "text":
            text = repaired("".join(block.pieces))
            opaque = {"citations": block.citations} if block.citations else None
            return Text(text, opaque) if text or opaque else None
        case "thinking":
            text = repaired("".join(block.pieces))
            return Reasoning(text, {**block.start, "thinking": text})
        case "tool_use":
            return _call(block)
        case "redacted_thinking":
            return Opaque(block.start)
        case kind if kind.endswith("tool_use"):
            arguments = parse_arguments(block.pieces)[0] if block.pieces else block.start.get("input")
            return Opaque({**block.start, "input": arguments if is_object(arguments) else {}})
        case _:
            return None if block.strange or block.pieces else Opaque(block.start)


def _call(block: _Block) -> ToolCall | None:
    name = as_id(block.start.get("name"))
    if name is None:
        return None
    extra = {key: value for key, value in block.start.items() if key not in _KNOWN_CALL and value is not None}
    call = tool_call(name, block.pieces, as_id(block.start.get("id")), extra)
    given = block.start.get("input")
    if block.pieces or not given:
        return call
    if is_object(given):
        return attrs.evolve(call, arguments=given)
    return attrs.evolve(call, arguments=None, raw=str(given), arguments_error="the arguments are not an object")
