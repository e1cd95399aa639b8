"""What the tools of one actor remember from call to call: which content of a file it knows, and its notes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from runtime.messages import JsonObject

SEEN = "seen"
"""The key under which a result's data names the files its call showed, each with the fingerprint of its content."""


def fingerprint(content: bytes) -> str:
    """The name of a content: its SHA-256."""
    return hashlib.sha256(content).hexdigest()


@attrs.define(eq=False)
class Memory:
    """`seen` maps the real path of a file to the fingerprint of the content this actor last read or wrote."""

    seen: dict[str, str] = attrs.Factory(dict[str, str])
    notes: tuple[JsonObject, ...] = ()

    def saw(self, path: str, content: bytes | None) -> None:
        """The actor now knows what the file holds, or that it is gone (None)."""
        if content is None:
            self.seen.pop(path, None)
        else:
            self.seen[path] = fingerprint(content)

    def knows(self, path: str) -> bool:
        return path in self.seen

    def is_current(self, path: str, content: bytes) -> bool:
        """Whether the content is the one this actor knows."""
        return self.seen.get(path) == fingerprint(content)

    def restore(self, seen: Mapping[str, str], notes: tuple[JsonObject, ...]) -> None:
        """Take over what an earlier process's actor knew."""
        self.seen.update(seen)
        self.notes = notes
