"""What a Python function's signature and docstring tell a model: a JSON Schema, and the way back to typed values.

One walk over the type hints yields both halves, so that what the schema allows is what the function gets.
"""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from runtime.messages import JsonObject

Convert: TypeAlias = Callable[[Any], Any]
Schema: TypeAlias = dict[str, Any]

_SCALARS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LISTS: Mapping[object, Callable[[Any], Any]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_SIMPLE = (str, int, float, bool, enum.Enum)
_SETS = (set, frozenset, collections.abc.Set)
_SECTION = re.compile(r"^(Args|Arguments|Attributes|Parameters|Returns|Return|Yields|Raises|Examples?|Notes?):\s*$")
_ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class SignatureError(TypeError):
    """A function that cannot become a tool: the message names the argument and what would do instead."""


@attrs.frozen(eq=False)
class Signature:
    """What was read off a function. `convert` is None when JSON values are passed on as they are."""

    description: str
    parameters: JsonObject
    convert: Convert | None
    takes_context: bool


def read_signature(function: Callable[..., Any]) -> Signature:
    """Derive description, JSON Schema and conversion from `function`.

    A first parameter called `ctx` is the tool's context and no argument of the model's.

    Raises SignatureError for a signature JSON Schema cannot express.
    """
    where = getattr(function, "__qualname__", repr(function))
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise SignatureError(f"{where}: a type hint names something unknown: {error}") from error
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and parameters[0].name == "ctx"
    description, told = read_docstring(inspect.getdoc(function) or "")
    fields = [
        _field(f"{where}: argument {parameter.name!r}", parameter, hints, told)
        for parameter in parameters[1 if takes_context else 0 :]
    ]
    unknown = set(told) - {field.name for field in fields} - {"ctx"}
    if unknown:
        raise SignatureError(f"{where}: the docstring describes {', '.join(sorted(unknown))}, which it does not take")
    schema, convert = _object(fields)
    return Signature(description, schema, convert, takes_context)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into what comes before its sections and the description of each argument."""
    before: list[str] = []
    told: dict[str, str] = {}
    section = ""
    current = ""
    indent = 0
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section, current = heading[1], ""
            continue
        if not section:
            before.append(line)
            continue
        if section not in ("Args", "Arguments", "Attributes", "Parameters") or not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        entry = _ENTRY.match(line.strip())
        if entry and (not current or depth <= indent):
            current, indent = entry[1].lstrip("*"), depth
            told[current] = entry[2].strip()
        elif current:
            told[current] = f"{told[current]} {line.strip()}".strip()
    return "\n".join(before).strip(), told


@attrs.frozen
class _Field:
    name: str
    schema: Schema
    convert: Convert | None
    required: bool


def _field(where: str, parameter: inspect.Parameter, hints: Mapping[str, Any], told: Mapping[str, str]) -> _Field:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise SignatureError(f"{where}: * and ** arguments have no schema; name each argument")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise SignatureError(f"{where}: positional-only arguments cannot be passed by name")
    if parameter.name not in hints:
        raise SignatureError(f"{where}: has no type hint")
    default = parameter.default
    required = default is inspect.Parameter.empty
    return _described(
        where,
        parameter.name,
        hints[parameter.name],
        required=required,
        default=default,
        told=told.get(parameter.name, ""),
    )


def _described(
    where: str,
    name: str,
    hint: Any,
    *,
    required: bool,
    default: Any,
    told: str,
    inside: tuple[Any, ...] = (),
) -> _Field:
    hint, noted = _without_annotated(hint)
    if not required and default is None:
        hint = _without_none(hint)
    schema, convert = _schema(where, hint, inside)
    schema = dict(schema)
    if noted or told:
        schema["description"] = noted or told
    if not required and default is not None:
        plain = default.value if isinstance(default, enum.Enum) else default
        with contextlib.suppress(TypeError, ValueError):  # A default JSON cannot say is still the function's default.
            schema["default"] = json.loads(json.dumps(plain))
    return _Field(name, schema, convert, required)


def _object(fields: list[_Field], make: Callable[..., Any] = dict) -> tuple[Schema, Convert | None]:
    schema: Schema = {
        "type": "object",
        "properties": {field.name: field.schema for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }
    if not schema["required"]:
        del schema["required"]
    converters = {field.name: field.convert for field in fields if field.convert is not None}
    if make is dict and not converters:
        return schema, None

    def convert(value: Any) -> Any:
        return make(**{key: converters[key](item) if key in converters else item for key, item in value.items()})

    return schema, convert


def _schema(where: str, hint: Any, inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    hint, noted = _without_annotated(hint)
    schema, convert = _plain_schema(where, hint, inside)
    return ({**schema, "description": noted} if noted else schema), convert


def _plain_schema(where: str, hint: Any, inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    cls: type[Any] | None = hint if isinstance(hint, type) else None
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if hint in (Any, object):
        return {}, None
    if hint is int:
        return {"type": "integer"}, _whole
    if cls in _SCALARS:
        return {"type": _SCALARS[cls]}, None
    if hint is None or hint is type(None):
        return {"type": "null"}, None
    if origin is typing.Literal:
        return _choice(where, arguments), None
    if origin in (typing.Union, types.UnionType):
        return _union(where, arguments, inside)
    kind = origin or hint
    if kind in _LISTS:
        return _list(where, kind, arguments, inside)
    if kind in _MAPPINGS:
        return _mapping(where, arguments, inside)
    if cls is not None and issubclass(cls, enum.Enum):
        return _choice(where, tuple(member.value for member in cls)), cls
    if hint in inside:
        raise SignatureError(f"{where}: {_name(hint)} contains itself, which a flat JSON Schema cannot say")
    if typing.is_typeddict(hint):
        return _typed_dict(where, hint, (*inside, hint))
    if cls is not None and attrs.has(cls):
        return _attrs_class(where, cls, (*inside, hint))
    if cls is not None and dataclasses.is_dataclass(cls):
        return _dataclass(where, cls, (*inside, hint))
    supertype = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if supertype is not None:
        return _schema(where, supertype, inside)
    raise SignatureError(
        f"{where}: {_name(hint)} has no JSON Schema; use str, int, float, bool, Literal, an Enum, list, dict, "
        "a TypedDict, or an attrs class or dataclass of these"
    )


def _whole(value: Any) -> Any:
    """JSON Schema calls 5.0 an integer; a function that asked for int gets 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choice(where: str, values: tuple[Any, ...]) -> Schema:
    if not values or any(not isinstance(value, str | int | float | bool | None) for value in values):
        raise SignatureError(f"{where}: a choice must be among strings, numbers, booleans or None")
    kinds = {_SCALARS.get(value.__class__) for value in values}
    schema: Schema = {"enum": list(values)}
    if len(kinds) == 1 and (kind := kinds.pop()) is not None:
        return {"type": kind, **schema}
    return schema


def _union(where: str, hints: tuple[Any, ...], inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    options = [_schema(where, hint, inside) for hint in hints]
    schemas = [schema for schema, _ in options]
    kinds = [schema.get("type") for schema in schemas]
    converters = [convert for _, convert in options if convert is not None]
    if len(converters) > 1 or (converters and len([k for k in kinds if k != "null"]) > 1 and converters != [_whole]):
        raise SignatureError(f"{where}: a union of classes cannot be told apart in JSON; take one class, or a dict")
    convert = converters[0] if converters else None
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": kinds}, _unless_none(convert)
    return {"anyOf": schemas}, _unless_none(convert)


def _unless_none(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _list(where: str, kind: Any, arguments: tuple[Any, ...], inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    if kind is tuple and arguments:
        if len(arguments) != 2 or arguments[1] is not Ellipsis:
            raise SignatureError(f"{where}: a tuple must be tuple[X, ...]; use a class for a fixed set of fields")
        arguments = arguments[:1]
    item, convert = _schema(f"{where} (its items)", arguments[0], inside) if arguments else ({}, None)
    schema: Schema = {"type": "array", "items": item}
    if kind in _SETS:
        schema["uniqueItems"] = True
    make = _LISTS[kind]
    if convert is None and make is list:
        return schema, None
    each = convert or _same
    return schema, lambda value: make(each(element) for element in value)


def _same(value: Any) -> Any:
    return value


def _mapping(where: str, arguments: tuple[Any, ...], inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    if not arguments:
        return {"type": "object"}, None
    if arguments[0] is not str:
        raise SignatureError(f"{where}: the keys of a JSON object are strings, not {_name(arguments[0])}")
    value, convert = _schema(f"{where} (its values)", arguments[1], inside)
    schema: Schema = {"type": "object", "additionalProperties": value} if value else {"type": "object"}
    if convert is None:
        return schema, None
    return schema, lambda items: {key: convert(item) for key, item in items.items()}


def _typed_dict(where: str, hint: Any, inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    told = _told(hint)
    fields: list[_Field] = []
    for name, each in typing.get_type_hints(hint, include_extras=True).items():
        inner, noted = _without_annotated(each)
        # The class knows its required keys only where its annotations were no strings.
        required = name in hint.__required_keys__
        while (origin := typing.get_origin(inner)) in (typing.Required, typing.NotRequired):
            required = origin is typing.Required
            inner = typing.get_args(inner)[0]
        schema, convert = _schema(f"{where}.{name}", inner, inside)
        text = noted or told.get(name, "")
        described = {**schema, "description": text} if text else schema
        fields.append(_Field(name, described, convert, required))
    return _object(fields)


def _attrs_class(where: str, hint: type[Any], inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    hints = typing.get_type_hints(hint, include_extras=True)
    told = _told(hint)
    fields = [
        _described(
            f"{where}.{field.name}",
            field.alias or field.name,
            hints[field.name],
            required=field.default is attrs.NOTHING,
            default=field.default if isinstance(field.default, _SIMPLE) else None,
            told=told.get(field.name, ""),
            inside=inside,
        )
        for field in attrs.fields(hint)
        if field.init
    ]
    return _object(fields, hint)


def _dataclass(where: str, hint: type[Any], inside: tuple[Any, ...]) -> tuple[Schema, Convert | None]:
    hints = typing.get_type_hints(hint, include_extras=True)
    told = _told(hint)
    missing = dataclasses.MISSING
    fields = [
        _described(
            f"{where}.{field.name}",
            field.name,
            hints[field.name],
            required=field.default is missing and field.default_factory is missing,
            default=field.default if isinstance(field.default, _SIMPLE) else None,
            told=told.get(field.name, ""),
            inside=inside,
        )
        for field in dataclasses.fields(hint)
        if field.init
    ]
    return _object(fields, hint)


def _told(hint: type[Any]) -> dict[str, str]:
    return read_docstring(inspect.cleandoc(hint.__doc__ or ""))[1]


def _without_annotated(hint: Any) -> tuple[Any, str]:
    """A hint without its Annotated wrapper, and the first text in it, which describes it."""
    noted = ""
    while typing.get_origin(hint) is typing.Annotated:
        noted = next((extra for extra in hint.__metadata__ if isinstance(extra, str)), noted)
        hint = hint.__origin__
    return hint, noted


def _without_none(hint: Any) -> Any:
    """An optional argument is left out rather than sent as null, so null need not be in its schema."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kept = tuple(each for each in typing.get_args(hint) if each is not type(None))
        return typing.Union[kept] if kept else hint  # noqa: UP007  # built from a tuple
    return hint


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
