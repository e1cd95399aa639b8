"""Why the beginning of a request is another than last time: what providers' prompt caches go by has changed; pure."""

from __future__ import annotations

import attrs

from runtime.model import ToolSpec


@attrs.frozen
class Prefix:
    """What stands before the messages."""

    model: str
    system: tuple[str, ...]
    tools: tuple[ToolSpec, ...]

    def changed_since(self, before: Prefix) -> str:
        """What is different, for a person; empty where every byte is the same."""
        if self == before:
            return ""
        found: list[str] = []
        if self.model != before.model:
            found.append(f"model {before.model} became {self.model}")
        if self.system != before.system:
            found.append("the prompt changed")
        old, new = {tool.name: tool for tool in before.tools}, {tool.name: tool for tool in self.tools}
        for word, names in (
            ("added", [name for name in new if name not in old]),
            ("removed", [name for name in old if name not in new]),
            ("changed", [name for name in new if name in old and new[name] != old[name]]),
        ):
            if names:
                found.append(f"{'tool' if len(names) == 1 else 'tools'} {word}: {', '.join(names)}")
        return "; ".join(found) or "the tools stand in another order"
