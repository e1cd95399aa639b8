"""Arguments and texts in a form that can be compared: canonical JSON, digests, a short form for people."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeGuard

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode


def canonical(arguments: Mapping[str, Any], ignore: frozenset[str] = frozenset()) -> str:
    """JSON with sorted keys, 10.0 written as 10, and the ignored fields left out at every depth."""
    if ignore:
        arguments = without(arguments, ignore)
    try:
        text = _encode(arguments)
    except (TypeError, ValueError):  # Keys of several types, or a cycle: any stable text will do.
        return repr(arguments)
    if ".0" in text:
        text = _encode(_whole_numbers(arguments))
    return text


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)


def without(value: Any, ignore: frozenset[str]) -> Any:
    """The value without the ignored fields, at every depth."""
    if is_mapping(value):
        return {key: without(item, ignore) for key, item in value.items() if key not in ignore}
    return [without(item, ignore) for item in value] if is_list(value) else value


def _whole_numbers(value: Any) -> Any:
    if is_mapping(value):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if is_list(value):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest(text: str) -> int:
    """64 bits that stay the same over restarts."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def shown(name: str, arguments: str) -> str:
    """A call as a person reads it: `shell "ls -la"`, `read_file path=a.py start=1`."""
    try:
        items: Any = json.loads(arguments)
    except ValueError:  # Cut short, or no JSON in the first place.
        return f"{name} {_short(arguments, 110)}"
    if not is_mapping(items) or not items:
        return name
    if len(items) == 1:
        (value,) = items.values()
        return f"{name} {_short(json.dumps(value, ensure_ascii=False), 80)}"
    parts = [
        f"{key}={_short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 40)}"
        for key, value in items.items()
    ]
    return f"{name} {_short(' '.join(parts), 110)}"


def _short(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
