"""What an error means, whether to try again, and how long to wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.model import ProviderError
from runtime.wire.failures import http_failure, retry_after, stream_failure

NOW = 1_796_000_000.0


def openai(code: str | None = None, type: str | None = None, message: str = "m") -> bytes:
    return json.dumps({"error": {"message": message, "type": type, "param": None, "code": code}}).encode()


def anthropic(type: str, message: str = "m", **error: Any) -> bytes:
    return json.dumps(
        {"type": "error", "error": {"type": type, "message": message, **error}, "request_id": "r"}
    ).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, openai("invalid_api_key"), "auth", False),
        (403, b"", "auth", False),
        (403, anthropic("permission_error"), "auth", False),
        (429, openai("rate_limit_exceeded", "requests"), "rate_limit", True),
        (429, anthropic("rate_limit_error"), "rate_limit", True),
        (429, b'{"error":{"code":429,"message":"m","metadata":{"raw":"upstream busy"}}}', "rate_limit", True),
        (429, b'[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]', "rate_limit", True),
        (429, openai("credit_balance_exhausted", "insufficient_quota"), "rate_limit", False),
        (429, openai("project_spend_limit_exceeded"), "rate_limit", False),
        (429, openai("organization_usage_limit_exceeded"), "rate_limit", False),
        (
            429,
            anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            "rate_limit",
            False,
        ),
        (529, anthropic("overloaded_error"), "overloaded", True),
        (503, b"<html>busy</html>", "overloaded", True),
        (498, openai("capacity_exceeded"), "overloaded", True),
        (500, anthropic("overloaded_error"), "overloaded", True),
        (400, openai("context_length_exceeded"), "context_length", False),
        (
            400,
            anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            "context_length",
            False,
        ),
        (
            400,
            anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit"),
            "context_length",
            False,
        ),
        (413, openai(message="This exceeds the model's context window"), "context_length", False),
        (400, b'{"object":"error","message":"maximum context length is 4096","code":400}', "context_length", False),
        (402, b'{"error":{"code":402,"message":"no credits"}}', "http", False),
        (402, anthropic("billing_error"), "http", False),
        (400, openai(type="invalid_request_error"), "http", False),
        (400, openai("content_filter"), "http", False),
        (404, anthropic("not_found_error"), "http", False),
        (405, b"", "http", False),
        (413, anthropic("request_too_large"), "http", False),
        (422, b'{"detail":[{"loc":["body"],"msg":"field required"}]}', "http", False),
        (408, b"", "http", True),
        (409, b"", "http", True),
        (500, b"", "http", True),
        (500, anthropic("api_error"), "http", True),
        (502, b"<html><body>Bad Gateway</body></html>", "http", True),
        (504, anthropic("timeout_error"), "http", True),
        (301, b"", "http", False),
        (429, b'{"statusCode":429,"message":"Rate limit is exceeded."}', "rate_limit", True),
    ],
)
def test_http_errors_are_what_they_are(status: int, body: bytes, kind: str, retryable: bool) -> None:
    """Status, words and message decide the kind, and whether the same request has a chance."""
    error = http_failure(status, {}, body, now=NOW)
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.message


@pytest.mark.parametrize("should", [True, False])
def test_the_server_has_the_last_word_on_retrying(should: bool) -> None:
    """(184) `x-should-retry` overrides the table."""
    headers = {"x-should-retry": str(should).lower()}
    assert http_failure(429, headers, openai(), now=NOW).retryable is should
    assert http_failure(400, headers, openai(), now=NOW).retryable is should


def test_an_overlong_prompt_is_never_sent_again_as_it_is() -> None:
    """Shrinking comes first, whatever the server says about retrying."""
    assert not http_failure(400, {"x-should-retry": "true"}, openai("context_length_exceeded")).retryable


def test_a_budget_under_way_may_be_waited_for() -> None:
    """402 with a wait is OpenRouter's budget of what is in flight; without one the account is empty."""
    assert http_failure(402, {"retry-after": "3"}, b"{}").retryable
    assert not http_failure(402, {}, b"{}").retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT", "date": "Sun, 29 Nov 2026 12:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_waits_are_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """(201) Milliseconds, seconds and dates; nonsense is no wait."""
    assert retry_after(headers) == seconds


