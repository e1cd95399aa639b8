"""What servers of one wire do differently, as values: a table of known ones, and what to assume of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import attrs


@attrs.frozen
class Dialect:
    """One kind of server.

    `wire` is the one it speaks best. `output_cap` is how it spells the most tokens a reply may have. `reasoning` is
    how thinking is asked for, `replay` whether it takes its own readable reasoning back. `schema` is what it can be
    made to answer in, `schema_with_tools` whether it may call tools all the same. `cache` is how a prompt is marked
    for reuse: Anthropic's `markers` in the blocks, a `key` beside the prompt, one `automatic` mark, or nothing.
    `call_ids` nine: Mistral takes exactly nine letters and digits; without `user_after_tool` it refuses a user
    message right behind results. `raw_arguments`: broken arguments may go back as they came. `own_model_only`: opaque
    blocks go back only to the model they came from, as behind a router, or where the maker binds them to it.
    """

    name: str
    base_url: str = ""
    wire: Literal["openai-chat", "openai-responses", "anthropic-messages"] = "openai-chat"
    output_cap: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    parallel_switch: bool = False
    reasoning: Literal["effort", "openrouter", "deepseek", "none"] = "effort"
    replay: bool = True
    schema: Literal["json_schema", "json_object", "none"] = "json_schema"
    schema_with_tools: bool = False
    cache: Literal["markers", "key", "automatic", "none"] = "none"
    user_after_tool: bool = True
    call_ids: Literal["any", "nine"] = "any"
    raw_arguments: bool = False
    own_model_only: bool = False
    signed_thinking: bool = False
    encrypted_reasoning: bool = False
    thought_signatures: bool = False
    auth: Literal["bearer", "api-key", "x-api-key"] = "bearer"
    hosts: tuple[str, ...] = ()


COMPATIBLE = Dialect("compatible")
"""An unknown server: only what nearly all of them take."""

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "openai",
            "https://api.openai.com/v1",
            wire="openai-responses",  # GPT-6 takes tools and reasoning together only there
            output_cap="max_completion_tokens",
            parallel_switch=True,
            replay=False,
            schema_with_tools=True,
            cache="key",
            raw_arguments=True,
            encrypted_reasoning=True,
            hosts=("api.openai.com",),
        ),
        Dialect(
            "azure",
            output_cap="max_completion_tokens",
            parallel_switch=True,
            replay=False,
            schema_with_tools=True,
            cache="key",
            raw_arguments=True,
            encrypted_reasoning=True,
            auth="api-key",
            hosts=("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"),
        ),
        Dialect(
            "anthropic",
            "https://api.anthropic.com",
            wire="anthropic-messages",
            cache="markers",
            signed_thinking=True,
            own_model_only=True,
            auth="x-api-key",
            hosts=("api.anthropic.com",),
        ),
        Dialect(
            "openrouter",
            "https://openrouter.ai/api/v1",
            stream_usage=False,  # it always sends usage
            parallel_switch=True,
            reasoning="openrouter",
            cache="automatic",
            own_model_only=True,
            hosts=("openrouter.ai",),
        ),
        Dialect("vllm", "http://localhost:8000/v1", parallel_switch=True),
        Dialect("ollama", "http://localhost:11434/v1"),
        Dialect("llamacpp", "http://localhost:8080/v1", parallel_switch=True),
        Dialect("lmstudio", "http://localhost:1234/v1"),
        Dialect(
            "deepseek",
            "https://api.deepseek.com",
            reasoning="deepseek",
            schema="json_object",
            schema_with_tools=True,
            hosts=("api.deepseek.com",),
        ),
        Dialect(
            "mistral",
            "https://api.mistral.ai/v1",
            stream_usage=False,  # it refuses unknown fields, and sends usage anyway
            parallel_switch=True,
            reasoning="none",
            user_after_tool=False,
            call_ids="nine",
            hosts=("api.mistral.ai",),
        ),
        Dialect(
            "groq",
            "https://api.groq.com/openai/v1",
            output_cap="max_completion_tokens",
            parallel_switch=True,
            replay=False,
            hosts=("api.groq.com",),
        ),
        Dialect(
            "xai",
            "https://api.x.ai/v1",
            output_cap="max_completion_tokens",
            parallel_switch=True,
            hosts=("api.x.ai",),
        ),
        Dialect(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            replay=False,
            thought_signatures=True,
            hosts=("generativelanguage.googleapis.com",),
        ),
    )
}


def dialect_of(name: str, base_url: str | None = None) -> Dialect:
    """The dialect spoken at `base_url`, else the one called `name`, else what an unknown server is taken for."""
    try:
        host = urlsplit(base_url).hostname or "" if base_url else ""
    except ValueError:  # No URL at all, which `endpoint` refuses in words that show no password.
        host = ""
    for dialect in DIALECTS.values():
        if any(host == known or host.endswith(f".{known}") for known in dialect.hosts):
            return dialect
    return DIALECTS.get(name, COMPATIBLE)
