"""What was typed in a workspace's chats before: kept in the state folder without keys, newest last, each line once.

It blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import attrs

from runtime.errors import ElencoError

from .discreet import kept

KEPT = 500


@attrs.define(eq=False)
class Typed:
    """The lines, and where in them a person who looks back stands; `draft` is what stood there before."""

    file: Path
    workspace: Path
    lines: list[str] = attrs.field(init=False, factory=list[str])
    _place: int | None = attrs.field(init=False, default=None)
    _draft: str = attrs.field(init=False, default="")

    @classmethod
    def of(cls, state: Path, workspace: Path) -> Typed:
        """Those of a workspace; a file that cannot be read is none."""
        name = hashlib.sha256(os.fsencode(workspace.resolve())).hexdigest()[:16]
        typed = cls(state / "chat" / f"{name}.jsonl", workspace)
        with contextlib.suppress(OSError):
            found = typed.file.read_text(encoding="utf-8").splitlines()
            discreet = not typed.file.stat().st_mode & 0o077
            for line in found:
                with contextlib.suppress(ValueError):
                    if isinstance(text := json.loads(line), str):
                        typed._remember(clean := kept(text))
                        discreet = discreet and clean == text
            if len(found) > 2 * KEPT or not discreet:
                draft = typed.file.with_suffix(f".{os.getpid()}")
                draft.unlink(missing_ok=True)
                _append(draft, typed.lines)
                draft.rename(typed.file)
        return typed

    def add(self, text: str) -> None:
        """Keep a line; in this chat it comes back as it is, to the disk it goes without the keys in it.

        Where it cannot be written it is known until the chat ends.
        """
        self._place = None
        self._remember(text)
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(0o700, parents=True, exist_ok=True)
            _append(self.file, [kept(text, self._secrets)])

    @cached_property
    def _secrets(self) -> tuple[str, ...]:
        from runtime.models import Models
        from runtime.outline import settings_of

        try:
            here, user = settings_of(self.workspace)
        except ElencoError:
            return Models().secrets
        return Models(providers={**user.providers, **here.providers}).secrets

    def back(self, now: str) -> str | None:
        """The line before; `now` is what stands there and comes again at the end. None where there is none."""
        if self._place is None:
            self._place, self._draft = len(self.lines), now
        if self._place == 0:
            return None
        self._place -= 1
        return self.lines[self._place]

    def forth(self) -> str | None:
        """The line after, at last what was being typed; None for who has not gone back."""
        if self._place is None:
            return None
        self._place += 1
        if self._place >= len(self.lines):
            self._place = None
            return self._draft
        return self.lines[self._place]

    def _remember(self, text: str) -> None:
        if text in self.lines:
            self.lines.remove(text)
        self.lines.append(text)
        del self.lines[:-KEPT]


def _append(file: Path, lines: Iterable[str]) -> None:
    """Nobody else may read what was typed."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "a", encoding="utf-8") as out:
        out.write("".join(json.dumps(line) + "\n" for line in lines))
