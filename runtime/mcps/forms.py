"""A form that a server wants filled in, asked as one question and read from one answer: pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import attrs

from runtime.shapes import is_list

Value: TypeAlias = "str | int | float | bool | list[str]"

DECLINE = "decline"
_YES = frozenset({"yes", "y", "true", "1"})
_NO = frozenset({"no", "n", "false", "0"})


class Misfit(ValueError):
    """An answer that does not fit the form; the text is for whoever gave it."""


@attrs.frozen
class Field:
    """One entry of a form. `options` are the values it may have, with what a person sees of each."""

    name: str
    kind: str
    title: str = ""
    description: str = ""
    required: bool = False
    options: tuple[tuple[str, str], ...] = ()
    many: bool = False
    default: Any = None

    @property
    def line(self) -> str:
        about = "; ".join(part for part in (self.title, self.description) if part)
        what = "several of: " if self.many else "one of: " if self.options else ""
        what += ", ".join(value for value, _ in self.options) or self.kind
        default = f", else {json.dumps(self.default)}" if self.default is not None else ""
        need = "" if self.required or self.default is not None else ", may be left out"
        return f"  {self.name} ({what}{default}{need}){f': {about}' if about else ''}"


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The entries of a form's schema, in its order."""
    required = schema.get("required")
    needed = required if is_list(required) else []
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    return tuple(
        _field(str(name), cast("Mapping[str, Any]", node), name in needed)
        for name, node in cast("Mapping[str, Any]", properties).items()
        if isinstance(node, Mapping)
    )


def _field(name: str, node: Mapping[str, Any], required: bool) -> Field:
    kind = str(node.get("type", "string"))
    many = kind == "array"
    inner: Any = node.get("items") if many else node
    return Field(
        name=name,
        kind=kind,
        title=str(node.get("title") or ""),
        description=str(node.get("description") or ""),
        required=required,
        options=_options(cast("Mapping[str, Any]", inner)) if isinstance(inner, Mapping) else (),
        many=many,
        default=node.get("default"),
    )


def _options(node: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    for key in ("oneOf", "anyOf"):
        if isinstance(node.get(key), list):
            choices = [cast("Mapping[str, Any]", each) for each in node[key] if isinstance(each, Mapping)]
            return tuple((str(each.get("const")), str(each.get("title") or "")) for each in choices if "const" in each)
    if isinstance(node.get("enum"), list):
        values = [str(value) for value in node["enum"]]
        given: Any = node.get("enumNames")
        names = [str(name) for name in given] if is_list(given) else []
        return tuple((value, names[at] if at < len(names) else "") for at, value in enumerate(values))
    return ()


def question(server: str, message: str, fields: tuple[Field, ...], misfit: str = "") -> tuple[str, tuple[str, ...]]:
    """The form as a question, and the answers to choose from where there are only a few."""
    head = f"The MCP server {server} asks: {message}"
    if misfit:
        head = f"{misfit}\n{head}"
    match fields:
        case ():
            return head, ("accept", DECLINE)
        case (only,) if only.kind == "boolean":
            return f"{head}\n{only.line}", ("yes", "no", DECLINE)
        case (only,) if only.options and not only.many:
            return f"{head}\n{only.line}", (*(value for value, _ in only.options), DECLINE)
        case (only,):
            how = "Answer with the value"
        case _:
            how = "Answer with `name=value; name=value`, or with one JSON object"
    lines = "\n".join(field.line for field in fields)
    return f"{head}\n{lines}\n{how}; `{DECLINE}` refuses.", ()


def filled(fields: tuple[Field, ...], answer: str) -> dict[str, Value] | None:
    """The form as filled in, defaults included; None where it is declined. Raises Misfit."""
    if answer.strip().casefold() == DECLINE:
        return None
    given = _given(fields, answer.strip())
    unknown = set(given) - {field.name for field in fields}
    if unknown:
        raise Misfit(f"the form has no {', '.join(sorted(unknown))}")
    found: dict[str, Value] = {}
    for field in fields:
        if field.name in given:
            found[field.name] = _value(field, given[field.name])
        elif field.default is not None:
            found[field.name] = field.default
        elif field.required:
            raise Misfit(f"{field.name} is needed")
    return found


def _given(fields: tuple[Field, ...], answer: str) -> Mapping[str, Any]:
    if answer.startswith("{"):
        try:
            written: Any = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise Misfit(f"this is no JSON: {error}") from None
        if isinstance(written, dict):
            return cast("dict[str, Any]", written)
    if not fields or not answer:
        return {}
    if len(fields) == 1:
        name = fields[0].name
        return {name: answer.removeprefix(f"{name}=").strip()}
    found: dict[str, Any] = {}
    for part in answer.replace("\n", ";").split(";"):
        name, equals, value = part.partition("=")
        if equals:
            found[name.strip()] = value.strip()
        elif part.strip():
            raise Misfit(f"write name=value, not {part.strip()!r}")
    return found


def _value(field: Field, given: Any) -> Value:
    if field.many:
        items = given if is_list(given) else [part.strip() for part in str(given).split(",")]
        return [_option(field, item) for item in items if str(item)]
    if field.options:
        return _option(field, given)
    match field.kind:
        case "boolean":
            word = str(given).casefold()
            if word in _YES or word in _NO:
                return word in _YES
            raise Misfit(f"{field.name} is yes or no")
        case "integer" | "number":
            try:
                number = float(given)
            except (TypeError, ValueError):
                raise Misfit(f"{field.name} is a number") from None
            if field.kind == "integer" and number != int(number):
                raise Misfit(f"{field.name} is a whole number")
            return int(number) if number == int(number) else number
        case _:
            return str(given)


def _option(field: Field, given: Any) -> str:
    for value, title in field.options:
        if str(given).casefold() in (value.casefold(), title.casefold()):
            return value
    if field.options:
        raise Misfit(f"{field.name} is one of {', '.join(value for value, _ in field.options)}")
    return str(given)
