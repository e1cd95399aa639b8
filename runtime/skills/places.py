"""Where skills are: all places a SKILL.md may be in, each folder met once, whatever links lead to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from runtime import shipped
from runtime.handwritten import read_start

from .document import Problem, Reading, Skill, read_document

Origin: TypeAlias = Literal["workspace", "user", "shipped"]

HOME_PLACES = (
    *(".config/elenco/skills", ".agents/skills", ".claude/skills", ".config/skills", ".config/agents/skills"),
    *(".config/opencode/skills", ".opencode/skills", ".codex/skills", ".copilot/skills", ".cursor/skills"),
    ".gemini/skills",
)
FILE = "SKILL.md"
HEAD_BYTES = 256 << 10
DEEPEST = 4
MOST_FOLDERS = 2000


@attrs.frozen
class Place:
    """A folder of skills; `shown` is what a person calls it."""

    folder: Path
    origin: Origin
    shown: str


@attrs.frozen
class Entry:
    """A SKILL.md that was met: its absolute path as it was found, and what became of it.

    `same_as` names the folder, listed already, that this one is a link to.
    """

    path: Path
    shown: str
    origin: Origin
    reading: Reading
    same_as: str = ""

    @property
    def skill(self) -> Skill | None:
        return self.reading.skill if not self.same_as else None

    @property
    def folder(self) -> Path:
        return self.path.parent


@attrs.frozen
class Shelf:
    """All skills by name, the first place wins; the rest is told, not lost.

    `shadowed` are later skills of a name already taken, with the one that has it; `broken` could not be read as
    skills; `notes` are other things a person should know.
    """

    skills: dict[str, Entry] = attrs.Factory(dict[str, Entry])
    met: tuple[Entry, ...] = ()
    shadowed: tuple[tuple[Entry, Entry], ...] = ()
    broken: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()


def places(workspace: Path, user: Path | None, home: Path | None, *, with_shipped: bool = True) -> list[Place]:
    """The places in their order: the workspace's, the user's, the shipped ones."""
    found = [Place(workspace / name, "workspace", name) for name in shipped.SKILL_PLACES]
    users = [user / "skills"] if user is not None else []
    users += [home / name for name in HOME_PLACES] if home is not None else []
    found += [Place(folder, "user", str(folder)) for folder in dict.fromkeys(users)]
    if with_shipped:
        found.append(Place(shipped.folder("skills"), "shipped", "shipped:skills"))
    return found


def find_skills(workspace: Path, user: Path | None = None, home: Path | None = None) -> Shelf:
    """Look in all places; without `user` and `home`, in those of this process's user. Blocks."""
    if user is None and home is None:
        from runtime.config import user_folder

        user = user_folder()
        home = Path(os.environ["HOME"]) if os.environ.get("HOME") else None
    return shelve(places(Path(os.path.abspath(workspace)), user, home))


def shelve(folders: Sequence[Place]) -> Shelf:
    """Everything in these places. What cannot be read is told; nothing stops the others. Blocks."""
    search = _Search()
    skills: dict[str, Entry] = {}
    shadowed: list[tuple[Entry, Entry]] = []
    met: list[Entry] = []
    for place in folders:
        for entry in search.look(place):
            met.append(entry)
            skill = entry.skill
            if skill is None:
                continue
            if skill.name in skills:
                shadowed.append((entry, skills[skill.name]))
            else:
                skills[skill.name] = entry
    broken = tuple(entry for entry in met if entry.skill is None and not entry.same_as)
    return Shelf(skills, tuple(met), tuple(shadowed), broken, tuple(search.notes))


