"""Real boxes over a throw-away workspace; skipped, with the reason, where this machine cannot build them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from runtime.policy.decision import Sandbox as Level
from runtime.reaper import Reaper, open_reaper
from runtime.sandbox.box import Sandbox
from runtime.sandbox.walls import Walls

Run: TypeAlias = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
async def reaper() -> AsyncGenerator[Reaper]:
    async with open_reaper() as reaper:
        yield reaper


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "ws"
    path.mkdir()
    return path


@pytest.fixture
async def box(reaper: Reaper, workspace: Path, tmp_path: Path) -> Sandbox:
    """The boxes of a run over `workspace`, whose state folder beside it is hidden."""
    sandbox = Sandbox(reaper, str(workspace), Walls(), [tmp_path / "state"], tmp_path / "scratch")
    offer = await sandbox.offer()
    if offer.bwrap is None:
        pytest.skip(f"no bubblewrap that works here: {offer.why_not}")
    return sandbox


@pytest.fixture
def run(box: Sandbox) -> Run:
    """Run one command line to its end: its exit code and what it printed."""

    async def run(command: str, level: Level = "workspace-write", *, network: bool = False) -> tuple[int, str]:
        return await run_in(box, command, level, network=network)

    return run


async def run_in(
    sandbox: Sandbox, command: str, level: Level = "workspace-write", *, network: bool = False
) -> tuple[int, str]:
    started = await sandbox.under(level, "all" if network else "tools").start(command)
    data = b""
    try:
        assert started.process.stdout is not None
        while piece := await started.process.stdout.receive_some():
            data += piece
    finally:
        code = await started.process.end()
    return code, data.decode(errors="replace")


@pytest.fixture
def run_within() -> Run:
    """As `run`, in boxes of one's own making."""
    return run_in
