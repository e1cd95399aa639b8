"""Where sockets are: a short, private path, because a socket's path may have hardly 100 bytes."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import ElencoError

LONGEST = 100
"""Bytes of a socket's path that every system takes."""
_NAME = 30


def runtime_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The folder for sockets, made if need be: in XDG_RUNTIME_DIR, else a private one under the temporary folder.

    Raises ElencoError when none can be had.
    """
    tried: list[str] = []
    for path in places(env):
        if len(os.fsencode(path)) + _NAME > LONGEST:
            tried.append(f"{path} is too long")
            continue
        try:
            path.mkdir(0o700, exist_ok=True)
            found = path.lstat()
        except OSError as error:
            tried.append(f"{path}: {error.strerror}")
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return path
        tried.append(f"{path} is not a private folder of yours")
    raise ElencoError(f"no folder for the control socket: {'; '.join(tried)}; set XDG_RUNTIME_DIR")


def sweep(folder: Path) -> None:
    """Remove the sockets of processes that were killed: nobody listens there any more."""
    for path in folder.glob("*.sock"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue


def places(env: Mapping[str, str]) -> list[Path]:
    """Where the folder may be, the first that can be had is taken."""
    found: list[Path] = []
    if (xdg := env.get("XDG_RUNTIME_DIR")) and Path(xdg).is_absolute():
        found.append(Path(xdg) / "elenco")
    # Not tempfile.gettempdir(): it writes a file to find out, and nothing is written here that nobody asked for.
    roots = [root for root in (env.get("TMPDIR", ""), "/tmp") if Path(root).is_absolute()]
    found += [Path(root) / f"elenco-{os.getuid()}" for root in dict.fromkeys(roots)]
    return found
