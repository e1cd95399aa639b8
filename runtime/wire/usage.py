"""Token counts as each wire tells them, turned into the one meaning they have here.

`input` is all prompt tokens and `output` all generated ones; the others are parts of them. The wires disagree:
Anthropic's input leaves the cache out, xAI's output leaves the reasoning out, DeepSeek has its own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtime.messages import Usage
from runtime.shapes import is_object


def chat_usage(raw: Mapping[str, Any]) -> Usage:
    """Of Chat Completions and the servers that speak it."""
    prompt = _details(raw, "prompt_tokens_details")
    completion = _details(raw, "completion_tokens_details")
    hit, miss = _count(raw, "prompt_cache_hit_tokens"), _count(raw, "prompt_cache_miss_tokens")
    given = _count(raw, "prompt_tokens") or _count(raw, "input_tokens") or hit + miss
    output = _count(raw, "completion_tokens") or _count(raw, "output_tokens")
    reasoning = _count(completion, "reasoning_tokens") or _count(raw, "reasoning_tokens")
    if reasoning and _count(raw, "total_tokens") == given + output + reasoning:
        output += reasoning  # xAI and Gemini count it on top
    return _usage(
        given,
        output,
        _count(prompt, "cached_tokens") or hit or _count(raw, "cached_tokens"),
        _count(prompt, "cache_write_tokens"),
        reasoning,
    )


def responses_usage(raw: Mapping[str, Any]) -> Usage:
    """Of the Responses wire."""
    given, output = _details(raw, "input_tokens_details"), _details(raw, "output_tokens_details")
    return _usage(
        _count(raw, "input_tokens"),
        _count(raw, "output_tokens"),
        _count(given, "cached_tokens"),
        _count(given, "cache_write_tokens"),
        _count(output, "reasoning_tokens"),
    )


def messages_usage(raw: Mapping[str, Any]) -> Usage:
    """Of the Messages wire: its `input_tokens` are only those that neither came from nor went to the cache."""
    read = _count(raw, "cache_read_input_tokens")
    written = _count(raw, "cache_creation_input_tokens")
    if not written:
        split = _details(raw, "cache_creation")
        written = sum(_count(split, key) for key in split)
    return _usage(
        _count(raw, "input_tokens") + read + written,
        _count(raw, "output_tokens"),
        read,
        written,
        _count(_details(raw, "output_tokens_details"), "thinking_tokens"),
    )


def _usage(given: int, output: int, cached: int, written: int, reasoning: int) -> Usage:
    """Parts never exceed their whole, whatever a server counts, so that no price is ever negative."""
    cached = min(cached, given)
    return Usage(given, output, cached, min(written, given - cached), min(reasoning, output))


def _details(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if is_object(value) else {}


def _count(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        return 0
    return int(value)
