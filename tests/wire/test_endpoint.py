"""Where requests go: base URLs as people write them, keys where each server looks."""

from __future__ import annotations

import pytest

from runtime import wire
from runtime.wire.endpoint import endpoint


@pytest.mark.parametrize(
    ("name", "dialect", "base", "url"),
    [
        ("openai-chat", "openai", None, "https://api.openai.com/v1/chat/completions"),
        ("openai-responses", "openai", None, "https://api.openai.com/v1/responses"),
        ("anthropic-messages", "anthropic", None, "https://api.anthropic.com/v1/messages"),
        ("anthropic-messages", "anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"),
        ("openai-chat", "compatible", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        ("openai-chat", "compatible", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("openai-chat", "compatible", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("openai-chat", "compatible", "http://h/api/paas/v4", "http://h/api/paas/v4/chat/completions"),
        ("openai-chat", "compatible", "http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("openai-chat", "compatible", "http://h/v1?x=1", "http://h/v1/chat/completions?x=1"),
        ("anthropic-messages", "compatible", "http://h/anthropic", "http://h/anthropic/v1/messages"),
        ("openai-chat", "deepseek", None, "https://api.deepseek.com/chat/completions"),
        ("openai-chat", "gemini", None, "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
        ("openai-chat", "openrouter", None, "https://openrouter.ai/api/v1/chat/completions"),
        ("openai-chat", "groq", None, "https://api.groq.com/openai/v1/chat/completions"),
        (
            "openai-chat",
            "azure",
            "https://x.openai.azure.com",
            "https://x.openai.azure.com/openai/deployments/my%20model/chat/completions?api-version=2024-10-21",
        ),
        (
            "openai-chat",
            "azure",
            "https://x.openai.azure.com/openai?api-version=2025-01-01",
            "https://x.openai.azure.com/openai/deployments/my%20model/chat/completions?api-version=2025-01-01",
        ),
        (
            "openai-chat",
            "azure",
            "https://x.openai.azure.com/openai/v1",
            "https://x.openai.azure.com/openai/v1/chat/completions",
        ),
        ("openai-responses", "azure", "https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/responses"),
    ],
)
def test_a_base_url_leads_to_the_right_path(name: wire.WireName, dialect: str, base: str | None, url: str) -> None:
    """With or without version, slash, path or query, the request goes where the server listens."""
    assert endpoint(name, wire.DIALECTS.get(dialect, wire.COMPATIBLE), base, "my model", "key")[0] == url


@pytest.mark.parametrize(
    ("name", "dialect", "key", "expected"),
    [
        ("openai-chat", "openai", "k", {"authorization": "Bearer k"}),
        ("openai-chat", "azure", "k", {"api-key": "k"}),
        ("anthropic-messages", "anthropic", "k", {"x-api-key": "k"}),
        ("anthropic-messages", "anthropic", "sk-ant-oat01-x", {"authorization": "Bearer sk-ant-oat01-x"}),
        ("anthropic-messages", "compatible", "k", {"x-api-key": "k", "authorization": "Bearer k"}),
        ("openai-chat", "ollama", None, {}),
        ("openai-chat", "ollama", "", {}),
    ],
)
def test_a_key_stands_where_the_server_looks(
    name: wire.WireName, dialect: str, key: str | None, expected: dict[str, str]
) -> None:
    """Each server has its header, and no key means no header."""
    headers = endpoint(name, wire.DIALECTS.get(dialect, wire.COMPATIBLE), "http://h/v1", "m", key)[1]
    assert {k: v for k, v in headers.items() if k in ("authorization", "api-key", "x-api-key")} == expected
    assert ("anthropic-version" in headers) == (name == "anthropic-messages")


@pytest.mark.parametrize("base", ["", "localhost:8000", "ftp://h/v1", "http://"])
def test_a_base_that_is_no_url_is_refused(base: str) -> None:
    """The error says what a base URL begins with."""
    with pytest.raises(ValueError, match="http://"):
        endpoint("openai-chat", wire.COMPATIBLE, base, "m", None)


@pytest.mark.parametrize(
    "base",
    [
        "http://user:hunter2@h/v1",
        "https://hunter2@h",
        "ftp://u:hunter2@x",
        "user:hunter2@h/v1",
        "//user:hunter2@h",
        "http:/u:hunter2@h",
        "http://u:hunter2@[::1/v1",
        "HTTP://u:hunter2@h",
    ],
)
def test_a_base_with_a_password_is_refused_without_showing_it(base: str) -> None:
    """A password in a base URL would be printed and kept, so it is refused in words that do not hold it."""
    with pytest.raises(ValueError, match="put the key in the environment") as caught:
        endpoint("openai-chat", wire.dialect_of("lab", base), base, "m", None)
    assert "hunter2" not in str(caught.value)


def test_an_at_sign_in_the_path_is_no_password() -> None:
    """Some servers name models or accounts with an @ in the path."""
    assert (
        endpoint("openai-chat", wire.COMPATIBLE, "http://h/@cf/v1", "m", None)[0] == "http://h/@cf/v1/chat/completions"
    )


@pytest.mark.parametrize(
    ("name", "base", "dialect"),
    [
        ("openai", None, "openai"),
        ("work", "https://openrouter.ai/api/v1", "openrouter"),
        ("openai", "https://api.deepseek.com/v1", "deepseek"),
        ("lab", "https://eu.openai.azure.com/", "azure"),
        ("lab", "http://127.0.0.1:9", "compatible"),
        ("vllm", "http://gpu:8000/v1", "vllm"),
        ("lab", "https://evil-openrouter.ai.example/", "compatible"),
    ],
)
def test_a_dialect_is_known_by_its_host_then_by_its_name(name: str, base: str | None, dialect: str) -> None:
    """Where the request goes says more than what the user called it."""
    assert wire.dialect_of(name, base).name == dialect
