"""A Responses stream assembled into a reply: items by output index, each told up to four times, ever more fully.

Deltas come first, a `.done` replaces them, the item's own end replaces both, the response's end replaces or supplies
items: and any of the four may be all there is. A later form that holds nothing takes nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from runtime.messages import Finish, Opaque, Part, Reasoning, Text, ToolCall, Usage
from runtime.model import Delta, DeltaKind, ProviderError, Reply
from runtime.shapes import is_list, is_object

from .assembly import Assembly, as_id, tool_call
from .failures import protocol
from .surrogates import repaired
from .usage import responses_usage

_INCOMPLETE: dict[str, Finish] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "context_window_exceeded": "context_window",
}
_KNOWN_CALL = {"type", "call_id", "name", "arguments", "status"}
_DELTAS: dict[str, tuple[str, str, DeltaKind]] = {
    # event: the kind of item it belongs to, the list its part stands in, what to show it as
    "response.output_text": ("message", "output_text", "text"),
    "response.refusal": ("message", "refusal", "text"),
    "response.function_call_arguments": ("function_call", "arguments", "arguments"),
    "response.reasoning_summary_text": ("reasoning", "summary", "reasoning"),
    "response.reasoning_text": ("reasoning", "content", "reasoning"),
}


@attrs.define(eq=False)
class _Item:
    """One output item: its fullest form so far, and its text by (list, part), which deltas add to."""

    kind: str
    form: dict[str, Any]
    number: int = 0
    texts: dict[tuple[str, int], list[str]] = attrs.field(factory=dict[tuple[str, int], list[str]])
    shown: bool = False


class ResponsesAssembly(Assembly):
    wire = "openai-responses"

    def __init__(self, headers: Mapping[str, str], now: float | None = None) -> None:
        super().__init__(headers, now)
        self._items: dict[int, _Item] = {}
        self._calls = 0
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._live: tuple[Any, Any] | None = None
        self._pieces: list[str] = []  # of the text under way, at `_live`

    def event(self, name: str, data: str, out: list[Delta]) -> None:
        if data[0] == "{" or data.strip() != "[DONE]":
            super().event(name, data, out)

    def chunk(self, name: str, chunk: dict[str, Any], out: list[Delta]) -> None:
        kind = str(chunk.get("type") or name)
        if kind == "response.output_text.delta" and self._live is not None:
            text = chunk.get("delta")
            if self._live == (chunk.get("output_index"), chunk.get("content_index")) and type(text) is str:
                if text:
                    self._pieces.append(text)
                    self._show("text", text, 0, out)
                return
        self._live = None
        stem, _, stage = kind.rpartition(".")
        if stem in _DELTAS and stage in ("delta", "done"):
            self._text(stem, stage, chunk, out)
            return
        match kind:
            case "response.output_item.added" | "response.output_item.done":
                item = chunk.get("item")
                if is_object(item):
                    self._item(self._index(chunk), item, out, whole=kind.endswith("done"))
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                response = chunk.get("response")
                self._end_with(stage, response if is_object(response) else {}, out)
            case _:
                if kind == "error" or name == "error" or chunk.get("error"):
                    self.fail(chunk.get("error") or chunk)

    def whole(self, body: dict[str, Any], out: list[Delta]) -> bool:
        if body.get("object") != "response" and not is_list(body.get("output")):
            return False
        self._end_with(str(body.get("status") or "completed"), body, out)
        return True

    def fault(self) -> ProviderError | None:
        if self._finish is None:
            return self._cut_off()
        nameless = any(i.kind == "function_call" and not as_id(i.form.get("name")) for i in self._items.values())
        if nameless and self._finish == "stop":
            return protocol("the server sent a tool call without a name", retryable=True)
        return None

    def reply(self) -> Reply:
        parts: list[Part] = []
        refused = False
        for index in sorted(self._items):
            item = self._items[index]
            refused = refused or any(place == "refusal" for place, _ in item.texts)
            parts.extend(_parts(item))
        finish = self._finish or "stop"
        if finish == "stop":
            calls = any(isinstance(part, ToolCall) for part in parts)
            finish = "tool_calls" if calls else "refusal" if refused else "stop"
        if self.error is not None:
            finish = "length"
        return Reply(tuple(parts), finish, self._usage, None, self.wire)

    def _index(self, chunk: Mapping[str, Any]) -> int:
        """An event's item, by output index: ids change from event to event at some gateways."""
        index = chunk.get("output_index")
        if isinstance(index, int):
            return index
        name = as_id(chunk.get("item_id"))
        for known, item in self._items.items():
            if name is not None and item.form.get("id") == name:
                return known
        return max(self._items, default=-1) + ("item" in chunk or not self._items)

    def _at(self, index: int, kind: str, form: dict[str, Any]) -> _Item:
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = _Item(kind, form)
            if kind == "function_call":
                item.number, self._calls = self._calls, self._calls + 1
        return item

    def _text(self, stem: str, stage: str, chunk: dict[str, Any], out: list[Delta]) -> None:
        kind, place, shown_as = _DELTAS[stem]
        item = self._at(self._index(chunk), kind, {"type": kind})
        at = (place, _number(chunk.get("summary_index" if place == "summary" else "content_index")))
        if stage == "delta":
            text = chunk.get("delta")
            if isinstance(text, str) and text:
                if place == "summary" and at not in item.texts and item.texts:
                    self._show(shown_as, "\n\n", 0, out)
                pieces = item.texts.setdefault(at, [])
                pieces.append(text)
                item.shown = True
                if place == "output_text":
                    self._live = (chunk.get("output_index"), chunk.get("content_index"))
                    self._pieces = pieces
                self._show(shown_as, text, item.number, out)
            return
        text = chunk.get({"refusal": "refusal", "arguments": "arguments"}.get(place, "text"))
        if kind == "function_call" and as_id(chunk.get("name")) and not item.form.get("name"):
            item.form["name"] = chunk["name"]
        if isinstance(text, str) and text:
            if at not in item.texts:
                item.shown = True
                self._show(shown_as, text, item.number, out)
            item.texts[at] = [text]

    def _item(self, index: int, form: dict[str, Any], out: list[Delta], *, whole: bool) -> None:
        kind = str(form.get("type") or "")
        item = self._at(index, kind, form)
        if item.kind != kind:
            item = self._items[index] = _Item(kind, form, item.number)
        item.form = {**item.form, **{key: value for key, value in form.items() if value not in (None, "", [])}}
        texts = _texts(form)
        if not texts:
            return
        if whole or not item.texts:
            places = {place for place, _ in texts}
            item.texts = {at: pieces for at, pieces in item.texts.items() if at[0] not in places}
            item.texts.update(texts)
        if not item.shown:
            item.shown = True
            for (place, _), pieces in texts.items():
                self._show(_shown_as(place), "".join(pieces), item.number, out)

    def _end_with(self, stage: str, response: dict[str, Any], out: list[Delta]) -> None:
        usage = response.get("usage")
        if is_object(usage) and usage:
            self._usage = responses_usage(usage)
        output = response.get("output")
        if is_list(output):
            self._snapshot([item for item in output if is_object(item)], out)
        status = response.get("status")
        match status if status in ("incomplete", "failed", "cancelled") else stage:
            case "failed":
                self.fail(response.get("error") or {"message": "the server said that the response failed"})
            case "cancelled":
                self.fail({"message": "the server cancelled the response"})
            case "incomplete":
                details = response.get("incomplete_details")
                reason = details.get("reason") if is_object(details) else None
                self._finish = _INCOMPLETE.get(str(reason), "length")
            case "completed":
                self._finish = "stop"
            case _:
                return  # a body still in progress: no end
        self.done = True

    def _snapshot(self, output: list[dict[str, Any]], out: list[Delta]) -> None:
        """The items of the response's end. Gateways leave items out of it, so each looks for the one it completes."""
        taken: set[int] = set()
        for position, form in enumerate(output):
            index = self._match(position, form, taken)
            taken.add(index)
            self._item(index, form, out, whole=True)

    def _match(self, position: int, form: dict[str, Any], taken: set[int]) -> int:
        free = {index: item for index, item in self._items.items() if index not in taken}
        for key in ("id", "call_id"):
            for index, item in free.items():
                if form.get(key) and item.form.get(key) == form[key]:
                    return index
        kind = form.get("type")
        if position in free and free[position].kind == kind:
            return position
        for index in sorted(free):
            if free[index].kind == kind:
                return index
        return position if position not in self._items else max(self._items) + 1


