"""An output schema: what is wrong with one, and what it finds wrong with a value; pure, nothing is ever fetched."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import attrs

from runtime.schema_words import fault_lines
from runtime.shapes import is_list, is_object
from runtime.wire.schema_nodes import LEVELS, MAPS
from runtime.wire.schema_refs import target

Step: TypeAlias = str | int
_MOST_FAULTS = 8
_LARGEST = 65536
_NAMED = frozenset({*MAPS, "dependencies"})
"""Keywords whose value holds schemas by name: such a name is no keyword, whatever it is."""
_VALUES = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose value is no schema."""


@attrs.frozen
class SchemaFault:
    """What is wrong with a schema, and the way to the place from its top."""

    text: str
    path: tuple[Step, ...] = ()


def faults_of_schema(schema: Any) -> list[SchemaFault]:
    """Why a schema cannot be used, nothing for one that can: JSON, valid by its own draft, references inside it."""
    if not is_object(schema):
        return [SchemaFault("a schema is an object (a mapping)")]
    if (strange := next(_no_json(schema), None)) is not None:
        return [strange]
    if _depth(schema) > LEVELS:
        return [SchemaFault(f"the schema is nested more than {LEVELS} levels deep")]
    if len(json.dumps(schema)) > _LARGEST:
        return [SchemaFault(f"the schema is larger than {_LARGEST // 1024} KB")]
    return list(_unknown_draft(schema)) or list(_references(schema)) or list(_invalid(schema)) or list(_endless(schema))


def _endless(schema: Mapping[str, Any]) -> Iterator[SchemaFault]:
    """References that lead back to where they stand, whatever the value: the least of values shows them."""
    try:
        value_faults(schema, None)
    except ValueError as error:
        if isinstance(error.__cause__, RecursionError):
            yield SchemaFault("the schema refers to itself without end")


def value_faults(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with a value by a usable schema, at most 8 lines `place: words`.

    Raises ValueError where the schema cannot be applied at all.
    """
    from jsonschema.exceptions import SchemaError, UnknownType
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    nothing: Any = Registry  # its generics are lost on type checkers
    found: list[str] = []
    try:
        validator = _validator_for(schema)(schema, registry=nothing())
        for error in sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.path]):
            for line in fault_lines(error, "answer"):
                if line not in found:
                    found.append(line)
                if len(found) >= _MOST_FAULTS:
                    return found
    except (SchemaError, UnknownType, Unresolvable, re.error, RecursionError, TypeError, AttributeError) as error:
        raise ValueError(f"the schema cannot be applied: {type(error).__name__}: {error}") from error
    return found


def is_bounded(schema: Mapping[str, Any]) -> bool:
    """Whether holding a value against the schema takes a time that is plain to see: no references that multiply, and no
    pattern that could search for ever."""
    from runtime.tools._regex import cost  # with it come all tools, which telling of a slip need not wait for

    for _, node in _nodes(schema):
        if "$ref" in node or "$dynamicRef" in node or "$recursiveRef" in node:
            return False
        patterns: list[Any] = [node.get("pattern")] if "pattern" in node else []
        if is_object(keyed := node.get("patternProperties")):
            patterns += keyed
        if any(not isinstance(pattern, str) or cost(pattern) != "linear" for pattern in patterns):
            return False
    return True


def _validator_for(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


def _no_json(schema: Any) -> Iterator[SchemaFault]:
    todo: list[tuple[tuple[Step, ...], Any]] = [((), schema)]
    while todo:
        path, value = todo.pop()
        if is_object(value):
            for key, inner in value.items():
                if not isinstance(key, str):
                    yield SchemaFault(f"the key {key!r} is no text; put it in quotes", path)
                else:
                    todo.append(((*path, key), inner))
        elif is_list(value):
            todo += [((*path, number), inner) for number, inner in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            yield SchemaFault(f"{value} is no JSON value", path)
        elif value is not None and not isinstance(value, str | int | float):
            yield SchemaFault(f"a {type(value).__name__} is no JSON value; put it in quotes", path)


def _depth(schema: Any) -> int:
    deepest, level = 0, [schema]
    while level:
        deepest += 1
        if deepest > LEVELS + 1:
            break
        level = [
            inner
            for value in level
            for inner in (value.values() if is_object(value) else value if is_list(value) else ())
            if is_object(inner) or is_list(inner)
        ]
    return deepest


def _unknown_draft(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    draft = schema.get("$schema")
    if draft is None:
        return
    known: str | None = None
    if isinstance(draft, str):
        with suppress(ValueError):  # an address that is none
            meta = _validator_for(schema).META_SCHEMA
            known = meta.get("$id", meta.get("id"))
    if known is None or known.rstrip("#") != draft.rstrip("#"):
        yield SchemaFault(f"$schema names no draft known here: {json.dumps(draft)}", ("$schema",))


def _nodes(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], dict[str, Any]]]:
    """Every schema inside a schema with the way to it, in any draft, what unknown keywords hold among them."""
    todo: list[tuple[tuple[Step, ...], Any]] = [((), schema)]
    while todo:
        path, value = todo.pop()
        if is_list(value):
            todo += [((*path, number), inner) for number, inner in enumerate(value)]
        if not is_object(value):
            continue
        yield path, value
        for key, inner in value.items():
            if key in _NAMED and is_object(inner):
                todo += [((*path, key, name), each) for name, each in inner.items()]
            elif key not in _VALUES:
                todo.append(((*path, key), inner))


def _references(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    for path, node in _nodes(schema):
        for key in ("$ref", "$dynamicRef"):
            ref = node.get(key)
            if not isinstance(ref, str):
                continue
            if not ref.startswith("#"):
                yield SchemaFault(
                    f"the reference '{ref}' is remote, and nothing is fetched; put it in $defs", (*path, key)
                )
            elif target(schema, ref) is None:
                yield SchemaFault(f"the reference '{ref}' leads nowhere", (*path, key))


def _invalid(schema: dict[str, Any]) -> Iterator[SchemaFault]:
    exceptions: Any = importlib.import_module("jsonschema.exceptions")  # `best_match` is half typed
    validator = _validator_for(schema)
    try:
        error: Any = exceptions.best_match(validator(validator.META_SCHEMA).iter_errors(schema))
    except RecursionError:
        yield SchemaFault("the schema is nested too deeply")
        return
    if error is not None:
        line = next(fault_lines(error, "schema"), "it breaks the rules of its draft")
        yield SchemaFault(f"not a valid JSON Schema: {line}", tuple(error.absolute_path))
        return
    for path, pattern in _patterns(schema):
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as broken:
            yield SchemaFault(f"the pattern '{pattern}' cannot be read: {broken}", path)


def _patterns(schema: dict[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    for path, node in _nodes(schema):
        if isinstance(pattern := node.get("pattern"), str):
            yield (*path, "pattern"), pattern
        if is_object(keyed := node.get("patternProperties")):
            for each in keyed:
                yield (*path, "patternProperties", each), each
