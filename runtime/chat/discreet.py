"""What a person typed, or a server said, without keys: those this machine knows, and what has their shape; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runtime.output.forbidden import masked
from runtime.providers.redaction import MARK
from runtime.secrecy import Veil

_PRIVATE = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,60}PRIVATE KEY[A-Z ]{0,10}-----.*?(?:-----END [^-]{1,80}-----|\Z)", re.DOTALL
)
_NAMED = re.compile(
    r"(?i)(?P<name>(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|credentials?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
    r"|\b(?:bearer|basic)\s{1,3})(?P<value>[^\s\"',;]{8,})"
)


def shown(text: str) -> str:
    """A text in which nothing stands that has the shape of a key."""
    return masked(_PRIVATE.sub("[a private key]", text), ("key",))


def kept(text: str, secrets: Iterable[str] = ()) -> str:
    """What is kept of a person's typing: without `secrets` as well, nor a value whose name says what it is."""
    return _NAMED.sub(lambda found: f"{found['name']}{MARK}", shown(Veil(secrets).text(text)))
