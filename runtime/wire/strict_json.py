"""JSON as its standard has it, without the numbers that Python also reads; pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from runtime.shapes import is_list, is_object

from .surrogates import repaired


def strict_decoder(pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> json.JSONDecoder:
    """A decoder that raises ValueError for NaN, Infinity and numbers out of range; `pairs` makes the objects."""
    return json.JSONDecoder(parse_constant=_refused, parse_float=_finite, object_pairs_hook=pairs)


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:40]} is out of range")
    return value


def repaired_values(value: Any) -> Any:
    """Lone surrogates can also be written as escapes, so they are looked for again in what was read."""
    if isinstance(value, str):
        return repaired(value)
    if is_object(value):
        return {repaired(key): repaired_values(item) for key, item in value.items()}
    if is_list(value):
        return [repaired_values(item) for item in value]
    return value
