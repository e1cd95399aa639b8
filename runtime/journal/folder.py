"""Where runs are kept: the state folder, a run's own folder, and the short id that names it.

Nothing is written outside the state folder. Network file systems are refused: SQLite's write-ahead log needs memory
that all its readers share, and a lock that is only advisory at a distance is none.
"""

from __future__ import annotations

import errno
import os
import pwd
import random
import re
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from runtime.errors import JournalError, UsageError, did_you_mean

from .elsewhere import in_state

LETTERS = "abcdefghjkmnpqrstvwxyz"
ALPHABET = "0123456789" + LETTERS
LEAST_FREE = 256 * 1024
"""Bytes; a disk with less than this is called full by whoever could not write on it."""
_RUN_ID = re.compile(f"[{LETTERS}][{ALPHABET}]{{3,15}}")
_NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ncpfs|afs|ceph|glusterfs|lustre|gpfs|beegfs|orangefs|pvfs2|davfs|"
    r"fuse\.(sshfs|glusterfs|ceph|cephfs|rclone|s3fs|gcsfuse|davfs2)"
)


@attrs.frozen
class State:
    """The state folder. `note` says where it is and why, when it is not where one would look."""

    path: Path
    note: str = ""

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def index(self) -> Path:
        return self.path / "index.db"

    def run(self, run_id: str) -> RunFolder:
        return RunFolder(self.runs / run_id)


@attrs.frozen
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def journal(self) -> Path:
        return self.path / "journal.db"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def control(self) -> Path:
        """While the run lives: where its control socket is, and the token commands must carry."""
        return self.path / "control.json"


def state_path(flag: str | None, env: Mapping[str, str], home: str | None) -> Path | None:
    """The folder that the flag, ELENCO_STATE, XDG_STATE_HOME or the home folder name, first wins; pure.

    A relative XDG_STATE_HOME is ignored, as its specification says. None when there is no home either.
    """
    if flag:
        return Path(flag).expanduser().absolute()
    if named := env.get("ELENCO_STATE"):
        return Path(named).expanduser().absolute()
    if (xdg := env.get("XDG_STATE_HOME")) and Path(xdg).is_absolute():
        return Path(xdg) / "elenco"
    return Path(home) / ".local" / "state" / "elenco" if home and Path(home).is_absolute() else None


def open_state(flag: str | None = None, env: Mapping[str, str] = os.environ, *, to_look: bool = False) -> State:
    """Choose the state folder and make it, private to its owner; to look, nothing is made, and reading it is enough.

    With no usable home it is a private folder under the temporary one, and `note` says so. Raises UsageError when
    a folder that was asked for cannot be used, or lies on a network file system; JournalError for a full disk.
    """
    home = env.get("HOME") or _home_of_user()
    path = state_path(flag, env, home)
    asked = bool(flag or env.get("ELENCO_STATE") or env.get("XDG_STATE_HOME"))
    # Where runs were kept elsewhere because this folder cannot be written, that is where to look.
    here = path is not None and (
        asked or os.access(path / "runs", os.W_OK) or _can_be_made(path / "runs") or not _fallback().exists()
    )
    there = path is not None and (os.access(path / "runs", os.R_OK | os.X_OK) or _can_be_made(path / "runs"))
    if to_look and path is not None and here and there:
        return State(_local(path))
    if path is not None:
        try:
            return State(_made(path))
        except OSError as error:
            if asked:
                kind = JournalError if error.errno in (errno.ENOSPC, errno.EDQUOT) else UsageError
                why = "it is no folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
                raise kind(f"cannot use the state folder {path}: {why}; choose another: --state DIR") from error
    fallback = _fallback()
    try:
        _made(_ours(fallback))
    except OSError as error:
        raise JournalError(f"no folder for the record of runs: {error}; choose one: --state DIR") from error
    reason = f"{path} cannot be written" if path is not None else "there is no home folder"
    return State(fallback, f"runs are kept in {fallback}, which a restart may empty: {reason} (--state chooses)")


