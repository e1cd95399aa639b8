"""What went wrong with a model call, by status, by the words of the error and by its message, and whether to retry.

One table for the three wires: a specific word (`overloaded_error`) beats a status, a status
beats a general word (`invalid_request_error`), and what is about money is never retried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from runtime.model import ErrorKind, ProviderError
from runtime.shapes import is_list, is_object

from .surrogates import repaired

_MONEY = {
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "enforced_spend_limit_reached",
    "billing_hard_limit_reached",
}
_CONTEXT = {"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"}
_AUTH = {
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "unauthenticated",
    "permission_denied",
    "authenticationerror",
    "permissiondeniederror",
}
_RATE = {
    "rate_limit_error",
    "rate_limit_exceeded",
    "too_many_requests",
    "slow_down",
    "resource_exhausted",
    "ratelimiterror",
}
_OVERLOADED = {"overloaded_error", "server_is_overloaded", "capacity_exceeded", "overloaded", "unavailable"}
_FINAL = {
    "invalid_request_error",
    "invalid_prompt",
    "content_filter",
    "not_found_error",
    "model_not_found",
    "badrequesterror",
    "notfounderror",
    "invalid_argument",
    "failed_precondition",
    "not_found",
    "request_too_large",
}
_PASSING = {"api_error", "server_error", "timeout_error", "internal", "deadline_exceeded", "internalservererror"}

_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|maximum context|prompt is too long|input is too long"
    r"|exceeds? the (model'?s )?(maximum )?(input )?token limit",
    re.IGNORECASE,
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_MESSAGE_LIMIT = 2000
_EPOCH = 1e9
"""Above it a plain number is a moment (Unix time, or milliseconds of it) and no number of seconds."""


def truncated(message: str = "the stream ended before the reply was complete") -> ProviderError:
    """The body ended without the wire's own end, or the connection broke."""
    return ProviderError("truncated", message, retryable=True)


def protocol(message: str, *, retryable: bool) -> ProviderError:
    """Bytes that make no sense for the wire."""
    return ProviderError("protocol", message, retryable=retryable)


def http_failure(status: int, headers: Mapping[str, str], body: bytes, *, now: float | None = None) -> ProviderError:
    """The error of a response whose status is not 2xx. `now` (Unix time) gives dates in headers a meaning."""
    error = error_object(_json(body))
    if error is None:
        shown = body.decode("utf-8", "replace").strip()
        if not shown:
            shown = "(empty body)"
        elif shown.startswith("<"):
            shown = "(an HTML page)"
        error = {"message": shown}
    return _failure(error, status, headers, in_stream=False, now=now)


def stream_failure(error: Any, headers: Mapping[str, str], *, now: float | None = None) -> ProviderError:
    """The error a server reported inside a 200 response: an object, or just a text."""
    found: Mapping[str, Any] = error if is_object(error) else {"message": str(error)}
    status = next((s for key in ("status", "status_code", "code") if (s := _status(found.get(key)))), None)
    nested = found.get("headers")
    if is_object(nested):
        headers = {**headers, **{str(k).lower(): str(v) for k, v in nested.items()}}
    return _failure(found, status, headers, in_stream=True, now=now)


def error_object(body: Any) -> Mapping[str, Any] | None:
    """The error inside a JSON body, whichever of the known shapes it has; None if it tells of none."""
    if is_list(body) and body:
        return error_object(body[0])  # Gemini wraps its error in a list
    if not is_object(body):
        return {"message": body} if isinstance(body, str) and body else None
    error = body.get("error")
    if is_object(error) and error:
        return error
    if isinstance(error, str) and error:
        return {**body, "message": body.get("message") or error}
    if body.get("object") == "error" or body.get("type") == "error":
        return body
    if "detail" in body:  # FastAPI
        detail = body["detail"]
        return {"message": detail if isinstance(detail, str) else json.dumps(detail)}
    return body if isinstance(body.get("message"), str) and "choices" not in body else None


