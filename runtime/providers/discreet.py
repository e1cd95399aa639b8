"""A provider over HTTP that tells no model a secret, however it came into the conversation."""

from __future__ import annotations

from functools import cached_property

from runtime.model import ModelRequest
from runtime.wire.encoder import RequestEncoder

from .http import HttpProvider
from .redaction import MARK, written


class _Encoder(RequestEncoder):
    """The encoder of one actor; its requests are searched as the bytes they are sent as."""

    forms: tuple[bytes, ...] = ()

    def pieces(self, request: ModelRequest) -> list[bytes]:
        pieces = super().pieces(request)
        body = b"".join(pieces)
        if not any(form in body for form in self.forms):
            return pieces
        for form in self.forms:
            body = body.replace(form, MARK.encode())
        return [body]


class DiscreetProvider(HttpProvider):
    """As HttpProvider; no secret of its server or of the others gets into a request."""

    @cached_property
    def _forms(self) -> tuple[bytes, ...]:
        return tuple(form.encode("latin-1") for secret in self._secrets for form in written(secret))

    def _encoder(self, actor: str) -> RequestEncoder:
        encoder = _Encoder(self.server.wire, self.server.dialect, self.server.name, actor)
        encoder.forms = self._forms
        return encoder
