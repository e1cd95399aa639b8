"""Lessons noted for a skill: what was learned by using it, kept in the user's state and shown when it is used again."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

import attrs

from runtime.errors import UsageError
from runtime.handwritten import read_bytes

from .places import Entry

LONGEST = 500
MOST_KEPT = 100
MOST_SHOWN = 20
MOST_BYTES = 1 << 20


@attrs.frozen
class Lesson:
    """One lesson, and when it was noted, in seconds since the epoch."""

    at: float
    text: str


@attrs.frozen
class Lessons:
    """The lessons of all skills, below the state folder `state`; each skill's in a file of its own, one a line."""

    state: Path

    def of(self, entry: Entry) -> tuple[Lesson, ...]:
        """A skill's lessons, oldest first; a line that cannot be read is passed over. Blocks."""
        try:
            content = read_bytes(self._file(entry), MOST_BYTES).decode(errors="replace")
        except OSError:
            return ()
        found: list[Lesson] = []
        for line in content.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                kept = json.loads(line)
                found.append(Lesson(float(kept["at"]), str(kept["text"])))
        return tuple(found)

    def note(self, entry: Entry, text: str) -> int:
        """Keep a lesson; returns how many there are now. Blocks. Raises UsageError, OSError."""
        text = " ".join(text.split())
        if not text:
            raise UsageError('a lesson needs words: elenco skills note NAME "…"')
        if len(text) > LONGEST:
            raise UsageError(f"a lesson may have {LONGEST} characters, this one has {len(text)}")
        kept = self.of(entry)
        if any(lesson.text == text for lesson in kept):
            raise UsageError("that lesson is noted already")
        if len(kept) >= MOST_KEPT:
            raise UsageError(f"there are {len(kept)} lessons; drop one first: elenco skills note NAME --drop N")
        file = self._file(entry)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = json.dumps({"at": time.time(), "text": text}, ensure_ascii=False) + "\n"
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as out:
            out.write(line.encode(errors="replace"))
        return len(kept) + 1

    def drop(self, entry: Entry, number: int) -> Lesson:
        """Forget the lesson of that number, from 1. Blocks. Raises UsageError, OSError."""
        kept = list(self.of(entry))
        if not 1 <= number <= len(kept):
            have = {0: "none is noted", 1: "there is only lesson 1"}.get(
                len(kept), f"there are lessons 1 to {len(kept)}"
            )
            raise UsageError(f"there is no lesson {number}; {have}")
        gone = kept.pop(number - 1)
        file = self._file(entry)
        beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        lines = (json.dumps({"at": each.at, "text": each.text}, ensure_ascii=False) for each in kept)
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        os.replace(beside, file)
        return gone

    def _file(self, entry: Entry) -> Path:
        """One of a workspace has its lessons by its folder: another project's skill of that name is another one."""
        assert entry.skill is not None
        name = entry.skill.name
        key = f"{name}\n{os.path.realpath(entry.folder)}" if entry.origin == "workspace" else name
        return self.state / "lessons" / f"{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:24]}.jsonl"


def shown(lessons: tuple[Lesson, ...]) -> str:
    """The newest lessons, as an agent reads them; "" where there are none."""
    return "\n".join(f"- {lesson.text}" for lesson in lessons[-MOST_SHOWN:])
