"""The models one can name: which providers need no settings, which model is meant where none is named.

Cheap to import, so that a mistyped name is told before anything slow is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from .config import ProviderConfig
    from .wire import WireName


class KeyMissing(UsageError):
    """The provider is known, but the variable its key should be in is empty."""


OFFLINE = "offline/extract"
BUILT_IN = ("offline", "scripted")


MEMORY_TOOLS = ("remember", "recall", "forget")
"""Tools that an agent has only if its own file names them, whatever else it is given."""

TOOL_NAMES = (
    *("list_files", "find_files", "search_text", "search_passages", "read_file", "write_file"),
    *("edit_file", "insert_lines", "replace_lines", "delete_lines", "apply_patch"),
    *("move_file", "delete_file", "make_folder", "diff", "file_outline"),
    *("shell", "start_job", "job_output", "stop_job"),
    *("fetch_url", "search_web", "ask_user", "todo_write", "todo_read"),
    *MEMORY_TOOLS,
)
"""The tools of `runtime.tools.registry`, by name: loading them takes longer than telling of a slip may."""


@attrs.frozen
class Known:
    """A provider that needs no settings: its wire, the variable its key is in, the model taken where none is named."""

    wire: WireName
    key_env: str | None
    default: str | None = None


KNOWN: Mapping[str, Known] = {
    "anthropic": Known("anthropic-messages", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"),
    "openai": Known("openai-responses", "OPENAI_API_KEY", "gpt-6.1-sol"),
    "openrouter": Known("openai-chat", "OPENROUTER_API_KEY", "anthropic/claude-sonnet-5.5"),
    "deepseek": Known("openai-chat", "DEEPSEEK_API_KEY"),
    "mistral": Known("openai-chat", "MISTRAL_API_KEY"),
    "groq": Known("openai-chat", "GROQ_API_KEY"),
    "xai": Known("openai-chat", "XAI_API_KEY"),
    "gemini": Known("openai-chat", "GEMINI_API_KEY"),
    "azure": Known("openai-chat", "AZURE_OPENAI_API_KEY"),
    "ollama": Known("openai-chat", None),
    "vllm": Known("openai-chat", None),
    "llamacpp": Known("openai-chat", None),
    "lmstudio": Known("openai-chat", None),
}
DEFAULT_ORDER = ("anthropic", "openai", "openrouter")


@attrs.frozen
class ModelFlags:
    """What the command line says about models. `record` is the folder raw exchanges are written to.

    `overrides`: the model was chosen for a run under way: the first agent asks it, whatever that one's file says.
    """

    model: str | None = None
    base_url: str | None = None
    wire: WireName | None = None
    record: Path | None = None
    overrides: bool = False


@attrs.frozen
class Place:
    """Where a model is asked, as far as names, flags and settings tell; `base_url` None leaves it to the provider.

    `base_from` and `key_from` name the flag, file or variable that said so.
    """

    provider: str
    model: str
    wire: WireName
    base_url: str | None
    base_from: str
    key: str | None = attrs.field(repr=False)
    key_from: str


def default_model(flags: ModelFlags, config_model: str | None, environment: Mapping[str, str]) -> str:
    """The run's model: the flag, the settings, the first provider with a key, else the offline one."""
    if flags.model:
        return flags.model
    if flags.base_url:
        raise UsageError("--base-url needs the model's name as well: --model NAME")
    if config_model:
        return config_model
    for name in DEFAULT_ORDER:
        known = KNOWN[name]
        if known.key_env and environment.get(known.key_env):
            return f"{name}/{known.default}"
    if flags.wire:
        raise UsageError("--wire is the dialect of a server: name it as well: --base-url URL --model NAME")
    return OFFLINE


