"""JSON of any depth, read without recursion: json.loads gives up where Python's own stack ends."""

from __future__ import annotations

import json
import re
from typing import Any

from runtime.shapes import is_list, is_object

from .arguments import nested_deeper

_SAFE_DEPTH = 100
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def read_json(text: str) -> Any:
    """The value of a JSON text. NaN and Infinity are read as json.loads reads them.

    Raises ValueError if it is no JSON.
    """
    if not nested_deeper(text, _SAFE_DEPTH):
        return json.loads(text)
    return _read(text)


def _read(text: str) -> Any:
    """A stack of open containers; `want` is what may come next."""
    stack: list[dict[str, Any] | list[Any]] = []
    keys: list[str] = []
    at, want = 0, "value"
    while True:
        at = _skip(text, at)
        char = text[at : at + 1]
        if want == "key" or (want == "first" and char == '"' and is_object(stack[-1])):
            key, at = _key(text, at)
            keys.append(key)
            want = "value"
            continue
        value: Any
        if want == "first" and char == _closing(stack[-1]):
            value, at = stack.pop(), at + 1
        elif want == "first" and is_object(stack[-1]):
            raise _unexpected("a key or '}'", text, at)
        elif char in ("{", "["):
            stack.append({} if char == "{" else [])
            at, want = at + 1, "first"
            continue
        else:
            value, at = _DECODER.raw_decode(text, at)  # a text, a number or a word: nothing that nests
        # The value is whole: it goes into its container, which may end behind it, and so on outwards.
        while stack:
            container = stack[-1]
            if is_object(container):
                container[keys.pop()] = value
            elif is_list(container):
                container.append(value)
            at = _skip(text, at)
            char = text[at : at + 1]
            if char == ",":
                at, want = at + 1, "key" if is_object(container) else "value"
                break
            if char != _closing(container):
                raise _unexpected("',' or the container's end", text, at)
            value, at = stack.pop(), at + 1
        else:
            if _skip(text, at) != len(text):
                raise _unexpected("the end", text, at)
            return value


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise _unexpected("a key", text, at)
    key, at = _DECODER.raw_decode(text, at)
    at = _skip(text, at)
    if text[at : at + 1] != ":":
        raise _unexpected("':'", text, at)
    return key, at + 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _closing(container: Any) -> str:
    return "}" if is_object(container) else "]"


def _unexpected(wanted: str, text: str, at: int) -> ValueError:
    return json.JSONDecodeError(f"Expecting {wanted}", text, at)
