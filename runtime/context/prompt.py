"""The system prompt of an actor: its file's body with the template's names filled in, and what the runtime adds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(r"\{(model|workspace|tools|subagents|skills|date)\}")


def render(body: str, values: Mapping[str, str]) -> str:
    """Fill in the template names; every other brace is left as it is."""
    return _NAME.sub(lambda match: values.get(match[1], match[0]), body)


def listing(entries: Iterable[tuple[str, str]]) -> str:
    """Names with their one-line descriptions, as a prompt shows them; `(none)` where there are none."""
    lines = [f"- {name}: {description}" if description else f"- {name}" for name, description in entries]
    return "\n".join(lines) or "(none)"


def system_parts(prompt: str, sections: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The prompt and the runtime's marked sections, each a part of its own so that caching can cut between them."""
    return (prompt, *(_marked(tag, content) for tag, content in sections if content.strip()))


def _marked(tag: str, content: str) -> str:
    """A section between its marks; text in it that looks like the closing one does not close it."""
    return f"<{tag}>\n{content.strip().replace(f'</{tag}>', f'</ {tag}>')}\n</{tag}>"
