"""Values as compact JSON, by an encoder that is made once: the standard library makes a new one for each value."""

from __future__ import annotations

import json.encoder
from collections.abc import Callable
from typing import Any


def json_encoder(
    *, ascii: bool, nan: bool = True, default: Callable[[object], Any] | None = None
) -> Callable[[Any], str]:
    """A function that writes a value exactly as `json.dumps` does, without blanks.

    It raises TypeError for what is not JSON, RecursionError for what is nested too deeply or holds itself and, without
    `nan`, ValueError for numbers that JSON does not have.
    """
    plain = json.JSONEncoder(
        ensure_ascii=ascii, allow_nan=nan, check_circular=False, separators=(",", ":"), default=default
    )
    make: Callable[..., Callable[[Any, int], tuple[str, ...]]] | None = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    string = json.encoder.encode_basestring_ascii if ascii else json.encoder.encode_basestring
    parts = make(None, plain.default, string, None, ":", ",", False, False, nan)
    return lambda value: "".join(parts(value, 0))
