"""An agent's file as somebody edits it, before it is saved: its faults, its place in the cast, and how it is saved.

A draft has no more rights than the file it would replace, as far as that counts: allow rules, hooks and Python that are
not in it are left out, as trust leaves them out of a file that was changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from runtime.cast import Cast, Member, find
from runtime.definitions import Definition, OutputRules, read
from runtime.errors import Fault, UsageError
from runtime.handwritten import MOST, read_bytes
from runtime.tools.diff import unified

FOLDER = "agents"
AGENT_FILE, CODE_FILE, EXCHANGES = "agent.md", "tools.py", "exchanges"
"""In the folder of a draft that runs: the draft, the code of its own tools, the requests as they were sent."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.frozen
class Drafted:
    """A draft as it may run: the definition with what counts of it, and what was left out, for a person."""

    definition: Definition
    left_out: tuple[str, ...] = ()


def definition_of(text: str, shown: str) -> Definition:
    """The draft's definition. Raises DefinitionError with every fault, UsageError for a text that is too long."""
    if len(text.encode(errors="replace")) > MOST:
        raise UsageError(f"an agent file has at most {MOST >> 20} MB")
    return read(text.replace("\r\n", "\n"), shown)


def within(draft: Definition, original: Definition | None) -> Drafted:
    """The draft with no right that the file it would replace has not; `original` is that file as far as it counts."""
    allowed = original.permissions.allow if original is not None else ()
    allow = tuple(rule for rule in draft.permissions.allow if rule in allowed)
    left_out = [f"allow rule {rule}" for rule in draft.permissions.allow if rule not in allowed]
    hooks = tuple(hook for hook in draft.hooks if original is not None and hook in original.hooks)
    left_out += [f"hook {hook.moment.name}" for hook in draft.hooks if hook not in hooks]
    output = draft.output
    if output is not None and output.check and output.check != _check_of(original):
        left_out.append(f"Python check {output.check}")
        output = attrs.evolve(output, check=None)
    permissions = attrs.evolve(draft.permissions, allow=allow)
    return Drafted(attrs.evolve(draft, permissions=permissions, hooks=hooks, output=output), tuple(left_out))


def _check_of(original: Definition | None) -> str | None:
    rules: OutputRules | None = original.output if original is not None else None
    return rules.check if rules is not None else None


def taking_part(draft: Definition, path: Path) -> Callable[[Cast], Cast]:
    """A function that puts a draft, kept at `path`, into a cast, within the rights of the member it replaces."""

    def drafted(cast: Cast) -> Cast:
        known = cast.members.get(draft.name)
        kept = within(draft, known.definition if known is not None else None).definition
        member = Member(draft.name, path, draft.path, "workspace", kept)
        return attrs.evolve(cast, members={**cast.members, draft.name: member})

    return drafted


def agents_of(workspace: Path) -> list[tuple[Member, str]]:
    """The agents whose files can be edited here, with their text: those of our own style that can be read. Blocks."""
    found: list[tuple[Member, str]] = []
    for member in find(workspace).members.values():
        if member.definition is None or member.definition.style == "native":
            with contextlib.suppress(OSError, UnicodeDecodeError):
                found.append((member, read_bytes(member.path).decode("utf-8-sig")))
    return found


def faults_to_json(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    """Faults as the page reads them."""
    return [attrs.asdict(fault) for fault in faults]


# --- saving ------------------------------------------------------------------------------------------------------


@attrs.frozen
class Saving:
    """What a save would do: `path` is relative to the workspace, `seen` names the content that is there now."""

    path: str
    diff: str
    seen: str


def saving(workspace: Path, text: str) -> Saving:
    """Look at what a save would change. Blocks. Raises DefinitionError for a faulty draft, UsageError."""
    name = f"{definition_of(text, 'agent').name}.md"
    before = _there(workspace, name)
    return Saving(f"{FOLDER}/{name}", unified(f"{FOLDER}/{name}", before, text.encode()), _digest(before))


def save(workspace: Path, text: str, seen: str) -> str:
    """Write the draft to `agents/NAME.md` of the workspace, whole or not at all; its path, relative to the workspace.

    `seen` is what `saving` has shown: over a file that has changed since, or has come to be, nothing is written.
    Blocks. Raises as `saving`, and UsageError where it cannot be written.
    """
    name = f"{definition_of(text, 'agent').name}.md"
    if _digest(_there(workspace, name)) != seen:
        raise UsageError(f"{FOLDER}/{name} has changed meanwhile: look at what a save would change, and save again")
    try:
        folder = _folder(workspace, make=True)
    except OSError as error:
        raise UsageError(f"{FOLDER}/ cannot be written: {error.strerror}") from None
    assert folder is not None
    try:
        _write(folder, name, text.encode(), new=seen == _digest(None))
    except FileExistsError:
        raise UsageError(f"{FOLDER}/{name} has come to be meanwhile: look at it, and save again") from None
    except OSError as error:
        raise UsageError(f"{FOLDER}/{name} cannot be written: {error.strerror}") from None
    finally:
        os.close(folder)
    return f"{FOLDER}/{name}"


def _write(folder: int, name: str, content: bytes, *, new: bool) -> None:
    part = f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(part, _NEW_FILE, 0o644, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if new:
            os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder)  # unlike a rename it never covers a file
        else:
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)


def _there(workspace: Path, name: str) -> bytes | None:
    """The content of an agent file in the workspace's own folder, None where there is none. Raises UsageError."""
    try:
        folder = _folder(workspace)
        if folder is None:
            return None
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{FOLDER}/{name} is no regular file: put it right first")
            return file.read(MOST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{FOLDER}/{name} cannot be read where it should be: {error.strerror}") from None


def _folder(workspace: Path, *, make: bool = False) -> int | None:
    """The workspace's folder of agents, never one that a link leads to; None where there is none. Raises OSError."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(workspace / FOLDER)
    with contextlib.suppress(FileNotFoundError):
        return os.open(workspace / FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    return None


def _digest(content: bytes | None) -> str:
    return "none" if content is None else hashlib.sha256(content).hexdigest()
