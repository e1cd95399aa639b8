"""The static shell: the files under static/, each by its own path only, and the headers every answer has."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import attrs

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@attrs.frozen
class Shell:
    """The files by the path they are asked for with, and the policy the page runs under."""

    files: Mapping[str, Path]
    policy: str

    @classmethod
    def found(cls, folder: Path = FOLDER) -> Shell:
        """What is there now; a file that comes later is not served. Blocks."""
        files = {
            f"/{path.relative_to(folder).as_posix()}": path
            for path in sorted(folder.rglob("*"))
            if path.suffix in _TYPES and path.is_file()
        }
        index = folder / "index.html"
        return cls({"/": index, **files}, policy(index.read_text(encoding="utf-8")))


def media_type(path: Path) -> str:
    return _TYPES[path.suffix]


def policy(page: str) -> str:
    """The Content-Security-Policy of a page: its own files, its own inline import map by hash, and nothing else.

    Trusted types without any policy: the browser itself refuses whatever would make markup out of text.
    """
    inline = re.findall(r"<script type=\"importmap\">(.*?)</script>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inline]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in hashes)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def headers(policy: str) -> list[tuple[bytes, bytes]]:
    """What every answer carries, refusals included."""
    return [
        (b"content-security-policy", policy.encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"cache-control", b"no-store"),
    ]