class _Search:
    """One look through all places: folders met by their real path, so that no circle of links is walked twice."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._met: dict[str, str] = {}
        self._left = MOST_FOLDERS

    def look(self, place: Place) -> Iterator[Entry]:
        self._left = MOST_FOLDERS
        real = _real(place.folder)
        if real is None or not os.path.isdir(real):
            return
        if real in self._met:
            if place.folder.is_symlink():
                self.notes.append(f"{place.shown} is a link to {self._met[real]}, which was looked at already")
            return
        self._met[real] = place.shown
        yield from self._below(place.folder, place, place.shown, 1)

    def _below(self, folder: Path, place: Place, shown: str, depth: int) -> Iterator[Entry]:
        try:
            with os.scandir(folder) as found:
                items = sorted(found, key=lambda item: (item.is_symlink(), item.name))
        except OSError as error:
            self.notes.append(f"{shown} cannot be read: {error.strerror}")
            return
        for item in items:
            if item.name.startswith(".") or item.name == "node_modules":
                continue
            path, name = folder / item.name, f"{shown}/{item.name}"
            if item.is_symlink() and not path.exists() and _real(path) is None and not _is_folder(item):
                self.notes.append(f"{name} is a link to nothing")
                continue
            if not _is_folder(item):
                if depth == 1 and item.name.lower().endswith(".md") and item.name.lower() != "readme.md":
                    self.notes.append(f"{name} is no skill: a skill is a folder with a {FILE}")
                continue
            yield from self._folder(path, item.is_symlink(), place, name, depth)

    def _folder(self, path: Path, link: bool, place: Place, shown: str, depth: int) -> Iterator[Entry]:
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                self.notes.append(f"{place.shown} has more than {MOST_FOLDERS} folders; the rest was not looked at")
            return
        real = _real(path)
        if real is None:
            self.notes.append(f"{shown} is a link that leads round in a circle")
            return
        file = _file_in(path)
        if real in self._met:
            if file is not None and depth == 1:
                same = self._met[real]
                yield Entry(path / file, f"{shown}/{file}", place.origin, Reading(None), same_as=same)
            elif link:
                self.notes.append(f"{shown} is a link to {self._met[real]}, which was looked at already")
            return
        self._met[real] = shown
        if file is not None:
            yield _entry(path / file, f"{shown}/{file}", place.origin)
            return
        count = 0
        if depth < DEEPEST:
            for entry in self._below(path, place, shown, depth + 1):
                count += 1
                yield entry
        if depth == 1 and not count:
            self.notes.append(f"{shown} is no skill: there is no {FILE} in it")


def _is_folder(item: os.DirEntry[str]) -> bool:
    try:
        return item.is_dir()
    except OSError:
        return item.is_symlink()  # a link to itself: told by whoever follows it


def _real(path: Path) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return None


def _file_in(folder: Path) -> str | None:
    """The SKILL.md of a folder, as it is spelled there; a broken link or a folder of that name counts."""
    if os.path.lexists(folder / FILE):
        return FILE
    try:
        return next((name for name in sorted(os.listdir(folder)) if name.lower() == FILE.lower()), None)
    except OSError:
        return None


def _entry(path: Path, shown: str, origin: Origin) -> Entry:
    plain = shown.encode(errors="replace").decode()
    if plain != shown:
        problem = Problem("fault", 1, "the name of its folder is no UTF-8 text; rename the folder")
        return Entry(path, plain, origin, Reading(None, (problem,)))
    return Entry(path, shown, origin, read_skill(path))


def read_skill(path: Path) -> Reading:
    """What a SKILL.md is; what cannot be read is a Reading with the reason. Blocks."""
    try:
        head, size = read_start(path, HEAD_BYTES)
    except OSError as error:
        return Reading(None, (Problem("fault", 1, f"cannot be read: {error.strerror}"),))
    whole = size <= HEAD_BYTES
    if not whole:
        head = head[: head.rfind(b"\n") + 1]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        return Reading(None, (Problem("fault", line, "not UTF-8 text; save the file as UTF-8"),))
    reading = read_document(text, path.parent.name, size=None if whole else size)
    if path.name != FILE:
        problem = Problem("deviation", 1, f"the file must be called {FILE}")
        return attrs.evolve(reading, problems=(problem, *reading.problems))
    return reading
