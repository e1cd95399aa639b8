"""What a JSON Schema finds wrong with a value, in words that tell a model what to put right."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from .errors import did_you_mean

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_MAX_SHOWN = 120


def fault_lines(error: ValidationError, whole: str) -> Iterator[str]:
    """One error as lines `place: what is wrong`; `whole` is the word for the value itself."""
    where = _where(error.absolute_path, whole)
    instance: Any = error.instance
    schema: Any = error.schema
    wanted: Any = error.validator_value
    match error.validator:
        case "required":
            for name in wanted:
                if name not in instance:
                    yield f"{_inside(where, name, whole)}: is required{_kind_note(schema, name)}"
        case "additionalProperties" if wanted is False:
            known = list(schema.get("properties", {}))
            for name in instance:
                if name not in known:
                    hint = did_you_mean(name, known) or f"; there is only: {', '.join(known) or 'nothing'}"
                    yield f"{_inside(where, name, whole)}: is unknown{hint}"
        case "type":
            kinds = " or ".join(_a(kind) for kind in ([wanted] if isinstance(wanted, str) else wanted))
            yield f"{where}: must be {kinds}, got {_shown(instance)}"
        case "enum":
            options = ", ".join(json.dumps(value, ensure_ascii=False) for value in wanted)
            hint = did_you_mean(instance, [str(value) for value in wanted]) if isinstance(instance, str) else ""
            yield f"{where}: must be one of {options}; got {_shown(instance)}{hint}"
        case _:
            text = error.message if len(error.message) <= 300 else error.message[:300] + "…"
            yield f"{where}: {text}"


def _kind_note(schema: Any, name: str) -> str:
    each = schema.get("properties", {}).get(name)
    kind = each.get("type") if _is_object(each) else None
    return f" ({kind})" if isinstance(kind, str) else ""


def _where(path: Iterable[Any], whole: str) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or whole


def _inside(where: str, name: str, whole: str) -> str:
    return name if where == whole else f"{where}.{name}"


def _a(kind: Any) -> str:
    names = {"string": "text", "integer": "a whole number", "boolean": "true or false", "null": "null"}
    names |= {"number": "a number", "array": "a list", "object": "an object"}
    return names.get(kind, str(kind))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)
