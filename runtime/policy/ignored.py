"""What `.gitignore` files say about a path: the deepest file that has an opinion decides, its last match wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@attrs.frozen
class Ignored:
    """The rules in force in one folder: its own file's and those of the folders above, outermost first."""

    _levels: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def with_file(self, folder: str, text: str) -> Ignored:
        """The rules once `folder` (relative to the root, "" for the root) brings a .gitignore with this text."""
        spec = _read(text)
        prefix = f"{folder}/" if folder else ""
        return Ignored((*self._levels, (prefix, spec))) if spec is not None else self

    def covers(self, path: str, *, folder: bool = False) -> bool:
        """Whether git would ignore `path`, given that it ignores none of the folders above it."""
        for prefix, spec in reversed(self._levels):
            relative = path[len(prefix) :]
            verdict = spec.check_file(f"{relative}/" if folder else relative).include
            if verdict is not None:
                return verdict
        return False


def _read(text: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        return None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
