"""Which model is meant: `provider/model` in words becomes a provider to ask, with its window and its prices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .config import ProviderConfig
from .errors import UsageError, did_you_mean
from .limits.price import Price
from .model import Provider
from .prices import ModelInfo, lookup
from .wire import WireName

if TYPE_CHECKING:
    from .providers.http import HttpProvider
    from .providers.transport import RoutedTransport

OFFLINE = "offline/extract"
OUTPUT_CAP = 8192
"""Tokens of a reply where neither the model table nor the agent says."""


@attrs.frozen
class Known:
    """A provider that needs no settings: its wire, the variable its key is in, the model taken where none is named."""

    wire: WireName
    key_env: str | None
    default: str | None = None


KNOWN: Mapping[str, Known] = {
    "anthropic": Known("anthropic-messages", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
    "openai": Known("openai-chat", "OPENAI_API_KEY", "gpt-5.1"),
    "openrouter": Known("openai-chat", "OPENROUTER_API_KEY", "anthropic/claude-sonnet-4.5"),
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
BUILT_IN = ("offline", "scripted")
DEFAULT_ORDER = ("anthropic", "openai", "openrouter")


@attrs.frozen(eq=False)
class ModelRef:
    """A model that can be asked. `name` is the provider's own word for it; `price` None means nobody knows."""

    provider: Provider
    name: str
    full_name: str
    info: ModelInfo | None
    price: Price | None

    def output_cap(self, wanted: int | None) -> int:
        """Tokens to ask for at most: the agent's wish within the model's own bound."""
        most = self.info.max_output if self.info is not None else None
        return min(wanted or OUTPUT_CAP, most or wanted or OUTPUT_CAP)


@attrs.frozen
class ModelFlags:
    """What the command line says about models."""

    model: str | None = None
    base_url: str | None = None
    wire: WireName | None = None


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
    return OFFLINE


class Models:
    """The models of one run; providers are made when first asked for, and share one transport."""

    def __init__(
        self,
        flags: ModelFlags = ModelFlags(),
        providers: Mapping[str, ProviderConfig] | None = None,
        extra: Mapping[str, ModelInfo] | None = None,
        environment: Mapping[str, str] | None = None,
        given: Mapping[str, Provider] | None = None,
    ) -> None:
        self._flags = flags
        self._configured = dict(providers or {})
        self._extra = dict(extra or {})
        self._environment = os.environ if environment is None else environment
        self._providers: dict[str, Provider] = dict(given or {})
        self._refs: dict[str, ModelRef] = {}
        self._transport: RoutedTransport | None = None

    def resolve(self, full_name: str) -> ModelRef:
        """The model a person named. Raises UsageError: unknown provider, no key, no such script."""
        found = self._refs.get(full_name)
        if found is None:
            found = self._refs[full_name] = self._resolve(full_name)
        return found

    async def aclose(self) -> None:
        """Close all connections; a cancelled call closes them just the same."""
        if self._transport is not None:
            await self._transport.aclose()

    @property
    def transport(self) -> RoutedTransport:
        if self._transport is None:
            from .providers.transport import RoutedTransport

            self._transport = RoutedTransport()
        return self._transport

    def _resolve(self, full_name: str) -> ModelRef:
        provider_name, slash, model = full_name.partition("/")
        if not slash or not model:
            if not self._flags.base_url:
                raise UsageError(f"'{full_name}' names no model: write provider/model  (elenco models)")
            provider_name, model = "server", full_name
        if provider_name == "scripted":
            return self._scripted(full_name, model)
        if provider_name == "offline":
            if model != "extract":
                raise UsageError(f"unknown model '{full_name}'; the offline one is {OFFLINE}")
            return self._built_in(full_name, model)
        provider = self._providers.get(provider_name)
        if provider is None:
            provider = self._providers[provider_name] = self._http(provider_name)
        info = lookup(provider_name, model, self._extra)
        return ModelRef(provider, model, f"{provider_name}/{model}", info, info.price if info is not None else None)

    def _built_in(self, full_name: str, model: str) -> ModelRef:
        provider = self._providers.get("offline")
        if provider is None:
            from .providers.offline import OfflineProvider

            provider = self._providers["offline"] = OfflineProvider()
        return ModelRef(provider, model, full_name, None, Price(0, 0))

    def _scripted(self, full_name: str, file: str) -> ModelRef:
        key = f"scripted/{file}"
        provider = self._providers.get(key)
        if provider is None:
            from .providers.scripted import ScriptedProvider

            provider = self._providers[key] = ScriptedProvider.load(Path(file))
        return ModelRef(provider, file, full_name, None, Price(0, 0))

    def _http(self, name: str) -> HttpProvider:
        from .providers.http import HttpProvider, Server
        from .wire.dialects import dialect_of

        known = KNOWN.get(name)
        configured = self._configured.get(name)
        flags = self._flags
        if known is None and configured is None and flags.base_url is None:
            names = [*KNOWN, *self._configured, *BUILT_IN]
            raise UsageError(f"unknown provider '{name}' in --model{did_you_mean(name, names)}  (elenco models)")
        base_url = flags.base_url or (configured.base_url if configured is not None else None)
        dialect = dialect_of(name, base_url)
        base_from = "--base-url" if flags.base_url else (f"providers.{name}" if configured is not None else "")
        wire_name = flags.wire or (configured.wire if configured else None) or (known.wire if known else "openai-chat")
        key_env = (configured.key_env if configured else None) or (known.key_env if known else None)
        if key_env is None and known is None:
            key_env = f"{name.upper().replace('-', '_')}_API_KEY"
        key = self._environment.get(key_env) if key_env else None
        if known is not None and known.key_env and not key and base_url is None:
            raise UsageError(f"no key for {name}: export {known.key_env}=…   or try without one: --model {OFFLINE}")
        url = base_url or dialect.base_url
        if not url:
            raise UsageError(f"{name} needs its address: --base-url URL")
        return HttpProvider(
            Server(name, wire_name, dialect, url, base_from, key or None, key_env or ""), self.transport
        )
