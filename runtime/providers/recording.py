"""Raw exchanges with a model server, written as wire cases, so that a provider's quirk can be reported and replayed.

`elenco debug stream` reads these files. Keys are taken out: of headers by name, of everything by value.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from .http import Exchange
from .redaction import MARK, BytesRedactor

SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "set-cookie", "cookie", "openai-organization"})
_NUMBERED = re.compile(r"(\d+)-.*\.json")


def recorder(folder: Path, wire: str, secrets: Iterable[str]) -> Callable[[Exchange], None]:
    """A function that writes each exchange to `folder` as NNN-model.json; it may be called from several threads.

    Both raise OSError where that is not possible. Nothing that is there is overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys = tuple(secrets)
    numbers = itertools.count(
        1 + max((int(n[1]) for path in folder.iterdir() if (n := _NUMBERED.fullmatch(path.name))), default=0)
    )

    def record(exchange: Exchange) -> None:
        model = re.sub(r"[^a-zA-Z0-9]+", "-", exchange.model)[:60]
        for number in numbers:
            name = f"{number:03}-{model}"
            text = json.dumps(case_of(exchange, name, wire, keys), ensure_ascii=False, indent=1)
            try:
                with (folder / f"{name}.json").open("x", encoding="utf-8", errors="surrogatepass") as file:
                    file.write(text + "\n")
            except FileExistsError:
                continue
            return

    return record


def case_of(exchange: Exchange, name: str, wire: str, secrets: Iterable[str]) -> dict[str, object]:
    """One exchange as a wire case; chunks are the very reads of the body."""
    keys = tuple(secrets)
    body = BytesRedactor(keys)
    chunks = [*(body.feed(chunk) for chunk in exchange.chunks), body.close()]
    if not chunks[-1]:
        del chunks[-1]
    headers = {
        header: MARK if header in SECRET_HEADERS else _clean(value.encode(), keys).decode()
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
        "request": json.loads(_clean(exchange.request, keys)),
    }


def _clean(data: bytes, keys: Iterable[str]) -> bytes:
    redactor = BytesRedactor(keys)
    return redactor.feed(data) + redactor.close()
