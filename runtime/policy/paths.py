"""The workspace: the one folder an agent's file tools may touch, and everything they may do in it.

All calls block: use them in a thread. Paths are relative to the workspace, or absolute and inside it; `~`, variables
and escapes stand for themselves. A link that stays inside is followed, one that leads out is refused, and every file is
opened beneath the folder's own descriptor (see `runtime.policy.beneath`), so moving things about meanwhile opens no way
out.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Literal, Self, TypeAlias

import attrs

from .beneath import MAX_DEPTH, Method, Place, Root, check_new_name, check_text, explain, has_openat2, parts_of, shown
from .beneath import PathError as PathError
from .ignored import Ignored

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

KEPT_BYTES = 64 << 20
"""What a file may measure for its content to be handed to who keeps it; of larger ones only the hash is."""

_LEAF = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_IGNORE_FILE_BYTES = 256_000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@attrs.frozen
class Entry:
    """One thing in the workspace; `path` is relative to it, `size` in bytes, `modified` in ns since the epoch.

    `mode` holds its permission bits.
    """

    path: str
    kind: Kind
    size: int
    modified: int = 0
    mode: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@attrs.frozen
class Written:
    """What a write did: the real path, whether the file is new, and what stood there before."""

    path: str
    created: bool
    before: bytes | None


@attrs.frozen
class Change:
    """What is about to happen to one file: the SHA-256 of what is there and of what will be, None for no file.

    `content` is what is there, None also where it is larger than KEPT_BYTES; `mode` its permission bits.
    """

    path: str
    before: str | None
    after: str | None
    content: bytes | None
    mode: int | None = None


Keep: TypeAlias = Callable[[Change], None]
Bounds: TypeAlias = Callable[[Literal["read", "write", "list", "delete"], str], str | None]
"""Why a use of a real path is not covered by what was decided, None where it is."""


class Workspace:
    """A folder held by its descriptor; close it, or use it as a context manager.

    `method` forces one way to resolve paths; by default it is openat2 where the kernel offers it. Safe for use from
    several threads at once; who looks at a file and then changes it by what was there holds `edits` meanwhile.

    Raises PathError when the folder is not there.
    """

    def __init__(self, root: str | os.PathLike[str], *, method: Method | None = None) -> None:
        check_text(os.fspath(root))
        given = os.path.abspath(root)
        self.root = os.path.realpath(given)
        with _explaining(os.fspath(root)):
            fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        known = dict.fromkeys((parts_of(self.root), parts_of(given)))
        self._root = Root(fd, tuple(known), method or ("openat2" if has_openat2() else "walk"))
        self.edits = threading.RLock()
        self._keep: Keep | None = None
        self._bounds: Bounds | None = None
        self._also: tuple[str, ...] = ()

    @property
    def method(self) -> Method:
        return self._root.method

    def close(self) -> None:
        os.close(self._root.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keeping(self, keep: Keep) -> Workspace:
        """The same folder, held by the same descriptor, where `keep` is told of each change just before it happens.

        What `keep` raises is raised instead of the change.
        """
        seen = Workspace.__new__(Workspace)
        seen.__dict__ |= self.__dict__
        seen._keep = keep
        return seen

    def bounded(self, bounds: Bounds) -> Workspace:
        """The same folder, where `bounds` is asked about the real path of everything that is opened or changed.

        So a link made after a decision leads to nothing else.
        """
        seen = Workspace.__new__(Workspace)
        seen.__dict__ |= self.__dict__
        seen._bounds = bounds
        return seen

    def _within(self, use: Literal["read", "write", "list", "delete"], path: str, place: Place) -> None:
        why = self._bounds(use, place.path) if self._bounds is not None else None
        if why is not None:
            raise PathError(path, why, "failed")

    def reading(self, folders: tuple[str, ...]) -> Workspace:
        """The same folder, and some outside it that may be looked at by absolute paths, but never changed."""
        seen = Workspace.__new__(Workspace)
        seen.__dict__ |= self.__dict__
        seen._also = tuple(os.path.realpath(folder) for folder in folders)
        return seen

    @contextmanager
    def _elsewhere(self, path: str) -> Generator[Workspace | None]:
        """The folder outside the workspace that a path leads to, if it is one that may be looked at."""
        found = None
        if self._also and os.path.isabs(path) and "\0" not in path:
            plain = os.path.normpath(path)
            inside = plain == self.root or plain.startswith(f"{self.root}/")  # where rules see relative paths
            found = next((each for each in self._also if plain == each or plain.startswith(f"{each}/")), None)
            found = None if inside else found
        if found is None:
            yield None
        else:
            with Workspace(found, method=self._root.method) as other:
                yield other

    def real_path(self, path: str, *, change: bool = False, follow: bool = True) -> str:
        """What a path stands for, relative to the workspace, links resolved; "." is the workspace itself.

        This is what permission rules look at. Nothing needs to be there yet. Without `follow`, a link at the very end
        stands for itself.

        Raises PathError for a path that is malformed or leads outside; with `change`, also for one that leads to where
        only reading is allowed.
        """
        with self._elsewhere(path) as other:
            if other is not None and not change:
                return os.path.normpath(f"{other.root}/{other._root.real_path(path)}")
        return self._root.real_path(path, follow=follow)

    def stat(self, path: str, *, follow: bool = True) -> Entry:
        """What is at a path. Raises PathError."""
        with self._elsewhere(path) as other:
            if other is not None:
                return _moved(other.stat(path, follow=follow), other.root)
        with self._root.find(path, follow=follow) as place:
            return _entry(place.path, _there(path, place))

    def open_read(self, path: str) -> IO[bytes]:
        """Open a regular file to read. Pipes, sockets and devices are refused without being opened.

        Raises PathError.
        """
        with self._elsewhere(path) as other:
            if other is not None:
                return other.open_read(path)
        with self._root.find(path) as place, _explaining(path):
            _regular(path, _there(path, place))
            self._within("read", path, place)
            return _opened(path, place)

    def read_bytes(self, path: str, limit: int | None = None) -> bytes:
        """The content of a file, at most `limit` bytes of it. Raises PathError."""
        with self.open_read(path) as file, _explaining(path):
            return file.read(-1 if limit is None else limit)

    def listdir(self, path: str = ".") -> tuple[Entry, ...]:
        """What a folder holds, sorted by name. Nothing in it is opened, and no link followed. Raises PathError."""
        with self._elsewhere(path) as other:
            if other is not None:
                return tuple(_moved(entry, other.root) for entry in other.listdir(path))
        with self._root.find(path) as place, _explaining(path):
            if not stat.S_ISDIR(_there(path, place).st_mode):
                raise PathError(path, "is no folder", "kind")
            self._within("list", path, place)
            fd = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.parent)
            try:
                prefix = "" if place.is_root else f"{place.path}/"
                return tuple(_entries(fd, prefix))
            finally:
                os.close(fd)

    @contextmanager
    def open_write(self, path: str, *, create_parents: bool = True) -> Generator[IO[bytes]]:
        """A new file that takes the place of `path` at the end of the block, at once and whole.

        An existing file keeps its mode, another name of the same file (a hard link) keeps the old content. If the block
        fails, everything is as before.

        Raises PathError.
        """
        with self._replacement(path, create_parents) as (_, file):
            yield file

    def write_bytes(
        self,
        path: str,
        content: bytes,
        *,
        keep_before: int = 1_000_000,
        mode: int | None = None,
        check: Callable[[Written], None] | None = None,
    ) -> Written:
        """Put a file in place at once and whole, making its folders, and tell what was there before.

        `before` is None for a new file, and for one of more than `keep_before` bytes. A new file gets `mode`.
        `check` is told the same before anything changes, and may raise.

        Raises PathError; then nothing has changed.
        """
        with self._replacement(path, True, mode) as (place, file):
            before = None
            if place.status is not None and place.status.st_size <= keep_before:
                with _opened(path, place) as old:
                    before = old.read()
            written = Written(place.path, place.status is None, before)
            if check is not None:
                check(written)
            file.write(content)
        return written

    @contextmanager
    def _replacement(
        self, path: str, create_parents: bool, new_mode: int | None = None
    ) -> Generator[tuple[Place, IO[bytes]]]:
        if path.endswith("/"):
            raise PathError(path, "names a folder", "kind")
        with self._root.find(path, create=create_parents) as place, _explaining(path):
            mode = _mode_to_write(path, place)
            self._within("write", path, place)
            mode = new_mode if mode is None else mode
            draft = _Draft(place)
            try:
                with os.fdopen(draft.fd, "wb") as file:
                    if mode is not None:
                        os.fchmod(draft.fd, mode)
                    yield place, file
                    file.flush()
                    os.fsync(draft.fd)
                    if self._keep is not None:
                        self._announce(path, place, hash_of(draft.fd))
                    draft.name_it()
                os.replace(draft.name, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)
            except BaseException:
                draft.drop()
                raise

    def mkdir(self, path: str) -> str:
        """Make a folder and those above it; one that is there is fine. The real path. Raises PathError."""
        with self._root.find(path, create=True) as place, _explaining(path):
            if place.status is None:
                check_new_name(path, place.name, first="/" not in place.path, folder=True)
                self._within("write", path, place)
                os.mkdir(place.name, dir_fd=place.parent)
            elif not stat.S_ISDIR(place.status.st_mode):
                raise PathError(path, "is there and is no folder", "kind")
            return place.path

    def unlink(self, path: str) -> str:
        """Remove a file, or a link that stays inside (never what it points to). The real path. Raises PathError."""
        with self._removable(path) as (place, status), _explaining(path):
            if stat.S_ISDIR(status.st_mode):
                raise PathError(path, "is a folder", "kind")
            self._announce(path, place, None)
            os.unlink(place.name, dir_fd=place.parent)
            return place.path

    def delete(self, path: str) -> str:
        """Remove a file, or a folder with all it holds; links in it are removed, not followed. The real path.

        Raises PathError, also for the workspace itself.
        """
        with self._removable(path) as (place, status), _explaining(path):
            if stat.S_ISDIR(status.st_mode):
                self._announce_below(place.path)
                shutil.rmtree(place.name, dir_fd=place.parent)
            else:
                self._announce(path, place, None)
                os.unlink(place.name, dir_fd=place.parent)
            return place.path

    def rmdir(self, path: str) -> str:
        """Remove an empty folder. The real path. Raises PathError."""
        with self._removable(path) as (place, _), _explaining(path):
            os.rmdir(place.name, dir_fd=place.parent)
            return place.path

    def rename(self, source: str, target: str, *, replace: bool = True) -> tuple[str, str]:
        """Move a file or folder to a new place, replacing a file there; the real paths.

        With `replace` False only a file may be moved, and whatever stands at the new place stays.

        Raises PathError.
        """
        if target.endswith("/"):
            raise PathError(target, "names a folder; say what to call it there", "kind")
        with self._removable(source) as (old, _), self._root.find(target, follow=False, create=True) as new:
            if new.is_root:
                raise PathError(target, "is the workspace itself", "kind")
            self._within("write", target, new)
            if new.status is None:
                check_new_name(target, new.name, first="/" not in new.path, folder=False)
            with _explaining(source):
                self._announce_move(source, old, target, new)
                if replace:
                    os.rename(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent)
                else:
                    # A second name fails where one is taken, which a rename does not.
                    os.link(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent, follow_symlinks=False)
                    os.unlink(old.name, dir_fd=old.parent)
            return old.path, new.path

    def _announce(self, path: str, place: Place, after: str | None) -> None:
        """Tell who keeps contents what is about to happen to a file; links are no content."""
        status = place.status
        if self._keep is None or (status is not None and not stat.S_ISREG(status.st_mode)):
            return
        before = content = mode = None
        if status is not None:
            with _opened(path, place) as file:
                before, mode = hash_of(file.fileno()), stat.S_IMODE(status.st_mode) & 0o777
                if status.st_size <= KEPT_BYTES:
                    file.seek(0)
                    content = file.read()
        if before != after:
            self._keep(Change(place.path, before, after, content, mode))

    def _announce_below(self, folder: str) -> None:
        if self._keep is not None:
            for entry in self.walk(folder, ignored=True):
                with self._root.find(entry.path, follow=False) as place:
                    self._announce(entry.path, place, None)

    def _announce_move(self, source: str, old: Place, target: str, new: Place) -> None:
        if self._keep is None or old.status is None:
            return
        if stat.S_ISREG(old.status.st_mode):
            with _opened(source, old) as file:
                content = hash_of(file.fileno())
            self._announce(target, new, content)
            self._announce(source, old, None)
        elif stat.S_ISDIR(old.status.st_mode):
            for entry in self.walk(old.path, ignored=True):
                moved = new.path + entry.path[len(old.path) :]
                with self._root.find(entry.path, follow=False) as place:
                    with _opened(entry.path, place) as file:
                        self._keep(Change(moved, None, hash_of(file.fileno()), None))
                    self._announce(entry.path, place, None)

    @contextmanager
    def _removable(self, path: str) -> Generator[tuple[Place, os.stat_result]]:
        """The thing itself that a path names, so that removing it never goes through a link."""
        plain = path.rstrip("/") or path
        if plain.rpartition("/")[2] in (".", ".."):
            raise PathError(path, "names a folder by . or ..; use its own name", "kind")
        with self._root.find(plain, follow=False) as place:
            if place.is_root:
                raise PathError(path, "is the workspace itself, which is never removed", "kind")
            status = _there(path, place)
            if plain != path and not stat.S_ISDIR(status.st_mode):
                raise PathError(path, "is no folder; leave out the slash", "kind")
            if stat.S_ISLNK(status.st_mode):
                self._stays_inside(plain)
            self._within("delete", path, place)
            yield place, status

    def _stays_inside(self, path: str) -> None:
        try:
            self._root.real_path(path)
        except PathError as error:
            if error.fault == "outside":
                raise

    def walk(self, under: str = ".", *, ignored: bool = False) -> Iterator[Entry]:
        """All regular files below a folder, in the order of their paths' parts, that git would not ignore.

        `.git` folders are left out, links are not followed, a folder that cannot be read is skipped. `ignored` keeps
        what `.gitignore` files exclude.

        Raises PathError when `under` is no folder inside.
        """
        with self._root.find(under) as place, _explaining(under):
            if not stat.S_ISDIR(_there(under, place).st_mode):
                raise PathError(under, "is no folder", "kind")
            path = "" if place.is_root else place.path
            rules = None if ignored else self._rules_above(path)
            fd = os.open(place.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.parent)
        try:
            yield from _files_below(fd, path, rules, 0)
        finally:
            os.close(fd)

    def _rules_above(self, folder: str) -> Ignored:
        rules = Ignored()
        parts = parts_of(folder)
        for depth in range(len(parts)):
            above = "/".join(parts[:depth])
            with suppress(PathError):
                name = f"{above}/.gitignore" if above else ".gitignore"
                rules = rules.with_file(above, self.read_bytes(name, _IGNORE_FILE_BYTES).decode(errors="replace"))
        return rules


class _Draft:
    """A file that is written before it takes its place; without a name as long as that is possible.

    So a process that is killed while it writes leaves nothing behind.
    """

    def __init__(self, place: Place) -> None:
        self._parent = place.parent
        self._named = False
        self.name = f".elenco-{secrets.token_hex(8)}.tmp"
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            os.stat("/proc/self/fd")  # without it no name could be given
            self.fd = os.open(".", flags | os.O_TMPFILE, 0o666, dir_fd=place.parent)
        except (AttributeError, OSError):
            self.fd = os.open(self.name, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=place.parent)
            self._named = True

    def name_it(self) -> None:
        if not self._named:
            os.link(f"/proc/self/fd/{self.fd}", self.name, dst_dir_fd=self._parent, follow_symlinks=True)
            self._named = True

    def drop(self) -> None:
        if self._named:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self._parent)


def hash_of(fd: int) -> str:
    """The SHA-256 of an open file, wherever it has been read to."""
    found = hashlib.sha256()
    at = 0
    while data := os.pread(fd, 1 << 20, at):
        found.update(data)
        at += len(data)
    return found.hexdigest()


def looks_like_text(start: bytes) -> bool:
    """Whether the first bytes of a file are those of a text: no NUL, or the mark of UTF-16."""
    return b"\0" not in start or start.startswith(_UTF16_MARKS)


def _files_below(fd: int, folder: str, rules: Ignored | None, depth: int) -> Iterator[Entry]:
    prefix = f"{folder}/" if folder else ""
    entries = list(_entries(fd, prefix))
    if rules is not None and any(entry.name == ".gitignore" and entry.kind == "file" for entry in entries):
        rules = rules.with_file(folder, _ignore_file(fd))
    for entry in entries:
        is_folder = entry.kind == "folder"
        if (is_folder and entry.name == ".git") or (rules is not None and rules.covers(entry.path, folder=is_folder)):
            continue
        if entry.kind == "file":
            yield entry
        elif is_folder and depth < MAX_DEPTH:
            try:
                below = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            except OSError:
                continue
            try:
                yield from _files_below(below, entry.path, rules, depth + 1)
            finally:
                os.close(below)


def _ignore_file(fd: int) -> str:
    try:
        file = os.fdopen(os.open(".gitignore", os.O_RDONLY | _LEAF, dir_fd=fd), "rb")
    except OSError:
        return ""
    with file:
        return file.read(_IGNORE_FILE_BYTES).decode(errors="replace")


def _entries(fd: int, prefix: str) -> Iterator[Entry]:
    with os.scandir(fd) as found:
        names = sorted(found, key=lambda item: item.name)
    for item in names:
        with suppress(OSError):  # Gone meanwhile.
            yield _entry(prefix + item.name, item.stat(follow_symlinks=False))


def _moved(entry: Entry, root: str) -> Entry:
    """An entry of another folder by its absolute path."""
    return attrs.evolve(entry, path=os.path.normpath(f"{root}/{entry.path}"))


def _entry(path: str, status: os.stat_result) -> Entry:
    mode = status.st_mode
    kind: Kind = "other"
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISDIR(mode):
        kind = "folder"
    elif stat.S_ISLNK(mode):
        kind = "link"
    return Entry(path, kind, status.st_size, status.st_mtime_ns, stat.S_IMODE(mode))


def _there(path: str, place: Place) -> os.stat_result:
    if place.status is None:
        raise PathError(path, "does not exist", "missing")
    return place.status


def _regular(path: str, status: os.stat_result) -> None:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise PathError(path, "is a folder", "kind")
    if stat.S_ISLNK(mode):
        raise PathError(path, "was changed into a link meanwhile", "kind")
    if not stat.S_ISREG(mode):
        raise PathError(path, "is a pipe, socket or device, not a file", "kind")


def _opened(path: str, place: Place) -> IO[bytes]:
    file = os.fdopen(os.open(place.name, os.O_RDONLY | _LEAF, dir_fd=place.parent), "rb")
    try:
        _regular(path, os.fstat(file.fileno()))
    except PathError:
        file.close()
        raise
    return file


def _mode_to_write(path: str, place: Place) -> int | None:
    """The mode the new file shall have; None for a new one's usual. Raises PathError if it may not be written."""
    if place.is_root:
        raise PathError(path, "is a folder", "kind")
    if place.status is None:
        check_new_name(path, place.name, first="/" not in place.path, folder=False)
        return None
    _regular(path, place.status)
    effective = os.access in os.supports_effective_ids
    if not os.access(place.name, os.W_OK, dir_fd=place.parent, effective_ids=effective):
        raise PathError(path, "is write-protected", "failed")
    return stat.S_IMODE(place.status.st_mode) & 0o777


@contextmanager
def _explaining(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise PathError(path, *explain(error)) from error


__all__ = ["Change", "Entry", "Method", "PathError", "Workspace", "Written", "looks_like_text", "shown"]
