"""Which model is meant: `provider/model` in words becomes a provider to ask, with its window and its prices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from .config import ProviderConfig
from .errors import UsageError
from .known import BUILT_IN as BUILT_IN
from .known import DEFAULT_ORDER as DEFAULT_ORDER
from .known import KNOWN as KNOWN
from .known import OFFLINE as OFFLINE
from .known import Known as Known
from .known import ModelFlags as ModelFlags
from .known import default_model as default_model
from .known import key_variable, place_of, refuse_odd_key, split_name
from .limits.price import Price
from .model import Provider
from .prices import ModelInfo, doubt, lookup
from .secrecy import secrets_of

if TYPE_CHECKING:
    from .providers.http import Exchange, HttpProvider
    from .providers.transport import RoutedTransport
    from .wire import WireName

_WAITS = {"connect": "connect", "first_byte": "first_byte", "idle": "read"}
OUTPUT_CAP = 8192
"""Tokens of a reply where neither the model table nor the agent says."""
_NO_FLAGS = ModelFlags()


@attrs.frozen(eq=False)
class ModelRef:
    """A model that can be asked. `name` is the provider's own word for it; `price` None means nobody knows."""

    provider: Provider
    name: str
    full_name: str
    info: ModelInfo | None
    price: Price | None

    @property
    def window(self) -> int | None:
        """Tokens of a request and its reply together, where that is known."""
        return self.info.window if self.info is not None else None

    def price_for(self, input_tokens: int) -> Price | None:
        """The rates a prompt of this size is billed at: some models cost more for a long one."""
        return self.info.price_for(input_tokens) if self.info is not None else self.price

    def output_cap(self, wanted: int | None) -> int:
        """Tokens to ask for at most: the agent's wish within the model's own bound."""
        most = self.info.max_output if self.info is not None else None
        return min(wanted or OUTPUT_CAP, most or wanted or OUTPUT_CAP)


class Models:
    """The models of one run; providers are made when first asked for, and share one transport.

    `addresses` are further ones from the settings, which may hold a password.
    """

    def __init__(
        self,
        flags: ModelFlags = _NO_FLAGS,
        providers: Mapping[str, ProviderConfig] | None = None,
        extra: Mapping[str, ModelInfo] | None = None,
        environment: Mapping[str, str] | None = None,
        given: Mapping[str, Provider] | None = None,
        addresses: Iterable[str] = (),
    ) -> None:
        self._flags = flags
        self._configured = dict(providers or {})
        self._extra = dict(extra or {})
        self._environment = os.environ if environment is None else environment
        self._addresses = tuple(addresses)
        self._providers: dict[str, Provider] = {
            name: self._veiled(provider) for name, provider in (given or {}).items()
        }
        self._refs: dict[str, ModelRef] = {}
        self._transport: RoutedTransport | None = None

    def resolve(self, full_name: str) -> ModelRef:
        """The model a person named. Raises UsageError: unknown provider, no key, no such script."""
        found = self._refs.get(full_name)
        if found is None:
            found = self._refs[full_name] = self._resolve(full_name)
        return found

    def doubt(self, full_name: str) -> str:
        """What to tell of a name that is probably mistyped; nothing where a server has names of its own."""
        return "" if self._flags.base_url else doubt(full_name, self._extra)

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
        provider_name, model = split_name(full_name, self._flags)
        if provider_name == "scripted":
            return self._scripted(full_name, model)
        if provider_name == "offline":
            if model != "extract":
                raise UsageError(f"unknown model '{full_name}'; the offline one is {OFFLINE}")
            return self._built_in(full_name, model)
        provider = self._providers.get(provider_name)
        if provider is None:
            provider = self._providers[provider_name] = self._http(full_name)
        info = lookup(provider_name, model, self._extra)
        return ModelRef(provider, model, f"{provider_name}/{model}", info, info.price if info is not None else None)

    def _built_in(self, full_name: str, model: str) -> ModelRef:
        provider = self._providers.get("offline")
        if provider is None:
            from .providers.offline import OfflineProvider

            provider = self._providers["offline"] = self._veiled(OfflineProvider())
        return ModelRef(provider, model, full_name, None, Price(0, 0))

    def _scripted(self, full_name: str, file: str) -> ModelRef:
        key = f"scripted/{file}"
        provider = self._providers.get(key)
        if provider is None:
            from .providers.scripted import ScriptedProvider

            provider = self._providers[key] = self._veiled(ScriptedProvider.load(Path(file)))
        given = self._extra.get(full_name) or self._extra.get(f"scripted/{Path(file).name}")
        info = attrs.evolve(given, price=given.price or Price(0, 0)) if given is not None else None
        return ModelRef(provider, file, full_name, info, Price(0, 0) if info is None else info.price)

    def _veiled(self, provider: Provider) -> Provider:
        """A provider that looks for no secrets itself, with them taken out of what it says."""
        if not self.secrets:
            return provider
        from .providers.veiled import VeiledProvider

        return VeiledProvider(provider, self.secrets)

    def _http(self, full_name: str) -> HttpProvider:
        from .providers.discreet import DiscreetProvider
        from .providers.http import Server
        from .providers.transport import DEFAULT_TIMEOUTS
        from .wire.dialects import dialect_of

        place = place_of(full_name, self._flags, self._configured, self._environment)
        try:
            dialect = dialect_of(place.provider, place.base_url)
        except ValueError as error:
            raise UsageError(f"{place.base_from} {place.base_url!r}: {error}") from None
        url = place.base_url or dialect.base_url
        if not url:
            raise UsageError(f"{place.provider} needs its address: --base-url URL")
        refuse_odd_key(place)
        server = Server(place.provider, place.wire, dialect, url, place.base_from, place.key, place.key_from)
        own = self._configured.get(place.provider)
        waits = {_WAITS[name]: seconds for name, seconds in own.timeouts.items()} if own is not None else {}
        try:
            return DiscreetProvider(
                server, self.transport, attrs.evolve(DEFAULT_TIMEOUTS, **waits), self._record(server.wire), self.secrets
            )
        except ValueError as error:
            raise UsageError(f"{place.base_from or place.provider}: {error}") from None

    def _record(self, wire: WireName) -> Callable[[Exchange], None] | None:
        folder = self._flags.record
        if folder is None:
            return None
        from .providers.recording import recorder

        try:
            return recorder(folder, wire, self.secrets)
        except OSError as error:
            raise UsageError(f"--record {folder}: {error.strerror}") from None

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Every secret the environment and the settings hold: none of them belongs into a request or a record."""
        names = {key_variable(name, self._configured.get(name)) for name in (*KNOWN, *self._configured)}
        keys = (key for name in names if name and (key := self._environment.get(name, "").strip()))
        urls = (provider.base_url for provider in self._configured.values() if provider.base_url)
        return secrets_of(self._environment, keys, (*urls, *self._addresses))
