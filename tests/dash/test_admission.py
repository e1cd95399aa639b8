"""Who may have what: the decision over a request's head, as a table."""

from __future__ import annotations

import pytest

from runtime.dash.admission import LONGEST_BODY, Door

DOOR = Door(8900, "secret", frozenset({"/", "/app.js"}))
OURS = {"host": "127.0.0.1:8900", "authorization": "Bearer secret"}
JSON = {**OURS, "content-type": "application/json", "content-length": "2"}

TABLE: list[tuple[str, str, str, dict[str, str], int | None]] = [
    ("the shell needs no token", "GET", "/", {"host": "127.0.0.1:8900"}, None),
    ("nor by the other name", "HEAD", "/app.js", {"host": "localhost:8900"}, None),
    ("a link from elsewhere opens it", "GET", "/", {"host": "127.0.0.1:8900", "sec-fetch-site": "cross-site"}, None),
    ("a name that leads here", "GET", "/", {"host": "evil.example:8900"}, 421),
    ("another port", "GET", "/", {"host": "127.0.0.1:8901"}, 421),
    ("no port", "GET", "/", {"host": "127.0.0.1"}, 421),
    ("no host", "GET", "/", {}, 421),
    ("two hosts", "GET", "/", {"host": "127.0.0.1:8900, evil.example"}, 421),
    ("reading with the token", "GET", "/api/runs", OURS, None),
    ("reading without", "GET", "/api/runs", {"host": "127.0.0.1:8900"}, 401),
    ("a wrong token", "GET", "/api/runs", {**OURS, "authorization": "Bearer secreT"}, 401),
    ("a token beyond ASCII", "GET", "/api/runs", {**OURS, "authorization": "Bearer sécret"}, 401),
    ("the token in another scheme", "GET", "/api/runs", {**OURS, "authorization": "Basic secret"}, 401),
    ("what is no file", "GET", "/../server.py", {"host": "127.0.0.1:8900"}, 401),
    ("the shell written to", "POST", "/", {"host": "127.0.0.1:8900"}, 401),
    ("a foreign page that has the token", "GET", "/api/runs", {**OURS, "origin": "http://evil.example"}, 403),
    ("a foreign port of this machine", "POST", "/api/x", {**JSON, "origin": "http://127.0.0.1:9000"}, 403),
    ("no origin a browser would tell", "POST", "/api/x", {**JSON, "origin": "null"}, 403),
    ("another scheme", "POST", "/api/x", {**JSON, "origin": "https://127.0.0.1:8900"}, 403),
    ("caused by another site", "POST", "/api/x", {**JSON, "sec-fetch-site": "cross-site"}, 403),
    ("caused by a neighbour", "POST", "/api/x", {**JSON, "sec-fetch-site": "same-site"}, 403),
    (
        "our own page",
        "POST",
        "/api/x",
        {**JSON, "origin": "http://127.0.0.1:8900", "sec-fetch-site": "same-origin"},
        None,
    ),
    ("a program", "POST", "/api/x", JSON, None),
    ("with a character set", "POST", "/api/x", {**JSON, "content-type": "application/json; charset=utf-8"}, None),
    ("a form", "POST", "/api/x", {**JSON, "content-type": "text/plain"}, 415),
    ("no type", "PUT", "/api/x", OURS, 415),
    ("a body of unknown length", "POST", "/api/x", {**OURS, "content-type": "application/json"}, 411),
    ("a length that is none", "POST", "/api/x", {**JSON, "content-length": "²"}, 411),
    ("a body that is too long", "POST", "/api/x", {**JSON, "content-length": str(LONGEST_BODY + 1)}, 413),
    ("an absurd length", "POST", "/api/x", {**JSON, "content-length": "9" * 5000}, 413),
]


@pytest.mark.parametrize(("what", "method", "path", "headers", "status"), TABLE, ids=[row[0] for row in TABLE])
def test_the_door_lets_in_who_it_should_and_nobody_else(
    what: str, method: str, path: str, headers: dict[str, str], status: int | None
) -> None:
    """The door lets in who it should and nobody else."""
    del what
    refusal = DOOR.refusal(method, path, headers)
    assert status == (refusal.status if refusal is not None else None)