def _failure(
    error: Mapping[str, Any],
    status: int | None,
    headers: Mapping[str, str],
    *,
    in_stream: bool,
    now: float | None,
) -> ProviderError:
    words = _words(error)
    message = _message(error)
    kind, retryable = _classified(words, message, status, "retry-after" in headers, in_stream=in_stream)
    should = headers.get("x-should-retry", "").strip().lower()
    if should in ("true", "false") and kind != "context_length":
        retryable = should == "true"
    wait = retry_after(headers, now)
    if wait is None and kind == "rate_limit":
        wait = _until_reset(headers, now)
    where = f" (HTTP {status})" if status else ""
    return ProviderError(
        kind, f"{message}{where}", retryable, wait if retryable else None, None if in_stream else status
    )


def _classified(
    words: set[str], message: str, status: int | None, has_wait: bool, *, in_stream: bool
) -> tuple[ErrorKind, bool]:
    other: ErrorKind = "provider" if in_stream else "http"
    if words & _MONEY or any(word.endswith("spend_limit_exceeded") for word in words):
        return "rate_limit", False
    if words & _CONTEXT or (status in (None, 400, 413, 422) and _TOO_LONG.search(message)):
        return "context_length", False
    if status in (401, 403) or words & _AUTH:
        return "auth", False
    if words & _OVERLOADED:
        return "overloaded", True
    if status == 429 or words & _RATE:
        return "rate_limit", True
    if status in (498, 503, 529):
        return "overloaded", True
    if status == 402 or "billing_error" in words:
        # Without a wait it is an empty account; with one, OpenRouter's budget for what is under way.
        return other, has_wait
    if status in (408, 409) or (status is not None and status >= 500):
        return other, True
    if status is not None:
        return other, False
    if words & _PASSING:
        return other, True
    final = words & _FINAL or any(word.startswith(("invalid_", "unsupported_")) for word in words)
    return other, not final


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds the server asks to wait. A date is counted from the response's own date, else from `now` (Unix time)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until, since = _date(value), _date(headers.get("date")) or now
    return None if until is None or since is None else max(0.0, until - since)


def _until_reset(headers: Mapping[str, str], now: float | None) -> float | None:
    """Seconds until what is used up is filled again: a duration (OpenAI), an instant (Anthropic) or a number."""
    waits: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        left = headers.get(name.replace("reset", "remaining"))
        if left is not None and left.strip() != "0":
            continue
        wait, until = _duration(value), _instant(value)
        if wait is None and until is not None:
            since = _date(headers.get("date")) or now
            wait = None if since is None else max(0.0, until - since)
        if wait is not None:
            waits.append(wait)
    return max(waits, default=None)


def _duration(text: str) -> float | None:
    plain = _number(text)
    if plain is not None:
        return plain if plain < _EPOCH else None
    pieces = _DURATION.findall(text.strip())
    if not pieces or "".join(number + unit for number, unit in pieces) != text.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)


def _instant(text: str) -> float | None:
    plain = _number(text)
    if plain is not None:
        return plain / 1000 if plain > _EPOCH * 1000 else plain if plain >= _EPOCH else None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _date(text: str | None) -> float | None:
    if not text:
        return None
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < float("inf") else None


def _status(value: Any) -> int | None:
    """A code that is to be read as an HTTP status, also when it came as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) == 3:
        value = int(value)
    return value if isinstance(value, int) and 400 <= value <= 599 else None


def _words(error: Mapping[str, Any]) -> set[str]:
    words = {str(error[key]).strip().lower() for key in ("type", "code", "status") if error.get(key)}
    for key in ("details", "metadata"):
        inner = error.get(key)
        if is_object(inner):
            for name in ("error_code", "error_type"):
                if inner.get(name):
                    words.add(str(inner[name]).strip().lower())
    return words


def _message(error: Mapping[str, Any]) -> str:
    message = error.get("message")
    if not isinstance(message, str) or not message.strip():
        named = [str(error[key]) for key in ("type", "code", "status") if error.get(key)]
        message = ", ".join(named) if named else json.dumps(error, default=str) if error else "no reason given"
    metadata = error.get("metadata")
    if is_object(metadata) and isinstance(raw := metadata.get("raw"), str) and raw not in message:
        message = f"{message}: {raw}"  # OpenRouter's own message only says that its upstream failed
    return repaired(message.strip())[:_MESSAGE_LIMIT]


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