def _parts(item: _Item) -> list[Part]:
    match item.kind:
        case "message":
            opaque = {key: item.form[key] for key in ("id", "phase") if item.form.get(key)}
            texts = (repaired("".join(item.texts[at])) for at in sorted(item.texts, key=lambda at: at[1]))
            return [Text(text, opaque or None) for text in texts if text]
        case "function_call":
            name = as_id(item.form.get("name"))
            if name is None:
                return []
            extra = {k: v for k, v in item.form.items() if k not in _KNOWN_CALL and v is not None}
            pieces = item.texts.get(("arguments", 0), [])
            id = as_id(item.form.get("call_id")) or as_id(item.form.get("id"))
            return [tool_call(name, pieces, id, extra)]
        case "reasoning":
            form = {key: value for key, value in item.form.items() if value is not None and key != "status"}
            form.setdefault("summary", [])
            return [Reasoning(_reasoning(item), form)]
        case _:
            return [Opaque(item.form)]


def _reasoning(item: _Item) -> str:
    """The summary if there is one, else the reasoning itself."""
    for place, glue in (("summary", "\n\n"), ("content", "")):
        at = sorted(key for key in item.texts if key[0] == place)
        if at:
            return repaired(glue.join("".join(item.texts[key]) for key in at))
    return ""


def _texts(form: Mapping[str, Any]) -> dict[tuple[str, int], list[str]]:
    """The texts inside an item's form, where their deltas would have gone."""
    texts: dict[tuple[str, int], list[str]] = {}
    if form.get("type") == "function_call":
        arguments = form.get("arguments")
        if isinstance(arguments, str) and arguments:
            texts["arguments", 0] = [arguments]
        return texts
    for place in ("content", "summary"):
        parts = form.get(place)
        if not is_list(parts):
            continue
        for number, part in enumerate(parts):
            match part:
                case {"type": "refusal", "refusal": str(text)} if text:
                    texts["refusal", number] = [text]
                case {"type": "output_text" | "text", "text": str(text)} if text:
                    texts["output_text", number] = [text]
                case {"text": str(text)} if text:
                    texts[place, number] = [text]
                case _:
                    pass
    return texts


def _shown_as(place: str) -> DeltaKind:
    match place:
        case "arguments":
            return "arguments"
        case "summary" | "content":
            return "reasoning"
        case _:
            return "text"


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