def split_name(full_name: str, flags: ModelFlags) -> tuple[str, str]:
    """Provider and model. Raises UsageError for what names none, unless a base URL says whom to ask."""
    provider, slash, model = full_name.partition("/")
    if slash and provider and model:
        return provider, model
    if flags.base_url:
        return "server", full_name
    near = f"; did you mean '{full_name.rstrip('/')}/NAME'?" if full_name.rstrip("/") in KNOWN else ""
    raise UsageError(f"'{full_name}' names no model: write PROVIDER/MODEL{near}  (elenco models)")


def place_of(
    full_name: str,
    flags: ModelFlags,
    configured: Mapping[str, ProviderConfig],
    environment: Mapping[str, str],
    where: str = "--model",
) -> Place:
    """Where a model of a provider over HTTP is asked. Raises UsageError: no such provider, no key."""
    provider, model = split_name(full_name, flags)
    known, own = KNOWN.get(provider), configured.get(provider)
    if known is None and own is None and flags.base_url is None:
        names = [*KNOWN, *configured, *BUILT_IN]
        raise UsageError(f"unknown provider '{provider}' in {where}{did_you_mean(provider, names)}  (elenco models)")
    base_url = flags.base_url or (own.base_url if own is not None else None)
    base_from = "--base-url" if flags.base_url else (f"providers.{provider}" if own is not None and base_url else "")
    if base_url is not None and (why := unusable(base_url)):
        shown = "" if "@" in base_url else f" {base_url!r}"
        raise UsageError(f"{base_from}{shown}: {why}")
    key_env = key_variable(provider, own)
    if own is not None and own.keyless and not flags.base_url:
        key_env = None
    key = environment.get(key_env, "").strip() if key_env else None
    if known is not None and known.key_env and not key and base_url is None:
        raise KeyMissing(f"no key for {provider}: export {known.key_env}=…   or try without one: --model {OFFLINE}")
    wire = flags.wire or (own.wire if own is not None else None) or (known.wire if known is not None else "openai-chat")
    return Place(provider, model, wire, base_url, base_from, key or None, key_env or "")


def refuse_odd_key(place: Place) -> None:
    """Raises UsageError where the key could not be sent in a header; it is not shown."""
    if place.key is not None and not (place.key.isascii() and place.key.isprintable() and " " not in place.key):
        raise UsageError(f"the key in {place.key_from} is none: it holds a space, a line end or a strange character")


def unusable(url: str) -> str:
    """Why nobody can be asked at a base URL, or nothing; no part of it is repeated, for it may hold a password."""
    from urllib.parse import urlsplit

    if not url.isprintable() or " " in url:
        return "it holds a space or a control character"
    if "@" in url.partition("://")[2].partition("/")[0]:
        return "it holds a user name or password, which would be shown and kept: put the key in the environment instead"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return "its port must be a number up to 65535" if "ort " in str(error) else f"it is no URL: {error}"
    if parts.scheme not in ("http", "https"):
        return "it must begin with http:// or https://"
    return "it names no host" if not parts.hostname or port == 0 else ""


def key_variable(provider: str, own: ProviderConfig | None) -> str | None:
    """The variable a provider's key is looked for in, None for one that needs no key."""
    if own is not None and own.key_env:
        return own.key_env
    known = KNOWN.get(provider)
    if known is not None:
        return known.key_env
    return f"{provider.upper().replace('-', '_').replace('.', '_')}_API_KEY"


def check_name(
    full_name: str,
    flags: ModelFlags,
    configured: Mapping[str, ProviderConfig],
    environment: Mapping[str, str],
    where: str = "--model",
) -> None:
    """Whether the model can be asked, as far as can be told at once. Raises UsageError."""
    provider, model = split_name(full_name, flags)
    if provider == "offline":
        if model != "extract":
            raise UsageError(f"unknown model '{full_name}'; the offline one is {OFFLINE}")
    elif provider == "scripted":
        from .providers.script import load_script

        load_script(Path(model))
    else:
        refuse_odd_key(place_of(full_name, flags, configured, environment, where))
