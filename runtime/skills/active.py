"""The skills one actor may use, and those it has loaded: their text, what they pre-approve, what may be read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import attrs

from runtime.errors import did_you_mean
from runtime.events import SkillLoaded
from runtime.foreign.rules import allow_rules
from runtime.frontmatter import Value, Wrong
from runtime.handwritten import read_start
from runtime.hooks.settings import Hook, hooks
from runtime.leniency import front
from runtime.policy.rules import Rule, parse_rule

from .document import Allowed
from .lessons import Lessons, shown
from .places import Entry, read_skill

BODY_CHARS = 24_000
BODY_BYTES = 1 << 20
MOST_FILES = 50
LIST_CHARS = 16_000
REOFFER_CHARS = 40_000
REOFFER_EACH = 16_000


class NoSkill(Exception):
    """A skill that cannot be loaded; the message is for the model that wanted it."""


@attrs.frozen
class Loaded:
    """A skill that was loaded: what the model was given, the hash of its file, the rules it brings, its folder.

    `folder` is "" where its files are in the workspace, or may not be read.
    """

    name: str
    path: str
    text: str
    digest: str
    rules: tuple[Rule, ...] = ()
    folder: str = ""
    hooks: tuple[Hook, ...] = ()

    def event(self) -> SkillLoaded:
        allows = tuple(str(rule) for rule in self.rules)
        return SkillLoaded(name=self.name, path=self.path, text=self.text, digest=self.digest, allows=allows)


@attrs.define(eq=False)
class ActiveSkills:
    """An actor's skills. `offered` are those its file names; what it has loaded is on record and survives a resume.

    `trusted` says whether the workspace's own skills may pre-approve anything, `reader` whether the actor has a tool
    that reads files.
    """

    root: str = ""
    offered: Mapping[str, Entry] = attrs.Factory(dict[str, Entry])
    lessons: Lessons | None = None
    trusted: bool = False
    reader: bool = True
    loaded: dict[str, Loaded] = attrs.Factory(dict[str, Loaded])

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders outside the workspace whose files may be read."""
        return tuple(dict.fromkeys(each.folder for each in self.loaded.values() if each.folder))

    def find(self, name: str) -> Entry:
        """The offered skill of that name, give or take its spelling. Raises NoSkill."""
        if (entry := self.offered.get(name)) is not None:
            return entry
        wanted = _plain(name)
        close = [entry for known, entry in self.offered.items() if _plain(known) == wanted]
        if len(close) == 1:
            return close[0]
        there = ", ".join(self.offered) or "none"
        raise NoSkill(f"there is no skill '{name}'{did_you_mean(name, self.offered)}; there is: {there}")

    def read(self, entry: Entry) -> Loaded:
        """What a skill gives to whoever loads it, read anew. Blocks. Raises NoSkill."""
        reading = read_skill(entry.path)
        if reading.skill is None:
            why = "; ".join(problem.text for problem in reading.problems if problem.level == "fault")
            raise NoSkill(f"{entry.shown} cannot be used any more: {why}")
        try:
            content, size = read_start(entry.path, BODY_BYTES)
        except OSError as error:
            raise NoSkill(f"{entry.shown} cannot be read: {error.strerror}") from error
        name = entry.skill.name if entry.skill is not None else reading.skill.name
        inside, folder = self._where(entry)
        where = inside or folder
        body = front(content.decode(errors="replace")).split
        parts = [
            f"# Skill {name}\n(from {where or entry.shown}/{entry.path.name}; paths in it are relative to that folder)",
            _page(body.body.strip("\n"), f"{where}/{entry.path.name}" if where else "", body.body_line, size),
            self._files(entry, where),
        ]
        if self.lessons is not None and (noted := shown(self.lessons.of(entry))):
            parts.append(f"Lessons from using this skill before:\n{noted}")
        counts = entry.origin != "workspace" or (self.trusted and bool(inside))
        brought = _hooks(reading.skill.hooks, name) if counts else ()
        rules = _rules(reading.skill.allowed or (), name) if counts else ()
        text = "\n\n".join(part for part in parts if part)
        return Loaded(name, entry.shown, text, digest_of(content, size), rules, folder, brought)

    def _where(self, entry: Entry) -> tuple[str, str]:
        """The skill's folder relative to the workspace, or the folder outside it that may be read; "" for neither."""
        real = os.path.realpath(entry.folder)
        if self.root and (real == self.root or real.startswith(f"{self.root}/")):
            return os.path.relpath(real, self.root), ""
        # What a workspace's link leads to was agreed to by nobody.
        return ("", "") if entry.origin == "workspace" else ("", real)

    def _files(self, entry: Entry, where: str) -> str:
        names, more = _files_below(entry.folder)
        if not names:
            return ""
        if not where:
            return "Its files lie outside the workspace, through a link, and are not open to you."
        head = "Files of this skill; read_file shows one, when the text above asks for it:"
        if not self.reader:
            head = "Files of this skill (you have no tool that reads them):"
        lines = [f"- {where}/{name}" for name in names]
        return "\n".join([head, *lines, *([f"[{more} more not listed]"] if more else [])])

    def take(self, loaded: Loaded) -> tuple[Rule, ...]:
        """Count a skill as loaded, the newest one; returns the rules it brings that were not there."""
        before = self.loaded.pop(loaded.name, None)
        self.loaded[loaded.name] = loaded
        had = before.rules if before is not None else ()
        return tuple(rule for rule in loaded.rules if rule not in had)

    def restore(self, events: Iterable[SkillLoaded]) -> tuple[Rule, ...]:
        """Take over what an earlier process had loaded; returns the rules in force.

        Only rules that the record names and the unchanged file still brings count: neither grants alone. Blocks.
        """
        rules: list[Rule] = []
        for event in events:
            entry = self.offered.get(event.name)
            now = self._unchanged(entry, event.digest) if entry is not None else None
            brings = tuple(rule for rule in now.rules if str(rule) in event.allows) if now is not None else ()
            folder = now.folder if now is not None else ""
            brought = now.hooks if now is not None else ()
            rules += self.take(Loaded(event.name, event.path, event.text, event.digest, brings, folder, brought))
        return tuple(rules)

    def _unchanged(self, entry: Entry, digest: str) -> Loaded | None:
        try:
            now = self.read(entry)
        except NoSkill:
            return None
        return now if now.digest == digest else None

    def changed(self) -> tuple[str, ...]:
        """The loaded skills whose file is another by now, or gone. Blocks."""
        return tuple(
            name
            for name, loaded in self.loaded.items()
            if loaded.digest and ((entry := self.offered.get(name)) is None or _digest(entry.path) != loaded.digest)
        )

    def reoffer(self, shown: Collection[str] = (), chars: int = REOFFER_CHARS) -> str:
        """What to show again once the messages in which skills were loaded are gone, all but those `shown`.

        The newest come whole, as long as they fit into `chars`; the others are named, to be loaded again. "" where
        none was loaded.
        """
        room, whole, named = chars, list[str](), list[str]()
        for each in reversed(self.loaded.values()):
            if any(_plain(each.name) == _plain(name) for name in shown):
                continue
            if each.text and len(each.text) <= min(room, REOFFER_EACH):
                whole.append(each.text)
                room -= len(each.text)
            else:
                named.append(each.name)
        if not whole and not named:
            return ""
        parts = ["These skills were loaded earlier in this work; what they say still holds."] if whole else []
        parts += reversed(whole)
        if named:
            parts.append(f"Loaded earlier as well (use_skill shows them again): {', '.join(reversed(named))}")
        return "\n\n".join(parts)


