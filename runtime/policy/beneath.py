"""Finding a place inside a folder without ever leaving it, whatever links, `..` and races stand in the way.

A place is a descriptor of its real parent folder and one name in it. What is done there uses both and follows no link,
so a path that is changed after it was looked at can fail, but cannot lead outside. Where the kernel has openat2 it
resolves plain paths in one step; paths with links or `..`, and other kernels, take a walk that opens one component at a
time with O_NOFOLLOW and reads links itself. Outside the root nothing is ever opened: up there a path is only text.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

import attrs

from runtime.errors import ElencoError

PathFault: TypeAlias = Literal["outside", "missing", "kind", "malformed", "failed"]
Method: TypeAlias = Literal["openat2", "walk"]

MAX_BYTES = 4095
MAX_NAME_BYTES = 255
MAX_DEPTH = 200
_MAX_LINKS = 40
_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathError(ElencoError):
    """A path that is not used; `fault` says whether it leads outside, is not there, or is the wrong kind of thing."""

    def __init__(self, path: str, why: str, fault: PathFault = "failed") -> None:
        super().__init__(f"{shown(path)} {why}")
        self.fault = fault


def shown(path: str) -> str:
    """A path for a message: control characters are shown, not obeyed, and a long one is cut."""
    return repr(path) if len(path) <= 300 else repr(path[:200] + "…")


@attrs.frozen
class Place:
    """`name` in the folder behind the descriptor `parent`; `path` is its real path relative to the root.

    `status` is what lstat says, None when nothing is there. For the root itself name and path are ".".
    """

    parent: int
    name: str
    path: str
    status: os.stat_result | None

    @property
    def is_root(self) -> bool:
        return self.path == "."


@attrs.frozen
class Root:
    """The folder nothing leaves: its descriptor, and the absolute paths (as parts) under which it is known."""

    fd: int
    known_as: tuple[tuple[str, ...], ...]
    method: Method = "walk"

    @contextmanager
    def find(self, path: str, *, follow: bool = True, create: bool = False) -> Generator[Place]:
        """Find the place a path stands for; its descriptor is open within the block.

        `follow`: a link at the very end is resolved too. `create`: missing folders on the way are made, and removed
        again if the place cannot be reached or the block fails.

        Raises PathError for a path that leads outside, is malformed, or whose parent folder is not there.
        """
        check_text(path)
        walk = _Walk(self, path, follow, create)
        try:
            try:
                place = walk.quick() or walk.to_the_end()
            except OSError as error:
                raise _explained(path, error) from error
            yield place
        except BaseException:
            walk.undo()
            raise
        finally:
            walk.close()

    def real_path(self, path: str, *, follow: bool = True) -> str:
        """The path relative to the root that `path` really stands for, whether or not something is there yet.

        Without `follow`, a link at the very end stands for itself.
        """
        check_text(path)
        walk = _Walk(self, path, follow=follow, create=False)
        try:
            return (walk.quick() or walk.to_the_end()).path
        except FileNotFoundError:
            return walk.rest_as_text()
        except OSError as error:
            raise _explained(path, error) from error
        finally:
            walk.close()


def check_text(path: str) -> None:
    """Refuse what can be no path at all. Raises PathError."""
    if not path:
        raise PathError(path, "is empty", "malformed")
    if "\0" in path:
        raise PathError(path, "contains a NUL character", "malformed")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise PathError(path, "is no valid Unicode text", "malformed") from None
    if size > MAX_BYTES or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in path.split("/")):
        raise PathError(path, "is too long", "malformed")


def parts_of(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part not in ("", "."))


class _Walk:
    """One way from the root to a place: the open folders so far, the parts still to go, what was made on the way."""

    def __init__(self, root: Root, path: str, follow: bool, create: bool) -> None:
        self._root = root
        self._path = path
        self._follow = follow
        self._create = create
        self._todo = deque(parts_of(path))
        self._to_folder = path.endswith(("/", "/.", "/.."))
        self._names: list[str] = []
        self._fds: list[int] = []
        self._outside: list[str] | None = [] if path.startswith("/") else None
        self._links = 0
        self._made: list[tuple[int, str]] = []

    def quick(self) -> Place | None:
        """A path without links and `..` in one system call; None when the walk has to look closer."""
        if self._root.method != "openat2":
            return None
        parts = self._lexical()
        if not parts or ".." in parts:
            return None
        fd = _openat2(self._root.fd, "/".join(parts[:-1]) or ".")
        if fd is None:
            return None
        self._fds.append(fd)
        status = _lstat(parts[-1], fd)
        if status is not None and stat.S_ISLNK(status.st_mode):
            os.close(self._fds.pop())
            return None
        if self._to_folder and status is not None and not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "", parts[-1])
        return Place(fd, parts[-1], "/".join(parts), status)

    def _lexical(self) -> tuple[str, ...]:
        parts = tuple(self._todo)
        if self._outside is None:
            return parts
        for known in self._root.known_as:
            if parts[: len(known)] == known:
                return parts[len(known) :]
        return ()

    def to_the_end(self) -> Place:
        self._come_in()
        while self._todo:
            name = self._todo.popleft()
            if name == "..":
                self._up()
            elif self._outside is not None:
                self._outside.append(name)
                self._come_in()
            elif (place := self._into(name)) is not None:
                return place
        if self._outside is not None:
            raise self._left()
        if not self._names:
            return Place(self._root.fd, ".", ".", os.fstat(self._root.fd))
        name = self._names[-1]
        parent = self._fds[-2] if len(self._fds) > 1 else self._root.fd
        return Place(parent, name, "/".join(self._names), _lstat(name, parent))

    def rest_as_text(self) -> str:
        """Where a walk that met a missing name would have ended: the rest of the path is all new."""
        rest = [*self._names, *self._todo]
        if ".." in rest or self._outside is not None:
            raise PathError(self._path, "goes up from a folder that is not there", "missing")
        return "/".join(rest)

    def _up(self) -> None:
        if self._outside is not None:
            del self._outside[-1:]
            self._come_in()
        elif self._names:
            self._names.pop()
            os.close(self._fds.pop())
        else:
            self._outside = list(self._root.known_as[0][:-1])
            self._come_in()

    def _come_in(self) -> None:
        if self._outside is not None and tuple(self._outside) in self._root.known_as:
            self._outside = None

    def _into(self, name: str) -> Place | None:
        here = self._fds[-1] if self._fds else self._root.fd
        status = _lstat(name, here)
        link = status is not None and stat.S_ISLNK(status.st_mode)
        if link and (self._todo or self._follow or self._to_folder):
            self._through_link(name, here)
            return None
        if not self._todo:
            if self._to_folder and status is not None and not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "", name)
            return Place(here, name, "/".join([*self._names, name]), status)
        if status is None:
            if not self._create:
                self._todo.appendleft(name)
                raise FileNotFoundError(errno.ENOENT, "", name)
            check_new_name(self._path, name, first=not self._names, folder=True)
            self._make(name, here)
        if len(self._fds) >= MAX_DEPTH:
            raise PathError(self._path, f"is nested more than {MAX_DEPTH} folders deep", "malformed")
        try:
            self._fds.append(os.open(name, _FOLDER, dir_fd=here))
        except OSError:
            self._todo.appendleft(name)  # `rest_as_text` starts from here.
            raise
        self._names.append(name)
        return None

    def _make(self, name: str, here: int) -> None:
        with suppress(FileExistsError):  # Somebody else made it first.
            os.mkdir(name, dir_fd=here)
            self._made.append((os.dup(here), name))

    def _through_link(self, name: str, here: int) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, "", name)
        target = os.readlink(name, dir_fd=here)
        if target.startswith("/"):
            self._leave_folders()
            self._outside = []
        self._todo.extendleft(reversed(parts_of(target)))
        self._come_in()

    def _leave_folders(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        self._names.clear()

    def _left(self) -> PathError:
        how = "leads through a link to outside the workspace" if self._links else "is outside the workspace"
        return PathError(self._path, how, "outside")

    def undo(self) -> None:
        """Remove the folders made on the way that are still empty."""
        while self._made:
            fd, name = self._made.pop()
            with suppress(OSError):  # Somebody else uses it by now.
                os.rmdir(name, dir_fd=fd)
            os.close(fd)

    def close(self) -> None:
        self._leave_folders()
        while self._made:
            os.close(self._made.pop()[0])


def check_new_name(path: str, name: str, *, first: bool, folder: bool) -> None:
    """Refuse to make a file or folder whose name is surely a mistake or a trick; what exists may have any name.

    Raises PathError.
    """
    if any(_is_control(char) for char in name):
        raise PathError(path, "would make a name with control characters", "malformed")
    if "\\" in name:
        raise PathError(path, "would make a name with a backslash; folders are separated by /", "malformed")
    if folder and first and name.startswith("~"):
        raise PathError(path, "starts with ~, which stands for nothing here; name a path in the workspace", "malformed")
    if folder and first and name.endswith(":"):
        raise PathError(path, "looks like a URL or a drive; name a path in the workspace", "malformed")
    if folder and _is_disguised_parent(name):
        raise PathError(path, f"would make a folder called {shown(name)}, which looks like ..", "malformed")


def _is_control(char: str) -> bool:
    code = ord(char)
    return (
        code < 32
        or 127 <= code < 160
        or code in (0x2028, 0x2029)
        or 0x202A <= code <= 0x202E
        or 0x2066 <= code <= 0x2069
    )


def _is_disguised_parent(name: str) -> bool:
    plain = name.lower().replace("%2e", ".").translate({0xFF0E: ".", 0x2024: ".", 0x2025: "..", 0x2026: "..."})
    return len(plain) > 1 and not plain.strip(".; ")


def _lstat(name: str, parent: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _explained(path: str, error: OSError) -> PathError:
    return PathError(path, *explain(error))


def explain(error: OSError) -> tuple[str, PathFault]:
    """What a failed system call means for a path, in words."""
    match error.errno:
        case errno.ENOENT:
            return "does not exist", "missing"
        case errno.ENOTDIR:
            return "goes through something that is no folder", "kind"
        case errno.EISDIR:
            return "is a folder", "kind"
        case errno.ELOOP:
            return "goes round in a circle of links, or was changed meanwhile", "kind"
        case errno.EEXIST:
            return "is there already, or its new place is taken", "kind"
        case errno.ENOTEMPTY:
            return "is a folder that is not empty", "kind"
        case errno.ENAMETOOLONG:
            return "is too long", "malformed"
        case errno.EROFS:
            return "is on a file system that can only be read", "failed"
        case errno.EACCES | errno.EPERM:
            return "may not be used by this user (permission denied)", "failed"
        case _:
            return f"cannot be used: {os.strerror(error.errno or 0)}", "failed"


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SYS_OPENAT2 = 437  # The same on every architecture Linux has had since 5.6.
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


@functools.cache
def has_openat2() -> bool:
    """Whether this kernel has openat2 and lets us use it (a container may not)."""
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = _openat2(fd, ".")
    except OSError:
        return False
    finally:
        os.close(fd)
    if found is None:
        return False
    os.close(found)
    return True


def _openat2(root: int, path: str) -> int | None:
    """A descriptor of the folder `path` below `root`; None where a closer look may find a way."""
    how = _OpenHow(_FOLDER & ~os.O_NOFOLLOW, 0, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)
    fd = _libc().syscall(_SYS_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if fd >= 0:
        return int(fd)
    number = ctypes.get_errno()
    if number in (errno.ELOOP, errno.EXDEV, errno.EAGAIN, errno.ENOENT, errno.ENOSYS, errno.EPERM):
        return None
    raise OSError(number, os.strerror(number), path)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
