"""How high the walls around commands are: levels, network and limits, composed of flags and settings. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs

from runtime.policy.decision import NETWORKS, SANDBOXES, Network, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

Level = TypeVar("Level", bound=str)

GB = 1 << 30


@attrs.frozen
class Caps:
    """What one command may use up: bytes of address space, of one file, and seconds of CPU, each of one process.

    `processes` holds for the whole command, where the kernel counts them by namespace, and not for root.
    """

    memory: int = 16 * GB
    processes: int = 512
    file_size: int = 4 * GB
    open_files: int = 4096
    cpu: int = 3600

    def tightened(self, other: SandboxSettings) -> Caps:
        """The lower of the two, one by one."""
        return Caps(
            *(min(mine, said) if said else mine for mine, said in zip(_values(self), other.caps(), strict=True))
        )


@attrs.frozen
class SandboxSettings:
    """What one settings file says under `sandbox`, None where it says nothing.

    `read` are folders outside the workspace that commands may read, `env` variables that are handed to them.
    """

    level: Sandbox | None = None
    network: Network | None = None
    read: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    memory: int | None = None
    processes: int | None = None
    file_size: int | None = None
    open_files: int | None = None
    cpu: int | None = None

    def caps(self) -> tuple[int | None, ...]:
        """The limits, in the order of `Caps`."""
        return (self.memory, self.processes, self.file_size, self.open_files, self.cpu)


@attrs.frozen
class Walls:
    """The walls of one run. `ignored` says what a workspace's own settings wanted and may not decide."""

    level: Sandbox = "workspace-write"
    network: Network = "tools"
    read: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    caps: Caps = Caps()
    ignored: tuple[str, ...] = ()


def composed(
    here: SandboxSettings,
    user: SandboxSettings,
    level: Sandbox | None = None,
    network: Network | None = None,
) -> Walls:
    """The walls that flags (`level`, `network`), the user's settings and the workspace's make together.

    A flag goes before the user's settings. The workspace can only make walls higher: what it says comes from whoever
    wrote its files.
    """
    wanted_level = level or user.level or "workspace-write"
    wanted_network = network or user.network or "tools"
    base = Caps(*(said or own for said, own in zip(user.caps(), _values(Caps()), strict=True)))
    return Walls(
        level=_lower(SANDBOXES, wanted_level, here.level),
        network=_lower(NETWORKS, wanted_network, here.network),
        read=user.read,
        env=user.env,
        caps=base.tightened(here),
        ignored=tuple(_ignored(here, wanted_level, wanted_network)),
    )


def _ignored(here: SandboxSettings, level: Sandbox, network: Network) -> Iterator[str]:
    if here.level is not None and SANDBOXES.index(here.level) > SANDBOXES.index(level):
        yield f"level {here.level}"
    if here.network is not None and NETWORKS.index(here.network) > NETWORKS.index(network):
        yield f"network {here.network}"
    if here.read:
        yield "read"
    if here.env:
        yield "env"


def _lower(levels: tuple[Level, ...], one: Level, other: Level | None) -> Level:
    return one if other is None or levels.index(one) <= levels.index(other) else other


def _values(caps: Caps) -> tuple[int, ...]:
    return (caps.memory, caps.processes, caps.file_size, caps.open_files, caps.cpu)
