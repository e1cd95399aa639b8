"""Who owns a run: a lock that the kernel drops when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from runtime.errors import JournalError


class RunLock:
    """Held from `take` to `release`; the file holds the owner's process id, for messages only."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, patience: float = 0.3) -> RunLock:
        """Become the owner. Blocks for up to `patience` seconds, because asking who owns a run takes the lock for a
        moment too. Raises JournalError naming the owner.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"cannot lock {path}: {error.strerror}") from error
        give_up = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < give_up:
                    time.sleep(0.01)
                    continue
                owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                os.close(descriptor)
                who = f"process {owner}" if owner else "another process"
                raise JournalError(f"run {path.parent.name} is owned by {who}") from None
            except OSError as error:
                os.close(descriptor)
                raise JournalError(f"cannot lock {path}: {error.strerror}") from error
        # On a full disk the owner has no name, and owns it all the same: what frees space takes a lock as well.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_owned(path: Path) -> bool:
    """Whether a live process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # No lock, or none that anybody could hold.
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
