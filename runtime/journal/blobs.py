"""Big content beside the database: files named by what is in them, on disk before any row speaks of them."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from pathlib import Path

from runtime.errors import DamagedRecord, JournalError

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The content-addressed files of one run. All methods block: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Keep `data` and return its SHA-256 once it is on disk. Raises OSError."""
        digest = hashlib.sha256(data).hexdigest()
        target = self._folder / digest
        if target.exists():
            return digest
        self._folder.mkdir(0o700, exist_ok=True)
        # Two threads may keep the same content at once: each its own draft, and either's may take the name.
        draft = self._folder / f".{digest}.{os.getpid()}.{threading.get_ident()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            draft.rename(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return digest

    def get(self, digest: str) -> bytes:
        """The content. Raises JournalError when the file is gone or is not what its name says."""
        if not _SHA256.fullmatch(digest):
            raise JournalError(f"'{digest}' is not the name of a kept file")
        path = self._folder / digest
        try:
            data = path.read_bytes()
        except OSError as error:
            raise DamagedRecord(self._folder.parent.name, f"cannot read {path}: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise DamagedRecord(self._folder.parent.name, f"{path} is damaged: its content is not what its name says")
        return data

    def names(self) -> list[str]:
        """What is kept, without the drafts of an owner who writes just now."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if not path.name.startswith("."))

    def sweep(self) -> None:
        """Remove drafts that a killed owner left. Only the owner may."""
        if self._folder.is_dir():
            for draft in self._folder.glob(".*"):
                draft.unlink(missing_ok=True)
