"""One schema node put right, keyword by keyword, and the nodes below it.

Only what draft 2020-12 says a keyword's value must be is looked at; unknown keywords are annotations and stay.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from runtime.shapes import is_list, is_object

from .surrogates import repaired

LEVELS = 100
"""Deeper schemas are cut."""

CUT_TO = 40
"""Where they are cut: below what validators can walk from any stack, and above what a model would ever fill in."""

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLES = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_MEANT = {
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "str": "string",
    "text": "string",
    "bool": "boolean",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}
_TEXTS = (
    "$id",
    "$schema",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$comment",
    "title",
    "description",
    "format",
    "pattern",
    "contentEncoding",
    "contentMediaType",
)
_BOOLEANS = ("uniqueItems", "deprecated", "readOnly", "writeOnly")
_COUNTS = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_GONE = ("$vocabulary", "$recursiveRef", "$recursiveAnchor", "dependencies")
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_LOOKAROUND = re.compile(r"(?<!\\)(?:\\\\)*\(\?<?[=!]")


class Repair:
    """Walks a schema and notes, for a person, everything it had to change."""

    def __init__(self, schema: Any = None) -> None:
        self.notes: list[str] = []
        self._levels = CUT_TO if depth_of(schema) > LEVELS else LEVELS

    def node(self, node: Any, path: str, depth: int) -> dict[str, Any] | bool:
        """A node fit to be sent. `path` tells a person where it stands."""
        if isinstance(node, bool):
            return node
        if not is_object(node):
            self._note(path, "is no schema and now takes anything")
            return {}
        if depth > self._levels:
            self.notes.append(f"it is more than {LEVELS} levels deep, and below {CUT_TO} of them takes anything")
            return {}
        fixed: dict[str, Any] = {}
        for key, value in node.items():
            name = self._text(key, path)
            kept = self._keyword(name, value, f"{path}.{name}" if path else name, depth)
            if kept is not _DROP:
                fixed[name] = kept
        self._limits(fixed, path)
        self._array(node, fixed, path, depth)
        self._closed(node, fixed, path)
        if "default" in fixed and not _fits(fixed["default"], fixed.get("type")):
            del fixed["default"]
            self._note(path, "has a default of another type, which was left out")
        return fixed

    @classmethod
    def mapped(cls, node: Any, change: Callable[[dict[str, Any]], dict[str, Any]], levels: int) -> Any:
        """A copy of a schema of limited depth with `change` applied to every node."""
        if not is_object(node) or levels < 0:
            return node
        node = dict(change(node))
        for key, value in node.items():
            if key in MAPS and is_object(value):
                node[key] = {name: cls.mapped(below, change, levels - 1) for name, below in value.items()}
            elif key in LISTS and is_list(value):
                node[key] = [cls.mapped(below, change, levels - 1) for below in value]
            elif key in SINGLES:
                node[key] = cls.mapped(value, change, levels - 1)
        return node

    def _note(self, path: str, what: str) -> None:
        self.notes.append(f"{path or 'the schema'} {what}")

    def _text(self, text: str, path: str) -> str:
        whole = repaired(text)
        if whole != text:
            self._note(path, "held text that is no Unicode")
        return whole

    def _value(self, value: Any, path: str) -> Any:
        """Plain data (a default, an enum's values, an unknown keyword) as it can be encoded."""
        if isinstance(value, str):
            return self._text(value, path)
        if not is_object(value) and not is_list(value):
            return value
        if _deeper(value, LEVELS):
            self._note(path, "is nested too deeply and was left out")
            return _DROP
        return self._plain(value, path)

    def _plain(self, value: Any, path: str) -> Any:
        if isinstance(value, str):
            return self._text(value, path)
        if is_object(value):
            return {self._text(key, path): self._plain(item, path) for key, item in value.items()}
        if is_list(value):
            return [self._plain(item, path) for item in value]
        return value

    def _keyword(self, key: str, value: Any, path: str, depth: int) -> Any:
        if key in MAPS:
            return self._map(key, value, path, depth)
        if key in LISTS:
            if is_list(value) and value:
                return [self.node(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(value)]
            return self._drop(path, "is no list of schemas")
        if key == "items" and is_list(value):
            return _DROP  # a tuple of older drafts: `_array` sees to it
        if key in SINGLES:
            return self.node(value, path, depth + 1)
        if key in _TEXTS:
            return self._words(key, value, path)
        if key in _BOOLEANS:
            return value if isinstance(value, bool) else self._drop(path, "is neither true nor false")
        if key in _COUNTS or key in _NUMBERS:
            return self._number(key, value, path)
        match key:
            case "type":
                return self._type(value, path)
            case "required":
                return self._names(value, path)
            case "enum":
                if is_list(value) and value:
                    return self._value(value, path)
                return self._drop(path, "allows no value at all")
            case "examples":
                return self._value(value, path) if is_list(value) else self._drop(path, "is no list")
            case "dependentRequired":
                if not is_object(value):
                    return self._drop(path, "is no object")
                return {name: self._names(item, path) for name, item in value.items() if is_list(item)}
            case "additionalItems":
                return _DROP  # `_array` sees to it where it means anything
            case _ if key in _GONE:
                return self._drop(path, "belongs to other drafts")
            case _:
                return self._value(value, path)

    def _drop(self, path: str, why: str) -> Any:
        self._note(path, f"{why} and was left out")
        return _DROP

    def _map(self, key: str, value: Any, path: str, depth: int) -> Any:
        if not is_object(value):
            return self._drop(path, "is no object")
        below: dict[str, Any] = {}
        for name, item in value.items():
            if key == "patternProperties" and not _compiles(name):
                self._note(f"{path}.{name}", "is a pattern not every provider takes and was left out")
                continue
            below[self._text(name, path)] = self.node(item, f"{path}.{name}", depth + 1)
        return below

    def _words(self, key: str, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self._drop(path, "is no text")
        if key == "pattern" and not _compiles(value):
            return self._drop(path, "is a pattern not every provider takes")
        if key in ("$anchor", "$dynamicAnchor") and not _ANCHOR.fullmatch(value):
            return self._drop(path, "is no anchor")
        if key == "$id" and "#" in value.removesuffix("#"):
            return self._drop(path, "is no identifier")
        return self._text(value, path)

    def _type(self, value: Any, path: str) -> Any:
        names = value if is_list(value) else [value]
        known: list[str] = []
        for name in names:
            lowered = name.strip().lower() if isinstance(name, str) else ""
            meant = lowered if lowered in _TYPES else _MEANT.get(lowered)
            if meant is None:
                # One unknown word in a list may mean anything, so the list no longer limits.
                return self._drop(path, f"names no type of JSON Schema ({name!r})")
            if meant not in known:
                known.append(meant)
        if not known:
            return self._drop(path, "names no type")
        if known != names:
            self._note(path, f"is sent as {', '.join(known)}")
        return known if is_list(value) else known[0]

    def _names(self, value: Any, path: str) -> Any:
        if not is_list(value):
            return self._drop(path, "is no list of names")
        names = list(dict.fromkeys(self._text(name, path) for name in value if isinstance(name, str)))
        if names != value:
            self._note(path, "held what is no name, or one name twice")
        return names

    def _number(self, key: str, value: Any, path: str) -> Any:
        if key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
            return value  # draft 4: `_limits` turns it into a limit
        if isinstance(value, str):
            try:
                value = float(value) if "." in value or "e" in value.lower() else int(value)
            except ValueError:
                return self._drop(path, "is no number")
            self._note(path, "was a number written as text")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._drop(path, "is no number")
        if key in _COUNTS and (value < 0 or value != int(value)):
            return self._drop(path, "is no count")
        if key == "multipleOf" and value <= 0:
            return self._drop(path, "is not above zero")
        return value

    def _limits(self, fixed: dict[str, Any], path: str) -> None:
        """Draft 4's boolean exclusiveMinimum beside a minimum, as the number it means today."""
        for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if not isinstance(fixed.get(exclusive), bool):
                continue
            if fixed.pop(exclusive) and limit in fixed:
                fixed[exclusive] = fixed.pop(limit)
            self._note(path, f"used {exclusive} as draft 4 did")

    def _array(self, node: dict[str, Any], fixed: dict[str, Any], path: str, depth: int) -> None:
        given, rest = node.get("items"), node.get("additionalItems")
        if is_list(given):
            if given:
                fixed["prefixItems"] = [self.node(n, f"{path}.items[{i}]", depth + 1) for i, n in enumerate(given)]
            fixed["items"] = self.node(rest, f"{path}.additionalItems", depth + 1) if rest is not None else {}
            self._note(path, "listed its items as older drafts did")
        types = fixed.get("type")
        if (types == "array" or (is_list(types) and "array" in types)) and "items" not in fixed:
            fixed["items"] = {}
            self._note(path, "is an array that did not say of what")

    def _closed(self, node: dict[str, Any], fixed: dict[str, Any], path: str) -> None:
        """Keys a dropped pattern let in are still let in."""
        patterns = node.get("patternProperties")
        lost = is_object(patterns) and len(patterns) != len(fixed.get("patternProperties", {}))
        if lost and fixed.get("additionalProperties") not in (None, True):
            del fixed["additionalProperties"]
            self._note(path, "is open now, for a pattern of its keys was left out")


_DROP: Any = object()


def depth_of(schema: Any) -> int:
    """How many schemas stand within one another, without recursion."""
    deepest = 0
    todo = [(schema, 0)]
    while todo:
        node, depth = todo.pop()
        if not is_object(node):
            continue
        deepest = max(deepest, depth)
        for key, value in node.items():
            if key in MAPS and is_object(value):
                todo.extend((below, depth + 1) for below in value.values())
            elif is_list(value) and (key in LISTS or key == "items"):
                todo.extend((below, depth + 1) for below in value)
            elif key in SINGLES or key == "additionalItems":
                todo.append((value, depth + 1))
    return deepest


def _compiles(pattern: str) -> bool:
    if _LOOKAROUND.search(pattern):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on patterns whose meaning may change one day
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            return False
    return True


def _deeper(value: Any, limit: int) -> bool:
    todo = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if depth > limit:
            return True
        if is_object(item):
            todo.extend((below, depth + 1) for below in item.values())
        elif is_list(item):
            todo.extend((below, depth + 1) for below in item)
    return False


def _fits(value: Any, types: Any) -> bool:
    """Whether a default is of its field's type."""
    if types is None:
        return True
    names = types if is_list(types) else [types]
    kind: tuple[str, ...]
    match value:
        case None:
            kind = ("null",)
        case bool():
            kind = ("boolean",)
        case int():
            kind = ("integer", "number")
        case float():
            kind = ("integer", "number") if value.is_integer() else ("number",)
        case str():
            kind = ("string",)
        case _:
            kind = ("object",) if is_object(value) else ("array",)
    return any(name in kind for name in names)
