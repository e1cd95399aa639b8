"""The key `sandbox` of settings files, each fault at its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runtime.frontmatter import Fields, Value, Wrong, integer, kind, one_of, texts
from runtime.policy.decision import NETWORKS, SANDBOXES

from .environment import sounds_secret
from .walls import SandboxSettings

KEYS = ("level", "network", "read", "env", "memory", "processes", "file_size", "open_files", "cpu")
_SIZE = re.compile(r"(\d+)\s*(|[kmgt])i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_MEMORY = 16 << 20


def sandbox_settings(value: Value) -> SandboxSettings:
    """What a settings file says of walls. Raises Wrong."""
    fields = Fields[Any](value, KEYS, [])
    found = SandboxSettings(
        level=fields.take("level", one_of(*SANDBOXES)),
        network=fields.take("network", _network),
        read=fields.take("read", _folders, ()),
        env=fields.take("env", _variables, ()),
        memory=fields.take("memory", _bytes(_LEAST_MEMORY)),
        processes=fields.take("processes", integer(1)),
        file_size=fields.take("file_size", _bytes(1024)),
        open_files=fields.take("open_files", integer(16)),
        cpu=fields.take("cpu", integer(1)),
    )
    if fields.faults:
        raise Wrong("", faults=fields.faults)
    return found


def _network(value: Value) -> str:
    plain = value.plain()
    if isinstance(plain, bool):  # YAML reads `on` and `off` so.
        return "all" if plain else "tools"
    return one_of(*NETWORKS)(value)


def _folders(value: Value) -> tuple[str, ...]:
    found = texts(value)
    for folder in found:
        if not folder.startswith("/") or folder.rstrip("/") == "":
            raise Wrong(f"must be absolute paths of folders, found '{folder}'", value)
    return found


def _variables(value: Value) -> tuple[str, ...]:
    found = texts(value)
    for name in found:
        if sounds_secret(name):
            raise Wrong(f"{name} sounds like a secret, and no command is given one", value)
    return found


def _bytes(least: int) -> Callable[[Value], int]:
    def convert(value: Value) -> int:
        plain = value.plain()
        match = _SIZE.fullmatch(str(plain).strip()) if isinstance(plain, int | str) else None
        if match is None or isinstance(plain, bool):
            raise Wrong(f"expected a size such as 512MB or 8GB, found {kind(plain)}", value)
        size = int(match[1]) * _UNITS[match[2].lower()]
        if size < least:
            raise Wrong(f"must be {least} bytes or more", value)
        return size

    return convert
