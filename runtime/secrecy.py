"""What must never be told: keys and passwords this process knows, taken out of what is shown, sent or kept. Pure.

They are known by value, so it does not matter who writes one: a file that is read, a command that prints its
environment, a server that quotes the request. Short values are ordinary words and are left alone.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from .events import Event, body_of, event_from, type_of
from .providers.redaction import MARK, Redactor, deep, holds, written

E = TypeVar("E", bound=Event)

LEAST = 12
"""Characters of a value that is taken for a secret by the name of its variable."""
LEAST_PASSWORD = 6
"""Characters of a password in an address."""
_SOUNDS_SECRET = re.compile(r"(?i)(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)$")
_PATH = re.compile(r"~|\.{0,2}/|[A-Za-z]:\\")


def secrets_of(
    environment: Mapping[str, str], keys: Iterable[str] = (), addresses: Iterable[str] = ()
) -> tuple[str, ...]:
    """All secrets: given `keys`, what variables hold whose name says so, passwords in variables and in `addresses`."""
    found: dict[str, None] = {key: None for key in keys if len(key) >= LEAST}
    for name, written_as in environment.items():
        value = written_as.strip()
        if _SOUNDS_SECRET.search(name) and len(value) >= LEAST and not _PATH.match(value) and "://" not in value:
            found[value] = None
        if "://" in value and "@" in value:
            found.update(dict.fromkeys(_of_address(value)))
    for address in addresses:
        found.update(dict.fromkeys(_of_address(address)))
    return tuple(found)


def _of_address(address: str) -> Iterator[str]:
    """The password of an address as written, decoded, and as a header would carry it."""
    try:
        parts = urlsplit(address)
        user, password = parts.username or "", parts.password or ""
    except ValueError:
        return
    if len(password) >= LEAST_PASSWORD:
        plain = unquote(password)
        yield password
        yield plain
        yield base64.b64encode(f"{unquote(user)}:{plain}".encode()).decode()


class Veil:
    """Takes secrets out. Falsy where there is none to take out."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = tuple(sorted({secret for secret in secrets if secret}, key=len, reverse=True))
        self._json = tuple(json.dumps(secret)[1:-1] for secret in self.secrets)
        self._bytes = tuple(form.encode("latin-1") for secret in self.secrets for form in written(secret))

    def __bool__(self) -> bool:
        return bool(self.secrets)

    def text(self, text: str) -> str:
        """A text without secrets."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, MARK)
        return text

    def event(self, event: E) -> E:
        """An event without secrets, in whichever field they stand; the same one where it holds none."""
        if not self.secrets:
            return event
        body = body_of(event)
        if not holds(body, self.secrets):
            return event
        clean: Any = event_from(type_of(event), event.actor, deep(body, self.secrets))
        return clean  # type: ignore[no-any-return]

    def may_stand_in(self, body: str) -> bool:
        """Whether a secret may stand in an event, given as JSON in plain ASCII; False is certain.

        To search the text the journal needs anyway costs a hundredth of a walk through the event's fields.
        """
        return any(secret in body for secret in self._json)

    def holds(self, data: bytes) -> bool:
        """Whether a secret stands in a content, as it is or as JSON would write it."""
        return any(form in data for form in self._bytes)

    def stream(self) -> Redactor:
        """For a text that comes in pieces, which may cut a secret."""
        return Redactor(self.secrets)


def without_password(address: str) -> str:
    """An address as it may be shown: without user, password and query."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        scheme, rest = "", address
    host, slash, path = rest.partition("/")
    shown = f"…@{host.rpartition('@')[2]}" if "@" in host else host
    path, query, _ = path.partition("?")
    return f"{scheme}{mark}{shown}{slash}{path}{'?…' if query else ''}"
