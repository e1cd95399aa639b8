"""Who may have what from the dashboard: one decision over a request's head; pure.

The walls, each of which would do alone against a page of another origin: the server is reached by its own address
only, so that no foreign name can be pointed at it; whatever is not the static shell needs the token, which no browser
sends by itself; requests that other origins cause are refused; what writes is JSON, which no form can send.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hmac import compare_digest

import attrs

LONGEST_BODY = 4 << 20
"""Bytes a request's body may have."""
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@attrs.frozen
class Refusal:
    """An HTTP status and the reason in words."""

    status: int
    why: str


@attrs.frozen
class Door:
    """What one server lets in: requests to its own `port`, with its `token`; the `shell` needs none."""

    port: int
    token: str
    shell: Collection[str]

    @property
    def hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a request is not let in, None if it is; `headers` by lower-case name."""
        if headers.get("host") not in self.hosts:
            return Refusal(421, "this server answers to its own address only")
        if method in ("GET", "HEAD") and path in self.shell:
            return None
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return Refusal(403, "a page of another origin")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return Refusal(403, "a page of another origin")
        given = headers.get("authorization", "").encode("utf-8", "replace")
        if not compare_digest(given, f"Bearer {self.token}".encode()):
            return Refusal(401, "the token is missing or not this server's: use the link that `elenco dash` printed")
        return self._body(headers) if method in _WRITES else None

    def _body(self, headers: Mapping[str, str]) -> Refusal | None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return Refusal(415, "send application/json")
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()):
            return Refusal(411, "say how long the body is")
        if len(length) > 9 or int(length) > LONGEST_BODY:
            return Refusal(413, f"a body has at most {LONGEST_BODY} bytes")
        return None
