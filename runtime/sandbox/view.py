"""What a command sees: the arguments that have bubblewrap build a small world around it. Pure.

The world has the system's programs and a few of its settings to read, a temporary folder of its own, and the workspace
under its real path. What rules over agents can be read and not written there, and our own folders cannot be seen, even
where they lie inside the workspace. A folder above such a place is a mount point itself, so that nobody moves the
place away with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import attrs

HOME = "/tmp/home"
TEMPORARY_BYTES = 2 << 30
SETTINGS = tuple(
    f"/etc/{name}"
    for name in (
        *("passwd", "group", "nsswitch.conf", "hosts", "localtime", "ld.so.cache", "alternatives", "mime.types"),
        *("ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki/tls", "pki/ca-trust", "crypto-policies"),
        *("fonts", "terminfo", "python3", "perl"),
    )
)
"""What of /etc a command may read; all of it is readable to everybody anyway. Each costs a mount."""
NETWORK_SETTINGS = ("/etc/resolv.conf", "/etc/gai.conf")


@attrs.frozen
class System:
    """The read-only part of the machine: folders shown as they are, files of /etc, links at the top."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    links: Mapping[str, str]


@attrs.frozen
class Guarded:
    """Places that are treated apart: `pinned` cannot be moved, `frozen` not written, `hidden` not seen."""

    pinned: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@attrs.frozen
class View:
    """The world of one command; `read` are further folders to read."""

    workspace: str
    writable: bool = True
    network: bool = False
    read: tuple[str, ...] = ()
    guarded: Guarded = Guarded()
    environment: Mapping[str, str] = attrs.field(factory=dict[str, str])


def arguments(view: View, system: System, seccomp: int) -> list[str]:
    """bubblewrap's arguments up to the command; `seccomp` is the descriptor it reads the filter from."""
    return [
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *(("--share-net",) if view.network else ()),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"),
        *_system(view, system),
        *_work(view),
        *("--remount-ro", "/", "--chdir", view.workspace),
        *(word for name, value in view.environment.items() for word in ("--setenv", name, value)),
        *("--seccomp", str(seccomp), "--"),
    ]


def _system(view: View, system: System) -> Iterator[str]:
    for folder in system.folders:
        yield from ("--ro-bind", folder, folder)
    for link, target in system.links.items():
        yield from ("--symlink", target, link)
    files = [*system.files, *(NETWORK_SETTINGS if view.network else ())]
    for file in files:
        yield from ("--ro-bind-try", file, file)
    # Root's files in /proc are root's in the box as well: with no capability at all it could set the machine's sysctls.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var")
    yield from (
        "--perms",
        "1777",
        "--size",
        str(TEMPORARY_BYTES),
        "--tmpfs",
        "/tmp",
        "--dir",
        HOME,
        "--symlink",
        "/tmp",
        "/var/tmp",
    )


def _work(view: View) -> Iterator[str]:
    """The workspace and what else was granted, outer folders first, so that none covers another."""
    write = "--bind" if view.writable else "--ro-bind"
    places = [(folder, "--ro-bind") for folder in view.read if folder != view.workspace]
    places.append((view.workspace, write))
    for place, how in sorted(places, key=lambda each: len(PurePath(each[0]).parts)):
        yield from (how, place, place)
    guarded = view.guarded
    for place in sorted(guarded.pinned, key=len):
        yield from (write, place, place)
    for place in guarded.frozen:
        yield from ("--ro-bind", place, place)
    for place in guarded.hidden:
        yield from ("--perms", "0555", "--tmpfs", place, "--remount-ro", place)


def is_inside(path: str, folder: str) -> bool:
    """Whether a real path is a folder or lies in it."""
    return folder in (path, "/") or path.startswith(folder + "/")


def between(place: str, folder: str) -> list[str]:
    """The folders between a folder and a place in it, outermost first, without the two."""
    found: list[str] = []
    parent = place.rpartition("/")[0]
    while is_inside(parent, folder) and parent != folder:
        found.append(parent)
        parent = parent.rpartition("/")[0]
    return found[::-1]


def guard(workspace: str, frozen: Sequence[str], hidden: Sequence[str]) -> Guarded:
    """What is treated apart, with the folders above it pinned; what lies in such a place already is left out."""
    covered = [place for place in dict.fromkeys(hidden) if not _lies_in(place, hidden)]
    kept = [place for place in dict.fromkeys(frozen) if not _lies_in(place, (*covered, *frozen))]
    kept = [place for place in kept if place not in covered]
    above = dict.fromkeys(folder for place in (*covered, *kept) for folder in between(place, workspace))
    pinned = [folder for folder in above if folder not in kept and not _lies_in(folder, kept)]
    return Guarded(tuple(pinned), tuple(kept), tuple(covered))


def _lies_in(place: str, others: Sequence[str]) -> bool:
    return any(other != place and is_inside(place, other) for other in others)
