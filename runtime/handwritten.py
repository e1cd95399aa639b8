"""Files that a person wrote, read whole: no pipe or device that would hang the reader, and none without an end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST = 1 << 20
"""Bytes an agent file or a settings file may have."""
MOST_OF_SCRIPT = 8 << 20

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)


def read_bytes(path: Path, most: int = MOST) -> bytes:
    """The content of a regular file of at most `most` bytes. Raises OSError whose `strerror` is for a person."""
    content, size = read_start(path, most)
    if size > most:
        raise OSError(
            errno.EFBIG,
            f"it has {size / (1 << 20):.1f} MB, and at most {most >> 20} MB are read; shorten it",
            str(path),
        )
    return content


def read_start(path: Path, most: int) -> tuple[bytes, int]:
    """The first `most` bytes of a regular file, and how many it has. Raises OSError as `read_bytes`."""
    # A pipe would be waited for at its opening already.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            what = next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "no file")
            raise OSError(errno.EINVAL, f"it is {what}; put a regular file in its place", str(path))
        content = file.read(most + 1)
    return content[:most], max(found.st_size, len(content))


def read_text(path: Path, most: int = MOST) -> str:
    """As `read_bytes`, as text, without a byte order mark and with plain line ends. Raises UnicodeDecodeError too."""
    return read_bytes(path, most).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
