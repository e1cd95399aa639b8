"""The top of a tool's schema as providers want it: one object with properties, its combinators merged into it."""

from __future__ import annotations

from typing import Any

from runtime.shapes import is_list, is_object

from .schema_refs import target

_REFUSED = ("anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const", "$ref")
_MOST_BRANCHES = 1000


class Unusable(Exception):
    """Why no object can be made of the schema's top."""


def flattened(schema: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """`schema` with a plain object on top. Raises Unusable if it takes no object, or is too entangled to tell."""
    if not _takes_objects(schema):
        raise Unusable("the schema takes no object, and arguments always are one")
    top = {key: value for key, value in schema.items() if key not in _REFUSED}
    if len(top) != len(schema):
        notes.append("its top level was merged into one object")
        _Merge(schema).into(top, schema)
    if top.get("type") != "object":
        notes.append("the top level is sent as type object")
        top["type"] = "object"
    if not is_object(top.get("properties")):
        notes.append("the top level got properties")
        top["properties"] = {}
    return top


class _Merge:
    """Follows branches and references, each at most once on its own way down."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._open: list[dict[str, Any]] = []
        self._left = _MOST_BRANCHES

    def into(self, top: dict[str, Any], node: dict[str, Any]) -> None:
        """Put into `top` what the combinators of `node` say about the same object."""
        self._left -= 1
        if self._left < 0:
            raise Unusable(f"its top level has more than {_MOST_BRANCHES} branches")
        if any(node is other for other in self._open):
            return
        self._open.append(node)
        every: list[Any] = list(also) if is_list(also := node.get("allOf")) else []
        if isinstance(ref := node.get("$ref"), str):
            every.append(target(self._root, ref))
        for part in every:
            if is_object(part):
                _conjoin(top, self._alone(part))
        for key in ("anyOf", "oneOf"):
            if is_list(given := node.get(key)) and given:
                self._choose(top, given, key)
        self._open.pop()

    def _choose(self, top: dict[str, Any], given: list[Any], key: str) -> None:
        usable = [part for part in given if _takes_objects(part)]
        if not usable:
            raise Unusable(f"no branch of {key} takes an object, and arguments always are one")
        options = [self._alone(part) for part in usable if is_object(part)]
        _disjoin(top, options, anything=len(options) != len(usable))

    def _alone(self, part: dict[str, Any]) -> dict[str, Any]:
        """One branch as a plain object."""
        alone: dict[str, Any] = {
            "properties": dict(given) if is_object(given := part.get("properties")) else {},
            "required": list(names) if is_list(names := part.get("required")) else [],
        }
        self.into(alone, part)
        return alone


def _takes_objects(node: Any) -> bool:
    if not is_object(node):
        return node is True
    types = node.get("type")
    if isinstance(types, str) and types.lower() not in ("object", "dict", "map", "any", ""):
        return False
    if is_list(types) and types and "object" not in types:
        return False
    if "const" in node and not is_object(node["const"]):
        return False
    values = node.get("enum")
    return not (is_list(values) and values and not any(is_object(value) for value in values))


def _conjoin(top: dict[str, Any], part: dict[str, Any]) -> None:
    """Both hold: all properties, all that either requires."""
    properties = _properties(top)
    for name, schema in part["properties"].items():
        old = properties.get(name)
        properties[name] = schema if old is None or _same(old, schema) else {"allOf": [old, schema]}
    _require(top, part["required"])


def _disjoin(top: dict[str, Any], options: list[dict[str, Any]], *, anything: bool) -> None:
    """One of several holds: a property is what any of them says it is, and required is what all of them require."""
    properties = _properties(top)
    offered: dict[str, list[Any]] = {}
    for option in options:
        for name, schema in option["properties"].items():
            schemas = offered.setdefault(name, [])
            if not any(_same(schema, other) for other in schemas):
                schemas.append(schema)
    for name, schemas in offered.items():
        if name not in properties:
            properties[name] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if options and not anything:
        _require(top, [n for n in options[0]["required"] if all(n in option["required"] for option in options)])


def _properties(top: dict[str, Any]) -> dict[str, Any]:
    given = top.get("properties")
    properties: dict[str, Any] = dict(given) if is_object(given) else {}
    top["properties"] = properties
    return properties


def _require(top: dict[str, Any], names: list[Any]) -> None:
    if names:
        old = top.get("required")
        top["required"] = [*(old if is_list(old) else []), *(n for n in names if not (is_list(old) and n in old))]


def _same(left: Any, right: Any) -> bool:
    try:
        return left is right or left == right
    except RecursionError:
        return False