def listed(offered: Mapping[str, Entry], room: int = LIST_CHARS) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Names with their headlines for a prompt, and whether some had to be shortened to fit into `room` characters."""
    lines = [(name, entry.skill.headline) for name, entry in offered.items() if entry.skill is not None]
    if sum(len(name) + len(text) for name, text in lines) <= room:
        return tuple(lines), False
    each = max(60, room // max(1, len(lines)) - 40)
    return tuple((name, text if len(text) <= each else f"{text[: each - 1]}…") for name, text in lines), True


def digest_of(content: bytes, size: int) -> str:
    """The hash of a skill's file, by its beginning and its size."""
    return hashlib.sha256(content + str(size).encode()).hexdigest()


def _digest(path: Path) -> str:
    try:
        return digest_of(*read_start(path, BODY_BYTES))
    except OSError:
        return ""


def _rules(allowed: Allowed, name: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(rule, f"skill {name}") for token in allowed for rule in allow_rules(token))


def _hooks(written: Value | None, name: str) -> tuple[Hook, ...]:
    """The hooks a skill brings, none where its block has a fault, which `elenco check` tells."""
    try:
        found = hooks(written) if written is not None else ()
    except Wrong:
        return ()
    return tuple(attrs.evolve(hook, name=f"skill {name}{hook.name}") for hook in found)


def _page(body: str, path: str, line: int, size: int) -> str:
    """The body, cut at the end of a line where it is too long, with where it goes on."""
    if len(body) <= BODY_CHARS and size <= BODY_BYTES:
        return body
    end = body.rfind("\n", 0, BODY_CHARS)
    kept = body[: end if end > 0 else BODY_CHARS]
    where = f'; read_file(path="{path}", start={line + kept.count(chr(10)) + 1}) shows more' if path else ""
    return f"{kept}\n[the rest is left out{where}]"


def _files_below(folder: Path) -> tuple[list[str], int]:
    """The files of a skill but its SKILL.md, and how many more there are; links to folders are not followed."""
    found: list[str] = []
    more = 0
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        below = os.path.relpath(at, folder)
        if below.count("/") >= 4:
            folders.clear()
        for name in sorted(files):
            if (below == "." and name.lower() == "skill.md") or name.startswith("."):
                continue
            path = name if below == "." else f"{below}/{name}"
            if len(found) < MOST_FILES and path.isprintable():
                found.append(path)
            else:
                more += 1
        if more > 1000:
            break
    return found, more


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-").replace(" ", "-").strip("-/")
