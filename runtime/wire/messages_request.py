"""Anthropic Messages requests: blocks, cache markers, thinking in both its forms.

Neighbouring user messages and tool results make one user message, results first, as they come in the history.
"""

from __future__ import annotations

import re
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
    budget,
    call_id,
    effort,
    fields,
    json_bytes,
    same_origin,
    tool_list,
    tool_name,
)
from .output_schema import is_strict

_MARK = {"type": "ephemeral"}
_MARK_MEMBER = b',"cache_control":{"type":"ephemeral"}}'
_TOOL = b'{"name":%b,"description":%b,"input_schema":%b}'
_USER = b'{"role":"user","content":['
_END = b"]}"
_BEGIN = b'{"role":"user","content":[{"type":"text","text":"(continued)"}]}'
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2})(?!\d))?(?!\d)")
_LEAST_BUDGET = 1024


class MessagesWriter:
    def __init__(self, dialect: Dialect, provider: str) -> None:
        self._dialect = dialect
        self._provider = provider
        self.replays = True
        self.asks_for_schema = True
        self._marks = dialect.cache != "none" or dialect.name == "compatible"

    def head(self, request: ModelRequest) -> bytes:
        parts = [b'{"model":%s' % json_bytes(request.model)]
        if request.tools:
            parts.append(tool_list(_TOOL, request.tools, end=_MARK_MEMBER if self._marks else b""))
        system: list[dict[str, Any]] = [{"type": "text", "text": text} for text in request.system if text.strip()]
        if system and self._marks:
            system[-1]["cache_control"] = _MARK
        parts.append(fields(system=system or None))
        parts.append(b',"messages":[')
        return b"".join(parts)

    def piece(self, message: Message, before: Message | None, model: str) -> Piece:
        """A reply is a whole message behind the end of the one before; anything else the blocks of an open one."""
        left_out = 0
        inside = before is not None and not isinstance(before, AssistantMessage)
        match message:
            case UserMessage():
                blocks = _user(message)
            case ToolResults():
                blocks = [_result(result) for result in message.results] or [{"type": "text", "text": NOTHING}]
            case AssistantMessage():
                blocks, left_out = self._assistant(message, model)
        data = b",".join(json_bytes(block) for block in blocks)
        if isinstance(message, AssistantMessage):
            start = b"]}," if inside else b"," if before is not None else _BEGIN + b","
            return Piece(b'%s{"role":"assistant","content":[%s]}' % (start, data), left_out)
        start = b"," if inside else b"," + _USER if before is not None else _USER
        return Piece(start + data, left_out)

    def joined(self, request: ModelRequest, pieces: list[bytes]) -> list[bytes]:
        """The pieces with a cache marker at the end of the last two user turns, the last message closed.

        The marker of the step before stands on the second to last, so its prefix is found again however many blocks
        this round added.
        """
        if self._marks:
            for number in _turn_ends(request.messages):
                pieces[number] = pieces[number][:-1] + _MARK_MEMBER
        if request.messages and not isinstance(request.messages[-1], AssistantMessage):
            pieces.append(_END)
        return pieces

    def tail(self, request: ModelRequest) -> bytes:
        settings = request.settings
        version = claude_version(request.model)
        thinking = self._thinking(request, version)
        parts = [b"]", fields(max_tokens=request.max_output_tokens, stream=True)]
        if request.tools:
            forced = request.tool_choice == "required" and not _always_thinks(request.model, version)
            choice: dict[str, Any] = {"type": "any" if forced else request.tool_choice}
            if choice["type"] == "required":
                choice["type"] = "auto"  # such a model refuses a forced call, so it is only asked
            if not settings.parallel_calls and choice["type"] != "none":
                choice["disable_parallel_tool_use"] = True
            if choice != {"type": "auto"}:
                parts.append(fields(tool_choice=choice))
        if thinking is None and (version is None or version < (4, 7)):
            parts.append(fields(temperature=settings.temperature))
            if settings.temperature is None or version is None:
                parts.append(fields(top_p=settings.top_p))
        parts.append(fields(thinking=thinking, output_config=self._output(request, version, thinking)))
        parts.append(b"}")
        return b"".join(parts)

    def _thinking(self, request: ModelRequest, version: tuple[int, int] | None) -> dict[str, Any] | None:
        wanted = request.settings.thinking
        if _always_thinks(request.model, version):
            # Its words between calls come as thinking, and as nothing at all unless they are asked for.
            return {"type": "adaptive", "display": "summarized"}
        if wanted is None or (request.tools and request.tool_choice == "required"):
            return None  # a forced call and thinking exclude each other
        if version is not None and version >= (4, 6):
            return {"type": "adaptive"} if version < (4, 7) else {"type": "adaptive", "display": "summarized"}
        tokens = min(max(budget(wanted), _LEAST_BUDGET), request.max_output_tokens - 1)
        if tokens < _LEAST_BUDGET or self._began_without_thinking(request):
            return None
        return {"type": "enabled", "budget_tokens": tokens}

    def _began_without_thinking(self, request: ModelRequest) -> bool:
        """Whether a tool round is open whose first reply has no thinking to send back: then thinking is refused."""
        first: AssistantMessage | None = None
        for number in range(len(request.messages) - 1, -1, -1):
            message = request.messages[number]
            if isinstance(message, UserMessage) and not (
                number and isinstance(request.messages[number - 1], ToolResults)
            ):
                break  # a user turn without results closes the round before it
            if isinstance(message, AssistantMessage):
                first = message
        if first is None:
            return False
        ours = self.replays and same_origin(
            first, "anthropic-messages", self._provider, request.model, strict=self._dialect.own_model_only
        )
        kept = (self._kept(part) for part in first.parts)
        return not (ours and any(kept))

    def _output(
        self, request: ModelRequest, version: tuple[int, int] | None, thinking: dict[str, Any] | None
    ) -> dict[str, Any] | None:
        config: dict[str, Any] = {}
        wanted = request.settings.thinking
        if wanted is not None and thinking is not None and thinking["type"] == "adaptive":
            config["effort"] = effort(wanted)
        schema = request.output_schema if self.asks_for_schema else None
        if schema is not None and version is not None and version >= (4, 5) and is_strict(schema):
            config["format"] = {"type": "json_schema", "schema": schema}
        return config or None

    def _assistant(self, message: AssistantMessage, model: str) -> tuple[list[dict[str, Any]], int]:
        ours = self.replays and same_origin(
            message, "anthropic-messages", self._provider, model, strict=self._dialect.own_model_only
        )
        blocks: list[dict[str, Any]] = []
        left_out = 0
        for part in message.parts:
            match part:
                case Text(text, opaque):
                    if text.strip():  # blank text is refused
                        block: dict[str, Any] = {"type": "text", "text": text}
                        if ours and opaque and "citations" in opaque:
                            block["citations"] = opaque["citations"]
                        blocks.append(block)
                case ToolCall():
                    blocks.append(
                        {
                            **(part.extra if part.extra and ours else {}),
                            "type": "tool_use",
                            "id": call_id(part.id),
                            "name": tool_name(part.name),
                            "input": part.arguments if part.arguments is not None else {},
                        }
                    )
                    left_out += int(bool(part.extra) and not ours)
                case Reasoning(opaque=None):
                    pass
                case Reasoning(opaque=opaque) | Opaque(opaque):
                    if ours and self._kept(part):
                        blocks.append(dict(opaque or {}))
                    else:
                        left_out += 1
        if not blocks or blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            blocks.append({"type": "text", "text": NOTHING})  # a reply may neither be empty nor end in thinking
        return blocks, left_out

    def _kept(self, part: Any) -> bool:
        """Whether an opaque block is whole: thinking that was cut off has no signature, and is refused without."""
        match part:
            case Reasoning(opaque=opaque) if opaque is not None:
                return bool(opaque.get("signature")) or not self._dialect.signed_thinking
            case Opaque():
                return True
            case _:
                return False


