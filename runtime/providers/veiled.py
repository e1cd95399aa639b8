"""A provider that is no server of ours, with the secrets this process knows taken out of all it says."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.model import Delta, Emit, ModelRequest, Provider, ProviderError, Reply

from .redaction import DeltaRedactor, redacted, without_secrets


class VeiledProvider:
    """The same provider: scripted, offline or handed over in code, none of which looks for secrets itself."""

    def __init__(self, provider: Provider, secrets: Sequence[str]) -> None:
        self._provider = provider
        self._secrets = secrets

    @property
    def name(self) -> str:
        return self._provider.name

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Its reply without secrets, streamed without them. A cancelled call leaves behind what the provider's does.

        Raises ProviderError, which tells no secret either.
        """
        veil = DeltaRedactor(self._secrets)

        def shown(deltas: Sequence[Delta]) -> None:
            if clean := veil.feed(deltas):
                emit(clean)

        try:
            reply = await self._provider.complete(request, shown)
        except ProviderError as error:
            error.message = redacted(error.message, self._secrets)
            if error.partial is not None:
                error.partial = without_secrets(error.partial, self._secrets)
            raise
        if deltas := veil.close():
            emit(deltas)
        return without_secrets(reply, self._secrets)

    def count(self, request: ModelRequest) -> int | None:
        return self._provider.count(request)

    def forget(self, actor: str) -> None:
        self._provider.forget(actor)
