"""The client for programs on asyncio: the same frames and answers, over lost connections and several processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio

from runtime.errors import ElencoError, UsageError
from runtime.events import RunFinished, RunStarted, Warned
from runtime.journal import RunFolder, create_run, open_journal, open_state
from runtime.messages import JsonObject
from runtime.model import Delta
from runtime.watch import Approve, Cancel, Command, LogStream, NotRunning, Say, on_asyncio, serve

T = TypeVar("T")


class Echo:
    """Commands that answers with what it was told."""

    async def run(self, command: Command) -> JsonObject:
        await trio.lowlevel.checkpoint()
        match command:
            case Approve():
                raise UsageError(f"{command.id} waits for no decision")
            case _:
                return {"op": command.op}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run(open_state(str(tmp_path)), random.Random(1))


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("run"))}


async def elsewhere(work: Callable[[], Awaitable[T]]) -> T:
    """What another program does on a loop of its own."""

    async def bounded() -> T:
        return await asyncio.wait_for(work(), 10)

    return await trio.to_thread.run_sync(lambda: asyncio.run(bounded()))


async def test_commands_are_answered(folder: RunFolder, sockets: dict[str, str]) -> None:
    """Results and errors come back as they are; without a process the command is recorded, or it is said."""

    async def commanding() -> list[object]:
        async with on_asyncio.connect(folder) as client:
            with pytest.raises(UsageError, match="a1 waits for no decision"):
                await client.send(Approve(id="a1"))
            return [await client.send(Say(text="x")), await on_asyncio.deliver(folder, Cancel(), str)]

    async def absent() -> None:
        async with on_asyncio.connect(folder):
            pass

    async with open_journal(folder) as journal:
        async with serve(LogStream(journal, clock=lambda: 1.0), Echo(), folder, sockets):
            assert [{"op": "say"}, {"op": "cancel"}] == await elsewhere(commanding)
        with pytest.raises(NotRunning, match="being started or ended"):
            await elsewhere(absent)


async def test_a_client_for_whom_there_is_no_place_is_told(folder: RunFolder, sockets: dict[str, str]) -> None:
    """With all places taken, a command and a subscription fail with the run's own words."""

    async def asking() -> None:
        async with on_asyncio.connect(folder) as client:
            with pytest.raises(ElencoError, match=r"^256 clients are connected already$"):
                await client.send(Cancel())
            with pytest.raises(ElencoError, match=r"^256 clients are connected already$"):
                async with client.subscribe():
                    pass

    async with (
        open_journal(folder) as journal,
        serve(LogStream(journal, clock=lambda: 1.0), Echo(), folder, sockets) as control,
        AsyncExitStack() as places,
    ):
        for _ in range(256):
            await places.enter_async_context(await trio.open_unix_socket(str(control.socket)))
        await elsewhere(asking)


async def test_a_run_is_followed_over_its_processes(folder: RunFolder, sockets: dict[str, str]) -> None:
    """Every kept event comes once, from journals and sockets of several processes, and live ones while they live."""
    seen: list[dict[str, Any]] = []
    tell, told = trio.open_memory_channel[dict[str, Any]](100)

    async def following() -> None:
        async with on_asyncio.follow(folder, for_ever=True) as frames:
            async for frame in frames:
                trio.from_thread.run_sync(tell.send_nowait, frame)
                if frame["type"] == "run.finished":
                    return

    async def hear(count: int) -> None:
        for _ in range(count):
            seen.append(await told.receive())

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            async with open_journal(folder) as journal:
                journal.append(RunStarted(task="t", agent="a", model="m", limits={}))
                nursery.start_soon(elsewhere, following)
                await hear(1)
            for number in range(2):
                async with open_journal(folder) as journal:
                    stream = LogStream(journal, clock=lambda: 1.0)
                    async with serve(stream, Echo(), folder, sockets):
                        stream.publish_deltas("a", [Delta("text", f"live {number}")])
                        journal.append(Warned(text=f"{number}"))
                        await hear(2)
            async with open_journal(folder) as journal:
                journal.append(RunFinished(report={}))
            await hear(1)
    kept = [frame for frame in seen if "seq" in frame]
    assert [1, 2, 3, 4] == [frame["seq"] for frame in kept]
    assert ["0", "1"] == [frame["text"] for frame in kept if frame["type"] == "warning"]
    assert ["live 0", "live 1"] == [frame["text"] for frame in seen if frame["type"] == "model.delta"]


async def test_following_ends_with_the_run(folder: RunFolder) -> None:
    """Without a process the journal is told to its end, from the place that was asked for."""
    async with open_journal(folder) as journal:
        for event in (RunStarted(task="t", agent="a", model="m", limits={}), Warned(text="x"), Warned(text="y")):
            journal.append(event)

    async def following() -> list[int]:
        async with on_asyncio.follow(folder, 2) as frames:
            return [frame["seq"] async for frame in frames]

    assert [2, 3] == await elsewhere(following)
