"""Raw exchanges with a model server, written as wire cases, so that a provider's quirk can be reported and replayed.

`elenco debug stream` reads these files. Keys are taken out: of headers by name, of bodies by value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from .http import Exchange

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "set-cookie", "cookie", "openai-organization"})
REDACTED = "[redacted]"


def recorder(folder: Path, wire: str, secrets: Iterable[str]) -> Callable[[Exchange], None]:
    """A function that writes each exchange to `folder` as NNN-model.json. Raises OSError where it cannot."""
    folder.mkdir(parents=True, exist_ok=True)
    keys = [secret for secret in secrets if secret]

    def record(exchange: Exchange) -> None:
        number = len(list(folder.glob("*.json"))) + 1
        name = f"{number:03}-{''.join(char if char.isalnum() else '-' for char in exchange.model)}"
        text = json.dumps(case_of(exchange, name, wire, keys), ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")

    return record


def case_of(exchange: Exchange, name: str, wire: str, keys: Iterable[str]) -> dict[str, object]:
    """One exchange as a wire case; chunks are the very reads of the body."""
    secrets = [key.encode() for key in keys]
    chunks = [_without(chunk, secrets) for chunk in exchange.chunks]
    headers = {
        header: REDACTED if header in SECRET_HEADERS else _without(value.encode(), secrets).decode()
        for header, value in exchange.headers.items()
    }
    try:
        encoded = [chunk.decode() for chunk in chunks]
        encoding = "utf8"
    except UnicodeDecodeError:
        encoded = [base64.b64encode(chunk).decode() for chunk in chunks]
        encoding = "base64"
    return {
        "name": name,
        "wire": wire,
        "why": "recorded by elenco run --record",
        "encoding": encoding,
        "status": exchange.status,
        "headers": headers,
        "chunks": encoded,
        "request": json.loads(_without(exchange.request, secrets)),
    }


def _without(data: bytes, secrets: Iterable[bytes]) -> bytes:
    for secret in secrets:
        data = data.replace(secret, REDACTED.encode())
    return data
