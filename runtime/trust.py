"""The trust a person puts into a workspace: read from its files, kept in the user's config folder, never in it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from .cast import Cast, Member, find
from .config import Config, load, user_folder
from .errors import UsageError
from .handwritten import read_bytes
from .policy.trust import (
    Survey,
    Switch,
    Trust,
    bare_agent,
    bare_config,
    counts,
    notice,
    switches_of_agent,
    switches_of_config,
    switches_of_servers,
    switches_of_skill,
)
from .shipped import SKILL_PLACES

SETTINGS = "elenco.yaml"
SERVERS = ".mcp.json"


def is_trusted(workspace: Path) -> bool:
    """Whether what the workspace's files switch on counts: allow rules, hooks, MCP servers, Python. Blocks.

    Raises DefinitionError for faulty settings.
    """
    found = survey(workspace)
    return counts(found, agreed(workspace))


def counting(workspace: Path, here: Config, cast: Cast) -> tuple[Config, Cast, str]:
    """The settings and agents of a workspace as far as they count, and a line for the person where not all does."""
    found = survey(workspace, here, cast)
    if counts(found, agreed(workspace) if found.switches else None):
        return here, cast, ""
    members = {name: _bare(member) for name, member in cast.members.items()}
    return bare_config(here), attrs.evolve(cast, members=members), notice(found)


def _bare(member: Member) -> Member:
    if member.origin != "workspace" or member.definition is None:
        return member
    return attrs.evolve(member, definition=bare_agent(member.definition))


def survey(workspace: Path, here: Config | None = None, cast: Cast | None = None) -> Survey:
    """All that the files of a workspace would switch on, with the content of each that has a say. Blocks.

    Agent files with faults switch on nothing. Raises DefinitionError for faulty settings.
    """
    here = load(workspace / SETTINGS, SETTINGS) if here is None else here
    cast = find(workspace) if cast is None else cast
    real = os.path.realpath(workspace)
    switches = tuple(_switches(Path(real), here, cast))
    names = {name for switch in switches for name in (switch.file, *switch.uses)}
    files = {name: content for name in sorted(names) if (content := _content(Path(real), name)) is not None}
    return Survey(real, switches, files)


def _switches(workspace: Path, here: Config, cast: Cast) -> Iterator[Switch]:
    yield from switches_of_config(here, SETTINGS)
    yield from switches_of_servers(_shared_servers(workspace / SERVERS), SERVERS)
    for member in cast.members.values():
        if member.origin == "workspace" and member.definition is not None:
            yield from switches_of_agent(member.definition, member.shown)
    if any((workspace / place).is_dir() for place in SKILL_PLACES):
        from .skills.places import places, shelve

        for entry in shelve(places(workspace, None, None, with_shipped=False)).skills.values():
            if entry.skill is not None:
                yield from switches_of_skill(entry.skill, entry.shown)


def _shared_servers(path: Path) -> Mapping[str, Any]:
    """The servers of a `.mcp.json`; one that cannot be read starts none."""
    try:
        found: Any = json.loads(read_bytes(path).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    servers: Any = cast("dict[str, Any]", found).get("mcpServers") if isinstance(found, dict) else None
    return cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}


_MOST = 8 << 20


def _content(workspace: Path, name: str) -> str | None:
    """The SHA-256 of a file of the workspace, None where a word names none."""
    if not name or "\0" in name or len(name) > 1000:
        return None
    try:
        path = Path(os.path.realpath(workspace / name))
        if not path.is_relative_to(workspace):
            return None
        return hashlib.sha256(read_bytes(path, _MOST)).hexdigest()
    except (OSError, ValueError):
        return None


# --- what is kept ------------------------------------------------------------------------------------------------


def agreed(workspace: Path) -> Trust | None:
    """What was agreed to for this workspace; what cannot be read agrees to nothing. Blocks."""
    real = os.path.realpath(workspace)
    file = _file(real)
    found = _read(file) if file is not None else None
    return found if found is not None and found.workspace == real else None


def agree(found: Survey) -> None:
    """Keep that a person has agreed to exactly this. Blocks. Raises UsageError without a place for it, OSError."""
    file = _file(found.workspace)
    if file is None:
        raise UsageError("there is no home folder to keep it in: set HOME or XDG_CONFIG_HOME")
    file.parent.mkdir(0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)
    text = json.dumps(
        {
            "workspace": found.workspace,
            "files": dict(found.files),
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
        indent=1,
    )
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as out:
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)


def revoke(workspace: Path) -> bool:
    """Forget what was agreed to; whether there was anything. Blocks. Raises OSError."""
    file = _file(os.path.realpath(workspace))
    if file is None or not file.exists():
        return False
    file.unlink()
    return True


def all_agreed() -> tuple[Trust, ...]:
    """Everything that was agreed to, by path. Blocks."""
    folder = _folder()
    try:
        files = sorted(folder.glob("*.json")) if folder is not None else []
    except OSError:
        files = []
    found = (_read(file) for file in files)
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.workspace))


def _folder() -> Path | None:
    user = user_folder()
    return user / "trusted" if user is not None else None


def _file(real: str) -> Path | None:
    folder = _folder()
    return folder / f"{hashlib.sha256(os.fsencode(real)).hexdigest()[:32]}.json" if folder is not None else None


def _read(file: Path) -> Trust | None:
    try:
        found: Any = json.loads(read_bytes(file))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    kept = cast("dict[str, Any]", found)
    workspace, files = kept.get("workspace"), kept.get("files")
    if not isinstance(workspace, str) or not isinstance(files, dict):
        return None
    contents = cast("dict[str, object]", files)
    return Trust(workspace, {name: str(each) for name, each in contents.items()}, str(kept.get("at") or ""))
