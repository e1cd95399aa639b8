"""Whether a call's arguments fit the schema the model was shown, and if not, words that tell it what to fix.

Almost every call is right and almost every schema is plain, so a compiled chain of type tests says yes in a
microsecond or two. Only what it cannot say yes to goes to jsonschema, which also finds the words.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from runtime.messages import JsonObject
from runtime.schema_words import fault_lines

from . import _regex

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Accepts: TypeAlias = Callable[[Any], bool]

_NOTES = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment", "format", "deprecated"}
)
_MAX_FAULTS = 8
_MAX_PATTERN_TEXT = 2000


class Arguments:
    """The compiled form of one schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._accepts = plain_check(schema)
        self._validator: Validator | None = None

    def fit(self, arguments: JsonObject) -> JsonObject | list[str]:
        """The arguments to call with, or what is wrong with them, one fault a line.

        An optional argument sent as null is one left out, when null does not fit it: models do that.
        """
        if self._accepts is not None and self._accepts(arguments):
            return arguments
        faults = list(self._faults(arguments))
        if faults:
            without = self._without_nulls(arguments)
            if len(without) < len(arguments) and not list(self._faults(without)):
                return without
        return faults or arguments

    def _without_nulls(self, arguments: JsonObject) -> JsonObject:
        required = self._schema.get("required") or ()
        return {key: value for key, value in arguments.items() if value is not None or key in required}

    def _faults(self, arguments: JsonObject) -> Iterator[str]:
        import re

        from jsonschema.exceptions import SchemaError, UnknownType
        from referencing.exceptions import Unresolvable

        if self._validator is None:
            self._validator = _validator(self._schema)
        try:
            errors = sorted(self._validator.iter_errors(arguments), key=lambda error: [str(x) for x in error.path])
        except (SchemaError, UnknownType, Unresolvable, re.error, RecursionError, TypeError, AttributeError):
            return  # A broken schema proves nothing about the arguments; whoever wrote it checks them himself.
        seen: set[str] = set()
        for error in errors:
            for fault in fault_lines(error, "arguments"):
                if fault not in seen and len(seen) < _MAX_FAULTS:
                    seen.add(fault)
                    yield fault


def plain_check(schema: Any) -> Accepts | None:
    """A fast test for a plain schema, or None. It says yes only to what the schema accepts.

    Plain: types, strings to choose from, bounds, nested objects and lists; no references and no combinations.
    """
    if not _is_object(schema):
        return None
    rest = {key: value for key, value in schema.items() if key not in _NOTES}
    kinds = rest.pop("type", None)
    if "enum" in rest:
        values = rest.pop("enum")
        if rest or not _is_list(values) or not all(isinstance(value, str) for value in values):
            return None
        if kinds not in (None, "string"):
            return None
        choices = frozenset(values)
        return lambda value: value.__class__ is str and value in choices
    if kinds is None:
        return None if rest else lambda _: True
    if _is_list(kinds):
        if rest:
            return None
        tests = [_scalar(kind, {}) for kind in kinds]
        if any(test is None for test in tests):
            return None
        return lambda value: any(test(value) for test in tests if test is not None)
    if kinds == "object":
        return _object(rest)
    if kinds == "array":
        return _array(rest)
    return _scalar(kinds, rest)


def _scalar(kind: Any, rest: dict[str, Any]) -> Accepts | None:
    low, high = rest.pop("minimum", None), rest.pop("maximum", None)
    shortest, longest = rest.pop("minLength", None), rest.pop("maxLength", None)
    if rest or not all(bound is None or bound.__class__ in (int, float) for bound in (low, high, shortest, longest)):
        return None
    numeric, textual = (low, high) != (None, None), (shortest, longest) != (None, None)
    if kind == "string" and not numeric:
        if not textual:
            return lambda value: value.__class__ is str
        least, most = shortest or 0, float("inf") if longest is None else longest
        return lambda value: value.__class__ is str and least <= len(value) <= most
    if kind in ("integer", "number") and not textual:
        classes = (int,) if kind == "integer" else (int, float)
        if not numeric:
            return lambda value: value.__class__ in classes
        bottom, top = float("-inf") if low is None else low, float("inf") if high is None else high
        return lambda value: value.__class__ in classes and bottom <= value <= top
    if numeric or textual:
        return None
    if kind == "boolean":
        return lambda value: value is True or value is False
    if kind == "null":
        return lambda value: value is None
    return None


def _object(rest: dict[str, Any]) -> Accepts | None:
    properties = rest.pop("properties", {})
    required = rest.pop("required", [])
    others = rest.pop("additionalProperties", True)
    if rest or not _is_object(properties) or not _is_list(required):
        return None
    tests = {str(name): plain_check(each) for name, each in properties.items()}
    other: Accepts | None = None if isinstance(others, bool) else plain_check(others)
    if any(test is None for test in tests.values()) or (other is None and not isinstance(others, bool)):
        return None
    needed = frozenset(map(str, required))
    accepts = {name: test for name, test in tests.items() if test is not None}
    open_ended = others is not False

    def check(value: Any) -> bool:
        if value.__class__ is not dict or not needed <= value.keys():
            return False
        for key, item in value.items():
            test = accepts.get(key, other)
            if test is None:
                if not open_ended:
                    return False
            elif not test(item):
                return False
        return True

    return check


def _array(rest: dict[str, Any]) -> Accepts | None:
    item = plain_check(rest.pop("items", {}))
    least, most = rest.pop("minItems", 0), rest.pop("maxItems", None)
    if rest or item is None or least.__class__ is not int or (most is not None and most.__class__ is not int):
        return None
    top = float("inf") if most is None else most
    return lambda value: value.__class__ is list and least <= len(value) <= top and all(map(item, value))


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _validator(schema: JsonObject) -> Validator:
    from referencing import Registry

    # An empty registry: a schema with a remote reference must not make us fetch it.
    nothing: Any = Registry  # its generics are lost on type checkers
    validator: Validator = _validator_class()(schema, registry=nothing())
    return validator


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator

    validators: Any = importlib.import_module("jsonschema.validators")  # `extend` is untyped
    stock: Mapping[str, Any] = Draft202012Validator.VALIDATORS

    def pattern(validator: Any, regex: Any, instance: Any, schema: Any) -> Iterable[Any]:
        if isinstance(instance, str) and isinstance(regex, str) and not _affordable(regex, instance):
            return ()  # Left to the tool itself: the pattern is its author's, the runtime's time is ours.
        return stock["pattern"](validator, regex, instance, schema) or ()

    def pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterable[Any]:
        if _is_object(instance) and _is_object(patterns):
            texts = " ".join(map(str, instance))
            patterns = {regex: each for regex, each in patterns.items() if _affordable(regex, texts)}
        return stock["patternProperties"](validator, patterns, instance, schema) or ()

    changed = {"pattern": pattern, "patternProperties": pattern_properties}
    return validators.extend(Draft202012Validator, changed)


def _affordable(regex: str, text: str) -> bool:
    return _regex.cost(regex) == "linear" or (_regex.cost(regex) == "quadratic" and len(text) < _MAX_PATTERN_TEXT)
