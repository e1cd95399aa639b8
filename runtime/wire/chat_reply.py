"""A Chat Completions stream assembled into a reply, with the liberties that compatible servers take.

Nothing of a chunk is validated: the few fields that matter are looked at and everything else is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from runtime.messages import Finish, Opaque, Part, Reasoning, Text, Usage
from runtime.model import Delta, ProviderError, Reply
from runtime.shapes import is_list, is_object

from .assembly import Assembly
from .chat_calls import Calls, merged
from .failures import protocol
from .reasoning_details import Details
from .surrogates import repaired
from .usage import chat_usage

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
    "model_length": "context_window",
    "model_context_window_exceeded": "context_window",
}
_BROKEN = {
    "error": {"message": "the server ended the reply with finish_reason 'error'"},
    "network_error": {"message": "the server ended the reply with finish_reason 'network_error'"},
    "insufficient_system_resource": {
        "message": "the server ran out of resources in the middle of the reply",
        "type": "overloaded",
    },
}
_Kind: TypeAlias = Literal["text", "reasoning", "reasoning_content", "thinking"]


@attrs.define
class _Run:
    """Neighbouring pieces of one kind."""

    kind: _Kind
    pieces: list[str]


class ChatAssembly(Assembly):
    """`n` is how many answers were asked for; only the first is read."""

    wire = "openai-chat"

    def __init__(self, headers: Mapping[str, str], now: float | None = None, n: int = 1) -> None:
        super().__init__(headers, now)
        self._n = n
        self._runs: list[_Run] = []
        self._text: list[str] | None = None  # the pieces of the run under way, when it is text
        self._calls = Calls()
        self._details = Details()
        self._extra: dict[str, Any] = {}
        self._finish: Finish | None = None
        self._ended = False
        self._any = False
        self._refused = False
        self._usage: Usage | None = None
        self._cost: float | None = None

    def event(self, name: str, data: str, out: list[Delta]) -> None:
        if data[0] != "{" and data.strip() == "[DONE]":
            self._ended = self._any
            self.done = True
            return
        super().event(name, data, out)

    def chunk(self, name: str, chunk: dict[str, Any], out: list[Delta]) -> None:
        self._any = True
        choices = chunk.get("choices")
        if chunk.get("error") or name == "error" or (not choices and _is_error(chunk)):
            self._count(chunk.get("usage"))
            self.fail(chunk.get("error") or chunk)
            return
        if chunk.get("usage"):
            self._count(chunk["usage"])
        if "x_groq" in chunk:
            self._groq(chunk["x_groq"])
        if not choices or not is_list(choices):
            return
        choice = choices[0] if len(choices) == 1 and self._n == 1 else self._choice(choices)
        if not is_object(choice):
            return
        delta = choice.get("delta")
        if is_object(delta):
            # The two shapes most chunks have, then all others.
            if len(delta) == 1 and self._text is not None and type(content := delta.get("content")) is str:
                if content:
                    self._text.append(content)
                    self._show("text", content, 0, out)
            elif len(delta) == 1 and (entries := delta.get("tool_calls")):
                self._entries(entries, out)
            else:
                self._delta(delta, out)
        elif is_object(message := choice.get("message")) and not self._runs and not self._calls:
            self._delta(message, out)
        if choice.get("usage"):
            self._count(choice["usage"])
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._finished(reason, choice)

    def whole(self, body: dict[str, Any], out: list[Delta]) -> bool:
        if not body.get("choices"):
            return False
        self.chunk("", body, out)
        self._ended = True
        return True

    def fault(self) -> ProviderError | None:
        if self._finish is None and not self._ended:
            return self._cut_off()
        if self._calls.nameless and self._finish not in ("length", "context_window"):
            return protocol("the server sent a tool call without a name", retryable=True)
        return None

    def reply(self) -> Reply:
        calls = self._calls.calls()
        parts = [*self._readable(), *calls]
        finish = self._finish or "stop"
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls else "refusal" if self._refused else "stop"
        if self.error is not None:
            finish = "length"
        return Reply(tuple(parts), finish, self._usage, self._cost, self.wire)

    def _choice(self, choices: list[Any]) -> dict[str, Any] | None:
        """The answer that is read: number 0, or, when only one was asked for, whatever number a proxy gave it."""
        for choice in choices:
            if is_object(choice) and choice.get("index") in (0, None):
                return choice
        first = choices[0]
        return first if self._n == 1 and is_object(first) else None

    def _delta(self, delta: dict[str, Any], out: list[Delta]) -> None:
        self._reason(delta, out)
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._piece("text", content, out)
        elif is_list(content):
            self._content(content, out)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._piece("text", refusal, out)  # the only words the user gets
        entries = delta.get("tool_calls")
        if is_list(entries) and entries:
            self._entries(entries, out)
        elif is_object(legacy := delta.get("function_call")) and not self._calls.modern:
            for index, text in self._calls.add_legacy(legacy):
                self._show("arguments", text, index, out)
        if is_object(extra := delta.get("extra_content")):
            self._extra = merged(self._extra, extra)

    def _entries(self, entries: Any, out: list[Delta]) -> None:
        if is_list(entries):
            for entry in entries:
                if is_object(entry):
                    for index, text in self._calls.add(entry):
                        self._show("arguments", text, index, out)

    def _reason(self, delta: dict[str, Any], out: list[Delta]) -> None:
        """The readable reasoning of a delta, counted once whichever of its three places it stands in."""
        text = delta.get("reasoning_content")
        kind: _Kind = "reasoning_content"
        if not isinstance(text, str) or not text:
            text, kind = delta.get("reasoning"), "reasoning"
        details = delta.get("reasoning_details")
        detailed = self._details.add(details) if is_list(details) else ""
        if isinstance(text, str) and text:
            self._details.mirrored = True
        elif detailed and not self._details.mirrored:
            text, kind = detailed, "reasoning"
        if isinstance(text, str) and text:
            self._piece(kind, text, out)

    def _content(self, parts: list[Any], out: list[Delta]) -> None:
        """Mistral's list of parts: text and thinking count, references do not."""
        for part in parts:
            match part:
                case {"type": "text", "text": str(text)} if text:
                    self._piece("text", text, out)
                case {"type": "thinking", "thinking": str(text)} if text:
                    self._piece("thinking", text, out)
                case {"type": "thinking", "thinking": [*inner]}:
                    for item in inner:
                        match item:
                            case {"text": str(text)} if text:
                                self._piece("thinking", text, out)
                            case _:
                                pass
                case str() if part:
                    self._piece("text", part, out)
                case _:
                    pass

    def _piece(self, kind: _Kind, text: str, out: list[Delta]) -> None:
        if not self._runs or self._runs[-1].kind != kind:
            self._runs.append(_Run(kind, []))
            self._text = self._runs[-1].pieces if kind == "text" else None
        self._runs[-1].pieces.append(text)
        self._show("text" if kind == "text" else "reasoning", text, 0, out)

    def _finished(self, reason: str, choice: dict[str, Any]) -> None:
        reason = reason.lower()
        if reason in _BROKEN:
            error = choice.get("error")
            self.fail(error if is_object(error) and error else _BROKEN[reason])
            return
        finish = _FINISHES.get(reason, "stop")
        if self._finish in (None, "stop", "tool_calls"):  # a later "stop" does not undo a cut
            self._finish = finish

    def _count(self, raw: Any) -> None:
        """The last usage that says anything; a null or an all-zero one after it takes nothing back."""
        if not is_object(raw) or not raw:
            return
        usage = chat_usage(raw)
        if self._usage is None or usage.total:
            self._usage = usage
        cost = _usd(raw.get("cost"))
        if cost is not None:
            details = raw.get("cost_details")
            if raw.get("is_byok") is True and is_object(details):  # then OpenRouter bills only its fee
                cost += _usd(details.get("upstream_inference_cost")) or 0.0
            self._cost = cost

    def _groq(self, extra: Any) -> None:
        if is_object(extra):
            self._count(extra.get("usage"))
            if extra.get("error"):
                self.fail(extra["error"])

    def _readable(self) -> list[Part]:
        parts: list[Part] = []
        details = self._details.merged()
        for run in self._runs:
            text = repaired("".join(run.pieces))
            if run.kind == "text":
                parts.append(Text(text))
            elif run.kind == "thinking":
                block = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
                parts.append(Reasoning(text, block))
            elif details:
                parts.append(Reasoning(text, {"reasoning_details": details}))
                details = []
            else:
                parts.append(Reasoning(text, {run.kind: text}))
        if details:
            parts.insert(0, Opaque({"reasoning_details": details}))
        if self._extra:
            parts.append(Opaque({"extra_content": self._extra}))
        return parts


def _usd(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def _is_error(chunk: Mapping[str, Any]) -> bool:
    """A flat error object in place of a chunk."""
    if chunk.get("object") == "error" or chunk.get("type") == "error":
        return True
    return isinstance(chunk.get("message"), str) and any(key in chunk for key in ("code", "type", "statusCode"))
