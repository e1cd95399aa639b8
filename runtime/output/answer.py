"""An answer's text read as one JSON value, strictly; pure."""

from __future__ import annotations

import json
import re
from typing import Any

from runtime.wire.arguments import nested_deeper
from runtime.wire.strict_json import repaired_values, strict_decoder
from runtime.wire.surrogates import repaired

DEEPEST = 200
"""Levels of lists and objects; what checks and records values would meet Python's own limit."""

_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*[\w+-]{0,20}[ \t]*\n")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")


class NoJson(ValueError):
    """The text is not one JSON value; the message says why, in words for the model that wrote it."""


def read_answer(text: str) -> Any:
    """The value an answer stands for. One code fence around the whole of it is no fault; anything else beside it is.

    Raises NoJson.
    """
    inside = unfenced(repaired(text))
    if not inside:
        raise NoJson("the answer is empty")
    if nested_deeper(inside, DEEPEST):
        raise NoJson(f"the answer is nested more than {DEEPEST} levels deep")
    try:
        value = _DECODER.decode(inside)
    except json.JSONDecodeError as error:
        raise NoJson(_words(inside, error)) from None
    except (ValueError, RecursionError) as error:
        raise NoJson(f"the answer is not valid JSON: {error}") from None
    return repaired_values(value) if _ESCAPED_HALF.search(inside) else value


def unfenced(text: str) -> str:
    """What is inside one code fence around the whole of a text; any other text without the blanks at its ends."""
    text = text.strip().removeprefix("\ufeff").strip()
    fence = _FENCE.match(text)
    if fence is None or not text.endswith(fence[1]) or len(text) < fence.end() + len(fence[1]):
        return text
    return text[fence.end() : -len(fence[1])].strip()


def _words(text: str, error: json.JSONDecodeError) -> str:
    """Where it stops being JSON; text around a value is the commonest fault, so it is told as such."""
    place = f"line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        return f"the answer is not JSON alone: text follows the value at {place}"
    if error.pos == 0:
        return "the answer is not JSON alone: it begins with other text"
    return f"the answer is not valid JSON: {error.msg} at {place}"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {json.dumps(key[:80], ensure_ascii=False)} stands twice in one object")
            seen.add(key)
    return found


_DECODER = strict_decoder(_pairs)
