"""What the library ships for tests of actors works as its users expect."""

import pytest
import trio

from actors import ActorFailed, ChildSpec, Started, Supervisor
from actors.testing import Probe, Recorder, Unrest, no_task_survives


async def test_a_probe_notes_holds_back_and_answers() -> None:
    """A probe notes messages as they are begun, holds them while closed, answers by its function."""
    probe = Probe[str, int](int)
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe))
        probe.close()
        reply = await ref.request("7")
        assert await probe.has_received(1) == ["7"]
        assert not reply.is_there
        probe.open()
        assert await reply.result() == 7
        with pytest.raises(ActorFailed, match="ValueError"):
            await ref.ask("seven")


async def test_a_recorder_keeps_events_by_kind() -> None:
    """A recorder keeps all events in order and gives those of one kind."""
    recorder = Recorder()
    async with Supervisor(observers=[recorder]) as supervisor:
        await supervisor.start(ChildSpec("probe", lambda: Probe[str, int](int)))
    assert recorder.of(Started) == [Started("probe", 0)]
    assert [event.path for event in recorder.events] == ["probe", "probe"]


async def test_unrest_is_the_same_for_the_same_seed() -> None:
    """The same seed gives the same number of checkpoints; the handler in between is untouched."""

    async def run(seed: int) -> list[int]:
        unrest = Unrest(seed, most=5)
        ticks = 0
        counts: list[int] = []

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await trio.lowlevel.checkpoint()

        async def square(number: int) -> int:
            return number * number

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            for number in range(20):
                before = ticks
                assert await unrest.around(square)(number) == number * number
                counts.append(ticks - before)
            nursery.cancel_scope.cancel()
        return counts

    first, again, other = await run(1), await run(1), await run(2)
    assert all(abs(one - two) <= 2 for one, two in zip(first, again, strict=True))  # Trio shuffles each batch
    assert first != other


async def test_a_surviving_task_is_named() -> None:
    """The leak check passes over what was there before and names what was begun and lives on."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever, name="old")
        async with no_task_survives():
            pass

        async def leaky() -> None:
            async with no_task_survives():
                nursery.start_soon(trio.sleep_forever, name="leaked")

        with pytest.raises(AssertionError, match="still running: leaked"):
            await leaky()
        nursery.cancel_scope.cancel()
