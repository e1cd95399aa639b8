"""Tool calls out of Chat Completions fragments, whatever a server does to index, id and name.

The rules, in the order they are tried: a usable index names the call, and a named entry of another id, or a second
whole entry of another name, begins a new one at the same index. Without an index a known id continues its call, an
unknown one begins one, a name begins one if nothing is open, and everything else continues the call begun last.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from runtime.messages import ToolCall
from runtime.shapes import is_object

from .arguments import is_complete
from .assembly import as_id, tool_call

_KNOWN = {"index", "id", "type", "function"}


@attrs.define(eq=False)
class _Call:
    number: int
    id: str | None = None
    name: str = ""
    pieces: list[str] = attrs.field(factory=list[str])
    extra: dict[str, Any] = attrs.field(factory=dict[str, Any])


class Calls:
    """The calls of one reply, in the order they began."""

    def __init__(self) -> None:
        self.modern = False
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def nameless(self) -> bool:
        return any(not call.name for call in self._calls)

    def add(self, entry: dict[str, Any]) -> list[tuple[int, str]]:
        """Take one entry of `delta.tool_calls` in; the argument text it added comes back with its call's number."""
        if not self.modern:
            # A server that sends both forms sends the same call twice.
            self.modern = True
            self._calls.clear()
        function = entry.get("function")
        named: dict[str, Any] = function if is_object(function) else {}
        if len(entry) == 2 and len(named) == 1:
            index, text = entry.get("index"), named.get("arguments")
            begun = self._by_index.get(index) if type(index) is int else None
            if begun is not None and type(text) is str and text:
                begun.pieces.append(text)  # what most entries are
                return [(begun.number, text)]
        name = as_id(named.get("name")) or ""
        call = self._call(entry.get("index"), as_id(entry.get("id")), name)
        for key, value in entry.items():
            if key not in _KNOWN and value is not None:
                call.extra[key] = merged(call.extra.get(key), value)
        return self._grow(call, name, named.get("arguments"))

    def add_legacy(self, function: dict[str, Any]) -> list[tuple[int, str]]:
        """Take a `delta.function_call` in: there is one call, and it has no id."""
        call = self._calls[0] if self._calls else self._begin(None)
        return self._grow(call, as_id(function.get("name")) or "", function.get("arguments"))

    def calls(self) -> list[ToolCall]:
        """The calls as they stand; one whose name never came is left out."""
        return [tool_call(call.name, call.pieces, call.id, call.extra) for call in self._calls if call.name]

    def _call(self, index: Any, id: str | None, name: str) -> _Call:
        if isinstance(index, str) and index.removeprefix("-").isdecimal():
            index = int(index)
        if isinstance(index, int) and not isinstance(index, bool):
            call = self._by_index.get(index)
            if call is None or (name and self._differs(call, id, name)):
                call = self._by_index[index] = self._begin(id)
        else:
            call = self._unnumbered(id, name)
        if call.id is None:
            call.id = id
        return call

    def _differs(self, call: _Call, id: str | None, name: str) -> bool:
        if id is not None and call.id is not None:
            return id != call.id
        return bool(call.name) and name != call.name and is_complete(call.pieces)

    def _unnumbered(self, id: str | None, name: str) -> _Call:
        if id is not None:
            for call in reversed(self._calls):
                if call.id == id:
                    return call
            if self._calls and not name and self._calls[-1].id is None:
                return self._calls[-1]  # its id, come late
            return self._begin(id)
        if not self._calls or (name and is_complete(self._calls[-1].pieces)):
            return self._begin(None)
        return self._calls[-1]

    def _begin(self, id: str | None) -> _Call:
        call = _Call(len(self._calls), id)
        self._calls.append(call)
        return call

    def _grow(self, call: _Call, name: str, arguments: Any) -> list[tuple[int, str]]:
        if name and name != call.name:
            call.name += name
        if arguments is None or arguments == "":
            return []
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        call.pieces.append(text)
        return [(call.number, text)]


def merged(old: Any, new: Any) -> Any:
    """Unknown keys are kept for replay; a thought signature may come in pieces, or the same one again."""
    if is_object(old) and is_object(new):
        return {**old, **{key: _signature(key, old.get(key), value) for key, value in new.items()}}
    return new


def _signature(key: Any, old: Any, new: Any) -> Any:
    if key == "thought_signature" and isinstance(old, str) and isinstance(new, str) and old != new:
        return old + new
    return merged(old, new)