def claude_version(model: str) -> tuple[int, int] | None:
    """The generation in a Claude model's name: what it takes as thinking and sampling depends on it."""
    found = _VERSION.search(model)
    if found:
        return (int(found[1]), int(found[2] or 0))
    return (5, 0) if "claude-mythos" in model else None


def _always_thinks(model: str, version: tuple[int, int] | None) -> bool:
    """Models whose thinking cannot be turned off, and which therefore refuse forced calls."""
    return version is not None and (version >= (5, 5) or "fable" in model or "mythos" in model)


def _turn_ends(messages: tuple[Message, ...]) -> list[int]:
    """Where the last two user turns end, the later one first."""
    ends: list[int] = []
    behind_is_reply = True
    for number in range(len(messages) - 1, -1, -1):
        reply = isinstance(messages[number], AssistantMessage)
        if behind_is_reply and not reply:
            ends.append(number)
            if len(ends) == 2:
                break
        behind_is_reply = reply
    return ends


def _result(result: ToolResult) -> dict[str, Any]:
    content: Any = result.content or NOTHING
    if result.images:
        content = [{"type": "text", "text": content}, *(_image(image) for image in result.images)]
    block = {"type": "tool_result", "tool_use_id": call_id(result.call_id), "content": content}
    if result.is_error:
        block["is_error"] = True
    return block


def _user(message: UserMessage) -> list[dict[str, Any]]:
    blocks = [_image(image) for image in message.images]
    if message.text.strip() or not blocks:
        blocks.append({"type": "text", "text": message.text if message.text.strip() else NOTHING})
    return blocks


def _image(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}
