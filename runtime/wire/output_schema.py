"""An output schema as a server can be asked to answer in it; what it asks less than the given one is checked after."""

from __future__ import annotations

from typing import Any

from runtime.messages import JsonObject
from runtime.shapes import is_object

from .schema_refs import nodes
from .schemas import prepare

_STRICT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
    | {"title", "description"}
)
"""The keywords that every server's strict mode takes; it refuses a request with another."""


def sent_form(schema: JsonObject) -> JsonObject | None:
    """The schema as it may be sent, None where only words can ask for it: servers want an object on top."""
    if schema.get("type") != "object":
        return None
    prepared = prepare(schema)
    return None if prepared.keys else prepared.schema


def is_strict(schema: Any) -> bool:
    """Whether a schema has the form that strict output asks for: every object closed, every property required."""
    for node in nodes(schema):
        if not _STRICT.issuperset(node):
            return False
        if node.get("type") != "object" and "properties" not in node:
            continue
        properties = node.get("properties", {})
        if node.get("additionalProperties") is not False or not is_object(properties):
            return False
        if set(properties) != set(node.get("required", ())):
            return False
    return True
