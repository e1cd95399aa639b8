"""What has ended is forgotten: by its supervisor, the wait-for graph, observers and references."""

import gc
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from actors import Actor, ActorFailed, ActorRef, ChildSpec, Restart, Supervisor


class Context(Actor[str, int]):
    """Remembers what it has seen."""

    def __init__(self) -> None:
        self.memory: list[str] = []

    async def handle(self, message: str) -> int:
        if message == "crash":
            raise ValueError("crash")
        self.memory.append(message)
        return len(self.memory)


class Held(Context):
    """The same with a lifespan that holds a nursery."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            yield
            nursery.cancel_scope.cancel()


class Factory:
    """Makes actors and keeps only weak references to them."""

    def __init__(self, kind: Callable[[], Context]) -> None:
        self.kind = kind
        self.made: list[weakref.ref[Context]] = []

    def __call__(self) -> Context:
        actor = self.kind()
        self.made.append(weakref.ref(actor))
        return actor

    @property
    def alive(self) -> int:
        """How many of them have not been freed."""
        gc.collect()
        return sum(reference() is not None for reference in self.made)


@pytest.mark.parametrize("kind", [Context, Held])
async def test_an_ended_actor_is_freed_while_its_supervisor_lives(kind: Callable[[], Context]) -> None:
    """A stopped, cancelled or crashed actor is freed, though supervisor, references and monitors are kept."""
    factory = Factory(kind)
    spec = ChildSpec("child", factory)
    refs: list[ActorRef[str, int]] = []
    async with Supervisor() as supervisor:
        for end in ("stop", "cancel", "crash"):
            ref = await supervisor.start(spec)
            refs.append(ref)
            ref.monitor(lambda _: None)
            assert await ref.ask("a second call starts empty") == 1
            assert factory.alive == 1
            match end:
                case "stop":
                    await ref.stop()
                case "cancel":
                    ref.cancel()
                case _:
                    with pytest.raises(ActorFailed):
                        await ref.ask("crash")
            await ref.wait_ended()
            await trio.testing.wait_all_tasks_blocked()
            assert factory.alive == 0
    assert len(refs) == 3


async def test_a_restarted_actor_is_freed() -> None:
    """The instance that crashed is freed when the fresh one serves; nor does its task's context live on in it."""
    factory = Factory(Context)
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("child", factory, Restart.ON_CRASH))
        for _ in range(3):
            with pytest.raises(ActorFailed):
                await ref.ask("crash")
            assert await ref.ask("starts empty") == 1
        assert factory.alive == 1


async def test_a_block_opened_by_an_actor_is_freed_with_it() -> None:
    """Children of an actor that has ended are freed, whatever reference to them is kept outside."""
    factory = Factory(Context)
    kept: list[ActorRef[str, int]] = []

    async def parent(message: str) -> int:
        async with Supervisor() as inner:
            kept.append(await inner.start(ChildSpec("child", factory)))
            return await kept[-1].ask(message)

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("parent", lambda: parent))
        for _ in range(3):
            assert await ref.ask("hello") == 1
        assert factory.alive == 0


async def test_messages_and_replies_are_not_kept() -> None:
    """A message and its reply are freed once the asker lets go of them, though the actor lives on."""

    class Big:
        pass

    async def exchange(_: Big) -> Big:
        return Big()

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("exchange", lambda: exchange))
        message = Big()
        reply = await ref.ask(message)
        sent, got = weakref.ref(message), weakref.ref(reply)
        del message, reply
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert got() is None
        assert sent() is None
