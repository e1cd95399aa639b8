"""Waits that could never end are refused when they begin, and others are not."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    Actor,
    ActorFailed,
    ActorRef,
    ChildSpec,
    Ended,
    Restart,
    Strategy,
    Supervisor,
    WaitCycle,
)
from actors.testing import Recorder, no_task_survives

Work = Callable[[], Awaitable[object]]


async def run(work: Work) -> object:
    """An actor that does whatever it is sent."""
    return await work()


def runner(name: str, capacity: int = 64) -> ChildSpec[Work, object]:
    """The specification of such an actor."""
    return ChildSpec(name, lambda: run, capacity=capacity)


async def answer() -> str:
    """Work that needs nobody."""
    return "answer"


async def test_asking_whoever_asked_is_refused_with_the_circle() -> None:
    """An ask that comes back to its origin over others is refused at once; the error names them in order."""
    async with Supervisor() as supervisor:
        a, b, c = [await supervisor.start(runner(name)) for name in "abc"]

        async def back() -> str:
            with pytest.raises(WaitCycle) as refused:
                await a.ask(answer)
            return " ".join(refused.value.cycle)

        assert await a.ask(lambda: b.ask(lambda: c.ask(back))) == "c a b c"
        for ref in (a, b, c):
            assert ref.status().waiting_for == ()


async def test_asking_oneself_is_refused() -> None:
    """An actor that asks itself is refused; a tell to itself is fine while there is a place, also from a subtask."""
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a", capacity=1))

        async def to_itself() -> None:
            with pytest.raises(WaitCycle):
                await a.ask(answer)
            await a.tell(answer)
            with pytest.raises(WaitCycle):
                await a.tell(answer)
            refusals: list[str] = []
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(a.ask, answer)
            except* WaitCycle as refused:
                refusals.append(str(refused.exceptions[0]))
            assert refusals == ["refused, nobody in this circle could go on: a would wait for a"]

        await a.ask(to_itself)


async def test_a_refused_ask_left_unhandled_is_a_crash_told_to_the_asker() -> None:
    """An actor that does not catch the refusal crashes with it, and its asker learns the circle from the cause."""
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a"))
        b = await supervisor.start(runner("b"))
        with pytest.raises(ActorFailed) as failed:
            await a.ask(lambda: b.ask(lambda: a.ask(answer)))
        inner = failed.value.cause
        assert isinstance(inner, ActorFailed)
        assert isinstance(inner.cause, WaitCycle)


async def test_two_full_mailboxes_do_not_lock_each_other() -> None:
    """If two actors tell each other with both mailboxes full, the second one that would wait is refused."""
    refusals: list[str] = []

    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a", capacity=1))
        b = await supervisor.start(runner("b", capacity=1))

        def flood(name: str, other: ActorRef[Work, object]) -> Work:
            async def work() -> None:
                for _ in range(3):
                    await wait_all_tasks_blocked(0.001)
                    try:
                        await other.tell(answer)
                    except WaitCycle:
                        refusals.append(name)

            return work

        await a.tell(flood("a", b))
        await b.tell(flood("b", a))
        await supervisor.wait_idle()
    assert len(set(refusals)) == 1


async def test_a_wait_that_has_been_answered_stands_in_nobodys_way() -> None:
    """The moment an ask is answered its edge is gone: the answerer may ask the asker next."""
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a"))
        b = await supervisor.start(runner("b"))
        replies: list[object] = []

        async def ask_back() -> None:
            replies.append(await a.ask(answer))

        gate = trio.Event()
        await b.tell(gate.wait)
        await a.tell(lambda: b.ask(answer))
        await wait_all_tasks_blocked()
        await b.tell(ask_back)
        gate.set()
        await supervisor.wait_idle()
    assert replies == ["answer"]


async def test_a_cancelled_wait_stands_in_nobodys_way(autojump_clock: MockClock) -> None:
    """A wait that its deadline has cut off no longer counts."""
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a"))
        b = await supervisor.start(runner("b"))

        async def slowly_back() -> object:
            await trio.sleep(5)
            return await a.ask(answer)

        async def impatient() -> str:
            with trio.move_on_after(1):
                await b.ask(slowly_back)
            assert a.status().waiting_for == ()
            return "gone"

        assert await a.ask(impatient) == "gone"
        await supervisor.wait_idle()


async def test_a_child_cannot_ask_the_parent_that_waits_for_it() -> None:
    """A delegated child that asks, or has to wait to tell, its waiting parent is refused; a plain tell arrives."""
    outcomes: list[str] = []

    async with Supervisor() as supervisor:
        parent = await supervisor.start(runner("parent", capacity=1))

        async def child_work() -> str:
            await parent.tell(answer)
            for call in (parent.tell, parent.ask, parent.request):
                with pytest.raises(WaitCycle):
                    await call(answer)
            for wait in (parent.wait_idle, parent.wait_ended, parent.stop):
                with pytest.raises(WaitCycle):
                    await wait()
            return "done"

        async def delegate() -> None:
            async with Supervisor() as inner:
                child = await inner.start(runner("child"))
                outcomes.append(str(await child.ask(child_work)))

        await parent.ask(delegate)
        await parent.wait_idle()
    assert outcomes == ["done"]


async def test_fetching_a_reply_is_a_wait_and_having_requested_it_is_not() -> None:
    """Between a request and the fetching of its reply, the answerer may ask the requester; then no longer."""
    log: list[str] = []
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a"))
        b = await supervisor.start(runner("b"))
        go = trio.Event()

        async def meanwhile() -> None:
            await go.wait()
            try:
                await a.ask(answer)
            except WaitCycle:
                log.append("refused")

        async def begin() -> None:
            reply = await b.request(meanwhile)
            await wait_all_tasks_blocked()
            assert a.status().waiting_for == ()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reply.result)
                await wait_all_tasks_blocked(0.001)
                assert a.status().waiting_for == ("b",)
                go.set()

        await a.ask(begin)
    assert log == ["refused"]


async def test_an_actor_may_not_wait_for_one_that_waits_for_it() -> None:
    """Waiting for an end or for idleness is a wait like any other."""
    async with Supervisor() as supervisor:
        a = await supervisor.start(runner("a"))
        b = await supervisor.start(runner("b"))

        async def wait_for_b() -> None:
            await b.tell(lambda: a.ask(answer))
            await wait_all_tasks_blocked()
            for wait in (b.wait_ended, b.wait_idle, b.stop):
                with pytest.raises(WaitCycle, match="a would wait for b, which waits for a"):
                    await wait()
            with pytest.raises(WaitCycle):
                await supervisor.wait_idle()

        await a.ask(wait_for_b)
        await supervisor.wait_idle()


class Guarded(Actor[Work, object]):
    """Does given work before it starts, beside its messages, and at its end."""

    def __init__(self, first: Work = answer, beside: Work = answer, last: Work = answer) -> None:
        self.first, self.beside, self.last = first, beside, last

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        await self.first()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.beside)
            yield
        await self.last()

    async def handle(self, message: Work) -> object:
        return await message()


async def test_a_starting_child_cannot_ask_the_parent_that_starts_it() -> None:
    """While a parent starts a child, the child's lifespan cannot ask it, nor can the child's end while it stops."""
    refused: list[str] = []
    async with Supervisor() as supervisor:
        parent = await supervisor.start(runner("parent"))

        async def ask_parent() -> None:
            try:
                await parent.ask(answer)
            except WaitCycle as cycle:
                refused.append(" ".join(cycle.cycle))

        async def employ() -> None:
            async with Supervisor() as inner:
                await inner.start(ChildSpec("child", lambda: Guarded(first=ask_parent, last=ask_parent)))

        await parent.ask(employ)
    assert refused[:1] == ["parent/child parent parent/child"]
    assert refused[1:] == ["parent/child parent the supervisor in parent parent/child"]


async def test_a_background_task_may_ask_whoever_asks_its_actor() -> None:
    """A task of the lifespan waits for itself alone: an actor it has asked may ask the actor, which is free."""
    async with Supervisor() as supervisor:
        b = await supervisor.start(runner("b"))
        a: ActorRef[Work, object] | None = None
        replies: list[object] = []

        async def ask_back() -> object:
            assert a is not None
            return await a.ask(answer)

        async def beside() -> None:
            await wait_all_tasks_blocked()
            replies.append(await b.ask(ask_back))

        a = await supervisor.start(ChildSpec("a", lambda: Guarded(beside=beside)))
        await wait_all_tasks_blocked(0.001)
        await a.stop()
    assert replies == ["answer"]


async def test_a_sibling_that_is_down_is_not_waited_for_by_one_being_stopped() -> None:
    """While siblings are stopped for a common restart, their clean-up cannot ask one that is already down."""
    outcomes: list[str] = []
    refs: list[ActorRef[Work, object]] = []

    async def ask_first() -> None:
        try:
            outcomes.append(str(await refs[0].ask(answer)))
        except WaitCycle as cycle:
            outcomes.append(" ".join(cycle.cycle))

    async def crash() -> None:
        raise ValueError("crash")

    async with Supervisor(Strategy.ONE_FOR_ALL) as supervisor:
        refs.append(await supervisor.start(ChildSpec("a", lambda: run, Restart.ON_CRASH)))
        refs.append(await supervisor.start(ChildSpec("b", lambda: Guarded(last=ask_first), Restart.ON_CRASH)))
        with pytest.raises(ActorFailed):
            await refs[0].ask(crash)
        assert await refs[0].ask(answer) == "answer"
        assert [ref.status().restarts for ref in refs] == [1, 1]
    assert outcomes == ["b a the outermost supervisor b", "answer"]


async def test_a_ring_of_waiting_actors_ends_with_its_block() -> None:
    """Actors that ask round in a ring, the last one refused and still at work, all end with the block."""
    recorder = Recorder()
    circles: list[tuple[str, ...]] = []
    async with no_task_survives():
        async with Supervisor(observers=[recorder]) as supervisor:
            refs = [await supervisor.start(runner(f"r{number}", capacity=1)) for number in range(20)]

            def ask_on(number: int) -> Work:
                async def work() -> None:
                    try:
                        await refs[(number + 1) % 20].ask(ask_on(number + 1))
                    except WaitCycle as refused:
                        circles.append(refused.cycle)
                        await trio.sleep_forever()

                return work

            await refs[0].tell(ask_on(0))
            await wait_all_tasks_blocked()
            assert all(ref.status().working for ref in refs)
    assert len(recorder.of(Ended)) == 20
    assert [len(circle) for circle in circles] == [21]
