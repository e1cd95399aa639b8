"""Commands in their box: the best walls this machine has around a command line, or none where a person said so.

A command is ended with everything it has started: in a pid namespace of its own by the kernel, else by the keeper that
started it (`runtime.warden`). Nothing is started where the walls asked for cannot be built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from runtime.errors import ElencoError
from runtime.policy.decision import Network
from runtime.policy.decision import Sandbox as Level

from . import filter as filters
from .entry import LONGEST, command_line
from .environment import environment
from .guarded import Seen, made_meanwhile, see
from .machine import GET_IT, Offer, look, piped
from .view import NETWORK_SETTINGS, View, arguments, is_inside
from .walls import Walls

if TYPE_CHECKING:
    from runtime.reaper import Process, Reaper

_LANDLOCK = Path(__file__).with_name("landlock.py")
_USUAL = Walls()
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class SandboxError(ElencoError):
    """A command was not started; the text says why and what can be done."""


class Sandbox:
    """The boxes of one run. The machine is looked at when the first command comes."""

    def __init__(
        self,
        reaper: Reaper,
        workspace: str,
        walls: Walls = _USUAL,
        hidden: Sequence[str | os.PathLike[str]] = (),
        scratch: Path | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`hidden` are folders no command may see, `scratch` a place for temporary files where /tmp is shared."""
        self.reaper = reaper
        self.workspace = workspace
        self.walls = walls
        self.hidden = tuple(dict.fromkeys(os.path.realpath(folder) for folder in hidden))
        self.scratch = scratch
        self.environ = environ
        self._looking = trio.Lock()
        self._offer: Offer | None = None

    async def offer(self) -> Offer:
        """What the machine offers. A cancelled call leaves nothing behind."""
        async with self._looking:
            if self._offer is None:
                self._offer = await look(self.reaper, self.environ, away_from=self.workspace)
            return self._offer

    def under(self, level: Level, network: Network) -> Confined:
        """Boxes with walls at least this high."""
        return Confined(self, level, network == "all")

    async def aclose(self) -> None:
        """Remove temporary files. Shielded."""
        if self.scratch is not None:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(shutil.rmtree, self.scratch, True)


@attrs.frozen(eq=False)
class Box:
    """A command that was started. `walls` says what is around it; whoever started it ends `process`."""

    process: Process
    walls: str
    workspace: str
    seen: Seen

    async def made(self) -> list[str]:
        """What governs agents and has come to be in the workspace since the start. A cancelled call changes nothing."""
        return await trio.to_thread.run_sync(made_meanwhile, self.workspace, self.seen.governing)


