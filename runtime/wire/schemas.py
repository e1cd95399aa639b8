"""Tool schemas that every provider takes: passed on, put right, or the one tool left out with the reason.

The target: the top is an object with properties and without combinators, every array says what its items are, the
rest is valid draft 2020-12 without lookaround, its references are local and lead somewhere, all of it is at most 64 KB
of UTF-8 and 100 levels deep. Putting right widens: calls that were right under the given schema stay right, and what
is wrong with a call is still the tool's to say.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from runtime.messages import JsonObject
from runtime.shapes import is_list, is_object

from .deep_json import read_json
from .schema_nodes import LEVELS, Repair
from .schema_refs import Refs
from .schema_top import Unusable, flattened
from .surrogates import to_utf8

SIZE_LIMIT = 65536
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.-]+")
_NOTES = ("description", "title", "$comment", "examples")
_SHORT = 160
_MANY = 64


@attrs.frozen
class PreparedSchema:
    """One tool's schema as it is sent. `keys` leads from renamed argument names back to the tool's own."""

    verdict: Literal["ok", "fix", "quarantine"]
    schema: JsonObject | None
    why: str = ""
    keys: Mapping[str, str] = attrs.field(factory=dict[str, str])

    def rename(self, arguments: JsonObject) -> JsonObject:
        """Arguments under the names that are sent, whichever of the two they come under."""
        if not self.keys:
            return arguments
        sent = {key: name for name, key in self.keys.items()}
        return {sent.get(key, key): value for key, value in arguments.items()}

    def restore(self, arguments: JsonObject) -> JsonObject:
        """Arguments under the tool's own names."""
        if not self.keys:
            return arguments
        return {self.keys.get(key, key): value for key, value in arguments.items()}


def prepare_text(text: str) -> PreparedSchema:
    """`prepare` for a schema that is still JSON text."""
    try:
        return prepare(read_json(text))
    except ValueError as error:
        return PreparedSchema("quarantine", None, f"the schema is not JSON: {error}")


def prepare(schema: Any) -> PreparedSchema:
    """Make a tool's schema fit to be sent. Never raises; takes any depth, fetches nothing."""
    if isinstance(schema, bool):
        if not schema:
            return PreparedSchema("quarantine", None, "the schema is false: no call could ever be right")
        return PreparedSchema("fix", {"type": "object", "properties": {}}, "the schema is true: any object is taken")
    if not is_object(schema):
        return PreparedSchema("quarantine", None, "the schema is no JSON object")
    if (strange := _no_json(schema)) is not None:
        return PreparedSchema("quarantine", None, f"the schema holds {strange}, which is no JSON")
    notes: list[str] = []
    try:
        top = flattened(schema, notes)
    except Unusable as error:
        return PreparedSchema("quarantine", None, str(error))
    repair = Repair(top)
    repair.notes.extend(notes)
    fixed = repair.node(top, "", 0)
    assert isinstance(fixed, dict)  # an object stays one
    fixed.setdefault("properties", {})
    fixed, keys = _renamed(fixed, repair.notes)
    Refs(fixed, repair.notes).drop_dangling()
    small = _small(fixed, repair.notes)
    if small is None:
        return PreparedSchema("quarantine", None, f"the schema is larger than {SIZE_LIMIT // 1024} KB")
    if not repair.notes:
        return PreparedSchema("ok", schema)
    shown = list(dict.fromkeys(repair.notes))
    more = f"; and {len(shown) - 5} more" if len(shown) > 5 else ""
    return PreparedSchema("fix", small, "; ".join(shown[:5]) + more, keys)


def _no_json(schema: Any) -> str | None:
    """What in a schema cannot be written as JSON at all."""
    todo = [schema]
    while todo:
        value = todo.pop()
        if is_object(value):
            if not all(isinstance(key, str) for key in value):
                return "a key that is no text"
            todo.extend(value.values())
        elif is_list(value):
            todo.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return str(value)
        elif value is not None and not isinstance(value, str | int | float):
            return f"a {type(value).__name__}"
    return None


def _renamed(schema: dict[str, Any], notes: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Top-level argument names that Anthropic refuses get one it takes, and so does everything that names them."""
    properties: dict[str, Any] = schema["properties"]
    new = {key: _legal_key(key) for key in properties if not _KEY.fullmatch(key)}
    if not new:
        return schema, {}
    notes.extend(f"argument {key!r} is sent as {name!r}" for key, name in new.items())
    schema = {**schema, "properties": {new.get(key, key): value for key, value in properties.items()}}
    if is_list(required := schema.get("required")):
        schema["required"] = [new.get(key, key) for key in required]
    if is_object(depends := schema.get("dependentRequired")):
        schema["dependentRequired"] = {
            new.get(key, key): [new.get(item, item) for item in items] for key, items in depends.items()
        }
    schema.pop("propertyNames", None)
    Refs(schema, notes).rename_properties(new)
    return schema, {name: key for key, name in new.items()}


def _legal_key(key: str) -> str:
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ILLEGAL.sub('_', key)[:50].strip('_') or 'argument'}-{digest}"


def _small(schema: dict[str, Any], notes: list[str]) -> dict[str, Any] | None:
    """The schema within the size limit: first shorter descriptions, then none, then no long lists of values."""
    if _size(schema) <= SIZE_LIMIT:
        return schema
    for why, strip in (
        ("descriptions were shortened", _shorten),
        ("descriptions were left out", _unannotated),
        ("long lists of allowed values were left out", _without_long_enums),
    ):
        schema = _mapped(schema, strip)
        notes.append(why)
        if _size(schema) <= SIZE_LIMIT:
            return schema
    return None


def _size(schema: dict[str, Any]) -> int:
    return len(to_utf8(json.dumps(schema, ensure_ascii=False)))


def _mapped(schema: Any, strip: Any) -> Any:
    """A copy with `strip` applied to every object that is a schema; it is at most some 100 levels deep by now."""
    return Repair.mapped(schema, strip, LEVELS)


def _shorten(node: dict[str, Any]) -> dict[str, Any]:
    text = node.get("description")
    return {**node, "description": text[:_SHORT]} if isinstance(text, str) and len(text) > _SHORT else node


def _unannotated(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _NOTES}


def _without_long_enums(node: dict[str, Any]) -> dict[str, Any]:
    values = node.get("enum")
    if is_list(values) and len(values) > _MANY:
        return {key: value for key, value in node.items() if key != "enum"}
    return node