def create_run(state: State, rng: random.Random) -> RunFolder:
    """Make the folder of a new run under a short id that is free; a taken one makes the next try longer."""
    length = 4
    while True:
        folder = state.run(new_run_id(rng, length))
        try:
            folder.path.mkdir(0o700, parents=True)
            sync(state.runs)
        except FileExistsError:
            length = min(length + 1, 12)
            continue
        except OSError as error:
            raise JournalError(f"cannot make {folder.path}: {error.strerror}") from error
        except KeyboardInterrupt:
            with suppress(OSError):
                folder.path.rmdir()
            raise
        return folder


def new_run_id(rng: random.Random, length: int) -> str:
    """A letter and `length - 1` letters or digits, without i, l, o and u, which are taken for others."""
    return rng.choice(LETTERS) + "".join(rng.choice(ALPHABET) for _ in range(length - 1))


def find_run(state: State, run_id: str) -> RunFolder:
    """The folder of a run that exists. Raises UsageError naming the nearest id."""
    folder = state.run(run_id)
    if _RUN_ID.fullmatch(run_id) and folder.path.is_dir():
        return folder
    known = run_ids(state)
    raise UsageError(f"no run '{run_id}' in {state.path}{did_you_mean(run_id, known)}  (elenco runs{in_state()})")


def run_ids(state: State) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(state.runs) if _RUN_ID.fullmatch(entry.name))
    except FileNotFoundError:
        return []


def no_space(path: Path) -> str:
    """Words for a disk that is full, else nothing: SQLite calls that a disk I/O error as often as not. Blocks."""
    try:
        free = os.statvfs(path)
    except OSError:
        return ""
    if free.f_bavail * free.f_frsize >= LEAST_FREE and (free.f_favail or not free.f_files):
        return ""
    return f"no space is left on the disk of {path}"


@contextmanager
def opening(folder: RunFolder) -> Generator[None]:
    """Where a run's journal cannot be opened because the disk is full, the error says so. Blocks."""
    try:
        yield
    except JournalError as error:
        if full := no_space(folder.path):
            raise JournalError(f"cannot open the journal {folder.journal}: {full}") from error
        raise


def network_file_system(mountinfo: str, path: str) -> str | None:
    """The type of the network file system `path` lies on, None on a local one; `mountinfo` as in /proc; pure."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        fields, details = mount.split(" "), source.split(" ")
        if len(fields) < 5 or not details[0]:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        inside = point in ("/", path) or path.startswith(point.rstrip("/") + "/")
        # Of mounts on one point the last one counts: it covers the others.
        if inside and len(point) >= best:
            remote = _NETWORK.fullmatch(details[0]) or (details[0] == "9p" and "drvfs" in source)
            best, kind = len(point), details[0] if remote else ""
    return kind or None


def _fallback() -> Path:
    # Asked for only where it is needed: to find the temporary folder a file is written.
    return Path(tempfile.gettempdir()) / f"elenco-state-{os.getuid()}"


def _can_be_made(path: Path) -> bool:
    """Whether a folder is missing and nothing is in the way of making it."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        above = next((each for each in path.parents if os.path.lexists(each)), path)
        return os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)
    except OSError:
        return False
    return False


def _made(path: Path) -> Path:
    # A folder that was there keeps its mode: it may be somebody's home. What we put into it is private anyway.
    path.mkdir(0o700, parents=True, exist_ok=True)
    (path / "runs").mkdir(0o700, exist_ok=True)
    if not os.access(path / "runs", os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "it cannot be written", str(path))
    return _local(path)


def _local(path: Path) -> Path:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return path
    if kind := network_file_system(mounts, os.path.realpath(path)):
        raise UsageError(
            f"the state folder {path} is on a network file system ({kind}), where no journal is safe; "
            "choose a local one: --state DIR"
        )
    return path


def _ours(path: Path) -> Path:
    """A folder with a name anybody could have taken before us in a shared place."""
    path.mkdir(0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "it is not a private folder of yours", str(path))
    return path


def sync(path: Path) -> None:
    """Make what a folder names durable: else a power loss could take it, whatever was synced inside. Blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _home_of_user() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None