@attrs.frozen(eq=False)
class Confined:
    """Where the commands of one actor run: its level, and whether they reach the network.

    A command that `talks` has its standard input and its errors in pipes of their own.
    """

    sandbox: Sandbox
    level: Level
    network: bool
    talks: bool = False

    @property
    def says(self) -> str:
        """The walls in words, without what the machine offers."""
        return f"{self.level}, network {'on' if self.network else 'off'}"

    async def start(self, command: str) -> Box:
        """Start a command line under bash; unless it `talks`, its output and errors in one pipe, nothing on its input.

        Raises SandboxError where it cannot be walled in as it should be. A cancelled call leaves no process.
        """
        # Halves of a pair that came apart are put together again; a half alone is no character.
        command = command.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "\0" in command or len(command.encode()) > LONGEST:
            raise SandboxError(f"a command line has at most {LONGEST} bytes and no NUL: write a script and run that")
        offer = await self.sandbox.offer()
        if offer.bash is None:
            raise SandboxError("commands need bash, and there is none on this machine")
        if self.level == "unsandboxed":
            return await self._plain(command, offer.bash, offer)
        box = self.sandbox
        if box.workspace == "/":
            raise SandboxError("no walls can be built around /: use a folder of its own as the workspace")
        if box.workspace in box.hidden:
            raise SandboxError(f"{box.workspace} is a folder of Elenco's own: it cannot be the workspace of commands")
        match offer.walls:
            case "bubblewrap":
                return await self._bubblewrap(command, offer.bash, offer)
            case "landlock":
                return await self._landlock(command, offer.bash, offer)
            case _:
                raise SandboxError(refusal(offer))

    def _said(self, walls: str) -> str:
        read_only = ", read-only" if self.level == "read-only" else ""
        return f"{walls}{read_only}{', network on' if self.network else ''}"

    async def _plain(self, command: str, bash: str, offer: Offer) -> Box:
        box = self.sandbox
        env = environment(box.environ, box.walls.env, walled=False, temporary=box.environ.get("TMPDIR", "/tmp"))
        words = command_line(bash, command, box.walls.caps, count=False)
        return await self._start(words, env, "unsandboxed", await self._seen())

    async def _bubblewrap(self, command: str, bash: str, offer: Offer) -> Box:
        box = self.sandbox
        writable = self.level != "read-only"
        seen, read = await trio.to_thread.run_sync(self._look, offer, writable)
        view = View(
            workspace=box.workspace,
            writable=writable,
            network=self.network,
            read=read,
            guarded=seen.guarded,
            environment=environment(box.environ, box.walls.env),
        )
        assert offer.bwrap is not None
        words = [
            offer.bwrap,
            *arguments(view, offer.system, box.reaper.FIRST_PASSED),
            *command_line(bash, command, box.walls.caps, count=offer.counts, guarded=seen.identities),
        ]
        reading = self._filter(offer)
        try:
            return await self._start(words, {}, self._said("bubblewrap"), seen, (reading,), wraps=True)
        finally:
            os.close(reading)

    def _look(self, offer: Offer, writable: bool) -> tuple[Seen, tuple[str, ...]]:
        """What is treated apart, and the further folders to read. Blocks."""
        box = self.sandbox
        seen = see(box.workspace, box.hidden, writable=writable)
        read = tuple(os.path.realpath(folder) for folder in box.walls.read if os.path.isdir(folder))
        shown = (*read, *offer.system.folders)
        covered = [each for each in box.hidden if os.path.isdir(each) and any(is_inside(each, one) for one in shown)]
        hidden = tuple(dict.fromkeys((*seen.guarded.hidden, *covered)))
        return attrs.evolve(seen, guarded=attrs.evolve(seen.guarded, hidden=hidden)), read

    async def _landlock(self, command: str, bash: str, offer: Offer) -> Box:
        box = self.sandbox
        inside = [hidden for hidden in box.hidden if is_inside(hidden, box.workspace)]
        if inside:
            raise SandboxError(f"{inside[0]} lies in the workspace, where only bubblewrap could hide it: {GET_IT}")
        if box.scratch is None:
            raise SandboxError("there is no place for temporary files of commands")
        await trio.Path(box.scratch).mkdir(mode=0o700, exist_ok=True)
        temporary = str(box.scratch)
        writable = self.level != "read-only"
        assert offer.machine is not None
        sockets = filters.families(network=self.network, unix=False)
        order = {
            "read": [
                *offer.system.folders,
                *offer.system.files,
                *(NETWORK_SETTINGS if self.network else ()),
                *box.walls.read,
                *("/proc", "/dev"),
                *(() if writable else (box.workspace,)),
            ],
            "write": [*_DEVICES, temporary, *((box.workspace,) if writable else ())],
            "version": offer.landlock,
            "network": self.network,
            "seccomp": filters.program(offer.machine, sockets).hex(),
        }
        env = environment(box.environ, box.walls.env, temporary=temporary) | {"HOME": temporary}
        words = [sys.executable, "-I", "-S", str(_LANDLOCK), json.dumps(order)]
        words += command_line(bash, command, box.walls.caps, count=False)
        return await self._start(words, env, self._said("landlock, weaker"), await self._seen())

    async def _seen(self) -> Seen:
        """What governs agents now: nothing of it is guarded, but what comes new is told."""
        return await trio.to_thread.run_sync(lambda: see(self.sandbox.workspace, (), writable=False))

    def _filter(self, offer: Offer) -> int:
        assert offer.machine is not None
        return piped(filters.program(offer.machine, filters.families(network=self.network)))

    async def _start(
        self,
        words: list[str],
        env: Mapping[str, str],
        walls: str,
        seen: Seen,
        passed: Sequence[int] = (),
        *,
        wraps: bool = False,
    ) -> Box:
        box = self.sandbox
        try:
            process = await box.reaper.start(
                words,
                cwd=box.workspace,
                env=env,
                stdin=subprocess.PIPE if self.talks else subprocess.DEVNULL,
                stderr=subprocess.PIPE if self.talks else subprocess.STDOUT,
                passed=passed,
                wraps=wraps,
            )
        except OSError as error:
            raise SandboxError(f"the command could not be started: {error.strerror or error}") from error
        return Box(process, walls, box.workspace, seen)


def refusal(offer: Offer) -> str:
    """Why no command runs, and what can be done about it."""
    if offer.machine is None:
        return "there are no walls for commands on this system: run with --sandbox unsandboxed, or without shell"
    landlock = f"Landlock {offer.landlock} is too old" if offer.landlock else "there is no Landlock"
    return (
        f"commands are not run without walls: {offer.why_not}; {landlock}. "
        "elenco doctor shows what is missing; --sandbox unsandboxed runs commands without walls"
    )
