"""OpenRouter's `reasoning_details`: fragments merged into the blocks that may be sent back.

Sent back as fragments they are refused ("Invalid signature in thinking block").
"""

from __future__ import annotations

from typing import Any

from runtime.shapes import is_object

from .surrogates import repaired

_GROWING = ("text", "summary", "data")


class Details:
    """Blocks by (type, index), in the order they began. `mirrored`: the readable text also comes elsewhere."""

    def __init__(self) -> None:
        self.mirrored = False
        self._blocks: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._last: tuple[Any, ...] | None = None

    def add(self, details: list[Any]) -> str:
        """Take fragments in; the readable text among them comes back."""
        shown: list[str] = []
        for detail in details:
            if not is_object(detail):
                continue
            fragment: dict[str, Any] = detail
            block = self._blocks.setdefault(self._key(fragment), {})
            for key, value in fragment.items():
                if key in _GROWING and isinstance(value, str):
                    block[key] = (block.get(key) or "") + value
                elif key == "signature":
                    block[key] = value or block.get(key)
                elif block.get(key) is None:
                    block[key] = value
            shown.extend(text for key in ("text", "summary") if isinstance(text := fragment.get(key), str))
        return "".join(shown)

    def merged(self) -> list[dict[str, Any]]:
        """The blocks as they are to be sent back."""
        return [
            {key: repaired(value) if isinstance(value, str) else value for key, value in block.items()}
            for block in self._blocks.values()
        ]

    def _key(self, fragment: dict[str, Any]) -> tuple[Any, ...]:
        kind, index, name = fragment.get("type"), fragment.get("index"), fragment.get("id")
        if isinstance(index, int):
            key: tuple[Any, ...] = (kind, index)
        elif isinstance(name, str) and name:
            key = (kind, "id", name)
        elif self._last is not None and self._last[0] == kind:
            key = self._last
        else:
            key = (kind, "at", len(self._blocks))
        self._last = key
        return key