def test_a_date_without_the_servers_own_is_counted_from_now() -> None:
    """`now` stands in for a missing Date header."""
    moment = "Mon, 30 Nov 2026 00:00:10 GMT"
    assert retry_after({"retry-after": moment}, 1_795_996_800.0) == 10.0
    assert retry_after({"retry-after": moment}) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "300ms",
                "x-ratelimit-remaining-tokens": "9",
                "x-ratelimit-reset-tokens": "1h",
            },
            0.3,
        ),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-11-29T12:00:30Z",
                "date": "Sun, 29 Nov 2026 12:00:00 GMT",
            },
            30.0,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "whenever"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 12.0),
        (
            {
                "x-ratelimit-remaining": "0",
                "x-ratelimit-reset": "1795953630000",
                "date": "Sun, 29 Nov 2026 12:00:00 GMT",
            },
            30.0,
        ),
        ({}, None),
    ],
)
def test_an_empty_rate_limit_says_when_it_is_filled_again(headers: dict[str, str], seconds: float | None) -> None:
    """(182, 386) Without retry-after, the reset of what is used up is the wait."""
    assert http_failure(429, headers, openai()).retry_after == (pytest.approx(seconds) if seconds else seconds)  # pyright: ignore[reportUnknownMemberType]


def test_headers_inside_an_error_event_count() -> None:
    """(421) The Responses wire puts rate limit headers into its error."""
    error = stream_failure(
        {"code": "rate_limit_exceeded", "message": "m", "headers": {"X-RateLimit-Reset-Tokens": "4.2s"}}, {}
    )
    assert (error.retry_after, error.kind) == (4.2, "rate_limit")


def test_what_is_final_has_no_wait() -> None:
    """An error that is not retried names no wait."""
    assert http_failure(429, {"retry-after": "5"}, openai(type="insufficient_quota")).retry_after is None


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, b"", "empty body"),
        (502, b"<html>x</html>", "HTML"),
        (500, b"\xff\xfe", "\ufffd"),
        (500, b'{"error":{}}', "error"),
        (500, b'{"error":"boom"}', "boom"),
        (500, b'"boom"', "boom"),
        (500, b"[]", "[]"),
        (500, b"[" * 100_000, "["),
        (
            400,
            b'{"error":{"message":"Provider returned error","metadata":{"raw":"the real reason"}}}',
            "the real reason",
        ),
        (400, b'{"error":{"message":"half \\ud83d"}}', "half"),
    ],
)
def test_any_error_body_gives_a_message(status: int, body: bytes, words: str) -> None:
    """(196, 198, 202) Whatever comes as an error's body, a person reads something, as text that can be written."""
    error = http_failure(status, {}, body)
    assert words in error.message
    error.message.encode()


def test_error_codes_given_as_text_are_statuses() -> None:
    """A numeric code is a status, also when it came as text."""
    assert stream_failure({"code": "503", "message": "m"}, {}).kind == "overloaded"


def test_a_response_is_read_to_its_end_before_it_fails(decode: Any) -> None:
    """(181) The decoder of a failed response takes its body in any cut."""
    body = openai("rate_limit_exceeded")
    whole = decode("openai-chat", [body], 429, {"Retry-After": "2"})[1]
    cut = decode("openai-chat", [body[:9], body[9:]], 429, {"Retry-After": "2"})[1]
    assert isinstance(whole, ProviderError)
    assert (
        (whole.kind, whole.retry_after, whole.message)
        == (cut.kind, cut.retry_after, cut.message)
        == ("rate_limit", 2.0, "m (HTTP 429)")
    )
