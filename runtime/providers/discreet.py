"""A provider over HTTP that tells no model a secret, however it came into the conversation."""

from __future__ import annotations

from runtime.model import Emit, ModelRequest, Reply
from runtime.wire.encoder import RequestEncoder

from .http import HttpProvider
from .redaction import MARK, written


class _Encoder(RequestEncoder):
    """The encoder of one actor; its requests are searched as the bytes they are sent as."""

    forms: tuple[bytes, ...] = ()

    def encode(self, request: ModelRequest) -> bytes:
        body = super().encode(request)
        for form in self.forms:
            if form in body:
                body = body.replace(form, MARK.encode())
        return body


class DiscreetProvider(HttpProvider):
    """As HttpProvider; no secret of its server or of the others gets into a request."""

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Stream one reply. Raises ProviderError; a cancelled call closes its connection."""
        if request.actor not in self._encoders and self._secrets:
            encoder = _Encoder(self.server.wire, self.server.dialect, self.server.name, request.actor)
            encoder.forms = tuple(form.encode("latin-1") for secret in self._secrets for form in written(secret))
            self._encoders[request.actor] = encoder
        return await super().complete(request, emit)
