"""What a model wrote as a tool's arguments, read strictly: an object, or a reason why it is none.

Nothing partial is ever made whole. Two faults of gateways are undone because they lose nothing: a call's complete
arguments sent twice, and every piece holding all the text so far.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from runtime.messages import JsonObject
from runtime.shapes import is_object

from .strict_json import repaired_values, strict_decoder
from .surrogates import repaired

DEPTH_LIMIT = 200
"""Deeper arguments are refused: what validates, journals and sends them would meet Python's own limit."""

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def parse_arguments(pieces: Sequence[str]) -> tuple[JsonObject | None, str, str | None]:
    """The arguments, the text they were read from, and what is wrong with it (then the arguments are None)."""
    raw = repaired("".join(pieces))
    if not raw.strip() or raw.strip() == "null":
        return {}, raw, None
    if nested_deeper(raw, DEPTH_LIMIT):
        return None, raw, f"the arguments are nested more than {DEPTH_LIMIT} levels deep"
    try:
        value = _read(raw)
    except ValueError as error:
        found = _repeated(pieces, raw, error)
        if found is not None:
            return found, raw, None
        return None, raw, f"the arguments are not valid JSON: {error}"
    if not is_object(value):
        return None, raw, f"the arguments are {_kind(value)}, not an object"
    return (repaired_values(value) if _ESCAPED_HALF.search(raw) else value), raw, None


def is_complete(pieces: Sequence[str]) -> bool:
    """Whether the pieces together already are a JSON object."""
    text = "".join(pieces).strip()
    if not (text.startswith("{") and text.endswith("}")) or nested_deeper(text, DEPTH_LIMIT):
        return False
    try:
        return is_object(_read(text))
    except ValueError:
        return False


def nested_deeper(text: str, limit: int) -> bool:
    """Whether JSON `text` opens more than `limit` objects and lists within one another; any text, no recursion."""
    if text.count("{") + text.count("[") <= limit:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match[0]
        if token in "[{":
            depth += 1
            if depth > limit:
                return True
        elif token in "]}":
            depth -= 1
    return False


def _repeated(pieces: Sequence[str], raw: str, error: ValueError) -> dict[str, Any] | None:
    if isinstance(error, json.JSONDecodeError) and (
        error.pos >= len(raw.rstrip()) or error.msg.startswith("Unterminated")
    ):
        return None  # merely cut off: nothing that follows may make it whole
    written = [piece for piece in pieces if piece.strip()]
    if len(written) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(written)):
        try:
            last = _read(written[-1])
        except ValueError:
            return None
        return repaired_values(last) if is_object(last) else None
    return _twice(raw)


def _twice(raw: str) -> dict[str, Any] | None:
    """The object that `raw` holds several times over, one after the other."""
    first: Any = None
    position = 0
    while position < len(raw):
        try:
            value, position = _DECODER.raw_decode(raw, position)
        except ValueError:
            return None
        if not is_object(value) or (first is not None and value != first):
            return None
        first = value
        while position < len(raw) and raw[position].isspace():
            position += 1
    return repaired_values(first) if is_object(first) else None


def _read(text: str) -> Any:
    return _DECODER.decode(text)


_DECODER = strict_decoder()


def _kind(value: Any) -> str:
    match value:
        case str():
            return "a text"
        case list():
            return "a list"
        case bool():
            return "true or false"
        case _:
            return "a number"
