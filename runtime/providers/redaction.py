"""Secrets taken out of bytes on their way into a record, however the bytes are cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

REDACTED = b"[redacted]"


class Redactor:
    """One stream's: what could be the beginning of a secret is held back until the next piece tells.

    A secret is also found as JSON would write it. An empty one is none.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form.encode("utf-8", "surrogatepass") for secret in secrets if secret for form in _forms(secret)}
        self._secrets = sorted(found, key=len, reverse=True)
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """The next piece; what is sure of it comes back."""
        if not self._secrets:
            return data
        if self._held:
            data = self._held + data
        kept = 0
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, REDACTED)
            kept = max(kept, _begun(data, secret))
        self._held = data[len(data) - kept :]
        return data[: len(data) - kept]

    def close(self) -> bytes:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, b""
        return held

    def whole(self, data: bytes) -> bytes:
        """All of a text at once."""
        return self.feed(data) + self.close()


def _begun(data: bytes, secret: bytes) -> int:
    """How many bytes at the end of `data` a secret may begin with."""
    tail = data[max(0, len(data) - len(secret) + 1) :]
    at = tail.find(secret[:1])
    while at >= 0:
        if secret.startswith(tail[at:]):
            return len(tail) - at
        at = tail.find(secret[:1], at + 1)
    return 0


def _forms(secret: str) -> Iterable[str]:
    escaped = json.dumps(secret)[1:-1]
    return (secret, escaped, json.dumps(secret, ensure_ascii=False)[1:-1], escaped.replace("/", "\\/"))
