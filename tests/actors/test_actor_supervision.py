"""Supervisors: starting, stopping in order, restarting by strategy, giving up."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    Actor,
    ActorFailed,
    ActorRef,
    ActorStopped,
    ChildSpec,
    CleanupCut,
    Crashed,
    Ended,
    How,
    Intensity,
    NameTaken,
    Phase,
    Restart,
    RestartLimitReached,
    Started,
    Strategy,
    Supervisor,
    SupervisorClosed,
)
from actors.testing import Probe, Recorder, no_task_survives


class Member(Actor[str, str]):
    """Logs its start and end, crashes when told to."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        self.log.append(f"+{self.name}")
        try:
            yield
        finally:
            await trio.lowlevel.checkpoint()
            self.log.append(f"-{self.name}")

    async def handle(self, message: str) -> str:
        if message == "crash":
            raise ValueError(self.name)
        return f"{self.name}: {message}"


def member(name: str, log: list[str], restart: Restart = Restart.ON_CRASH) -> ChildSpec[str, str]:
    """The specification of a logging member."""
    return ChildSpec(name, lambda: Member(name, log), restart)


async def crash(ref: ActorRef[str, str]) -> None:
    """Have a member crash and wait until its supervisor has dealt with it."""
    with pytest.raises(ActorFailed):
        await ref.ask("crash")
    await wait_all_tasks_blocked()


async def test_children_stop_in_reverse_order_of_their_start() -> None:
    """Leaving the block stops the children, the last one started first, each before the next."""
    log: list[str] = []
    async with no_task_survives():
        async with Supervisor() as supervisor:
            for name in "abc":
                await supervisor.start(member(name, log))
            assert [ref.path for ref in supervisor.children] == ["a", "b", "c"]
        assert supervisor.children == ()
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


async def test_a_cancelled_block_stops_its_children_in_the_same_order(autojump_clock: MockClock) -> None:
    """A deadline around the block ends the subtree, also a busy one, in the same order, with nobody left."""
    log: list[str] = []

    class Parent(Member):
        async def handle(self, message: str) -> str:
            async with Supervisor() as supervisor:
                await supervisor.start(member("x", self.log))
                ref = await supervisor.start(ChildSpec("y", lambda: Sleeper("y", self.log)))
                return await ref.ask(message)

    class Sleeper(Member):
        async def handle(self, message: str) -> str:
            await trio.sleep_forever()
            return message

    async with no_task_survives():
        with trio.move_on_after(1) as scope:
            async with Supervisor() as supervisor:
                await supervisor.start(member("a", log))
                ref = await supervisor.start(ChildSpec("parent", lambda: Parent("parent", log)))
                await ref.ask("wait")
        assert scope.cancelled_caught
    assert log == ["+a", "+parent", "+x", "+y", "-y", "-x", "-parent", "-a"]


async def test_a_child_stopped_later_still_serves_one_stopped_earlier() -> None:
    """While a child cleans up after a cancel, those started before it still answer."""
    heard: list[str] = []

    class Client(Actor[None, None]):
        def __init__(self, journal: ActorRef[str, None]) -> None:
            self.journal = journal

        async def handle(self, message: None) -> None:
            await trio.sleep_forever()

        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            yield
            await self.journal.ask("client ended")

    async with Supervisor() as supervisor:
        journal = await supervisor.start(ChildSpec("journal", lambda: Probe[str, None](heard.append)))
        client = await supervisor.start(ChildSpec("client", lambda: Client(journal)))
        await client.tell(None)
        await wait_all_tasks_blocked()
    assert heard == ["client ended"]


async def test_the_error_of_the_body_leaves_the_block_as_it_is() -> None:
    """An exception of the block's body comes out bare, not in a group, after the children have ended."""
    log: list[str] = []

    async def block() -> None:
        async with Supervisor() as supervisor:
            await supervisor.start(member("a", log))
            raise KeyError("body")

    with pytest.raises(KeyError, match="body"):
        await block()
    assert log == ["+a", "-a"]


async def test_the_crash_of_a_delegated_child_is_an_exception_for_its_asker() -> None:
    """A child that crashes while it works for an asker fails the ask, and nothing else."""
    log: list[str] = []
    async with Supervisor() as supervisor:
        sibling = await supervisor.start(member("sibling", log))

        async def block() -> None:
            async with Supervisor() as inner:
                ref = await inner.start(member("child", log, Restart.NEVER))
                await ref.ask("crash")

        with pytest.raises(ActorFailed, match="child"):
            await block()
        assert await sibling.ask("well?") == "sibling: well?"
    assert log == ["+sibling", "+child", "-child", "-sibling"]


async def test_a_crash_nobody_asked_for_ends_the_block() -> None:
    """The crash of a child that is not restarted, and that no asker hears of, is raised by the block."""
    log: list[str] = []

    async def block() -> None:
        async with Supervisor() as supervisor:
            await supervisor.start(member("a", log))
            ref = await supervisor.start(member("b", log, Restart.NEVER))
            await ref.tell("crash")
            await trio.sleep_forever()

    with pytest.raises(ActorFailed, match="b failed: ValueError: b"):
        await block()
    assert log == ["+a", "+b", "-b", "-a"]


async def test_a_late_crash_belongs_to_the_asker_who_has_gone(autojump_clock: MockClock) -> None:
    """A crash after the asker's deadline is his all the same: the block goes on, observers hear of it."""
    recorder = Recorder()

    async def late(_: str) -> None:
        await trio.sleep(10)
        raise ValueError("late")

    async with Supervisor(observers=[recorder]) as supervisor:
        ref = await supervisor.start(ChildSpec("late", lambda: late))
        with trio.move_on_after(1):
            await ref.ask("now")
        assert (await ref.wait_ended()).how is How.CRASHED
    assert [str(event.error) for event in recorder.of(Crashed)] == ["late"]


async def test_one_for_one_restarts_the_crashed_child_alone() -> None:
    """One for one: a fresh instance takes over name, reference and mailbox; the others are left alone."""
    log: list[str] = []
    recorder = Recorder()
    async with Supervisor(observers=[recorder]) as supervisor:
        a = await supervisor.start(member("a", log))
        await supervisor.start(member("b", log))
        await crash(a)
        assert await a.ask("again") == "a: again"
        assert a.status().restarts == 1
    assert log == ["+a", "+b", "-a", "+a", "-b", "-a"]
    assert [Started("a", 0), Started("b", 0), Started("a", 1)] == recorder.of(Started)
    assert [event.path for event in recorder.of(Ended)] == ["b", "a"]


async def test_one_for_all_restarts_everybody() -> None:
    """One for all: all stop in reverse order and start again in order; who is never restarted ends."""
    log: list[str] = []
    async with Supervisor(Strategy.ONE_FOR_ALL) as supervisor:
        a = await supervisor.start(member("a", log))
        temporary = await supervisor.start(member("t", log, Restart.NEVER))
        await supervisor.start(member("b", log))
        await crash(a)
        assert temporary.status().phase is Phase.ENDED
        assert [ref.path for ref in supervisor.children] == ["a", "b"]
    assert log == ["+a", "+t", "+b", "-a", "-b", "-t", "+a", "+b", "-b", "-a"]


async def test_rest_for_one_restarts_those_started_later() -> None:
    """Rest for one: the crashed child and those started after it are restarted."""
    log: list[str] = []
    async with Supervisor(Strategy.REST_FOR_ONE) as supervisor:
        refs = [await supervisor.start(member(name, log)) for name in "abc"]
        await crash(refs[1])
        assert [ref.status().restarts for ref in refs] == [0, 1, 1]
    assert log == ["+a", "+b", "+c", "-b", "-c", "+b", "+c", "-c", "-b", "-a"]


async def test_queued_messages_survive_a_restart() -> None:
    """What waits in the mailbox, or in line, when the actor crashes is handled after the restart, in order."""
    probe = Probe[int, float](lambda number: 1 / number)
    probe.close()
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("p", lambda: probe, Restart.ON_CRASH, capacity=1))
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(ref.tell, number)
                await wait_all_tasks_blocked()
            probe.open()
        await ref.wait_idle()
        assert ref.status().restarts == 1
    assert probe.received == [0, 1, 2, 3]


async def test_too_many_crashes_end_the_block() -> None:
    """When the restart intensity is used up, the block is cancelled and raises RestartLimitReached."""
    log: list[str] = []

    async def block() -> None:
        async with Supervisor(intensity=Intensity(2, 5.0)) as supervisor:
            ref = await supervisor.start(member("a", log))
            for _ in range(3):
                await ref.tell("crash")
            await trio.sleep_forever()

    with pytest.raises(RestartLimitReached, match="a crashed again after 2 restarts within 5 s") as limit:
        await block()
    assert isinstance(limit.value.__cause__, ValueError)
    assert log == ["+a", "-a"] * 3


async def test_a_failed_start_is_the_starters() -> None:
    """A factory or lifespan that raises fails `start` with the cause, and nobody is left behind."""

    def broken() -> Actor[str, str]:
        raise OSError("no such binary")

    class Stillborn(Member):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            await trio.lowlevel.checkpoint()
            raise OSError("refused")
            yield

    async with Supervisor() as supervisor:
        for _ in range(2):  # the name is free again
            with pytest.raises(ActorFailed, match="no such binary"):
                await supervisor.start(ChildSpec("x", broken, Restart.ON_CRASH))
            with pytest.raises(ActorFailed, match="refused"):
                await supervisor.start(ChildSpec("x", lambda: Stillborn("x", [])))
        assert supervisor.children == ()


async def test_a_restart_that_fails_counts_as_a_crash() -> None:
    """If the fresh instance cannot start, that is the next crash; the intensity bounds it."""
    starts: list[int] = []

    def flaky() -> Member:
        starts.append(len(starts))
        if len(starts) in (2, 3):
            raise OSError("not yet")
        return Member("m", [])

    async with Supervisor(Strategy.ONE_FOR_ALL) as supervisor:
        ref = await supervisor.start(ChildSpec("m", flaky, Restart.ON_CRASH))
        other = await supervisor.start(member("other", []))
        await crash(ref)
        assert await ref.ask("here?") == "m: here?"
        assert await other.ask("here?") == "other: here?"
    assert len(starts) == 4

    starts[:] = [0]

    async def block() -> None:
        async with Supervisor(intensity=Intensity(1, 5.0)) as supervisor:
            await supervisor.start(ChildSpec("m", flaky, Restart.ON_CRASH))

    with pytest.raises(ActorFailed, match="not yet"):
        await block()


async def test_a_cancelled_start_leaves_nobody(autojump_clock: MockClock) -> None:
    """A start cut off by the caller's deadline ends the half-started child, which has cleaned up."""
    log: list[str] = []

    class Slow(Member):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            try:
                await trio.sleep(100)
                yield
            finally:
                self.log.append("cleaned up")

    async with Supervisor() as supervisor:
        with trio.move_on_after(1) as scope:
            await supervisor.start(ChildSpec("slow", lambda: Slow("slow", log)))
        assert scope.cancelled_caught
        assert supervisor.children == ()
        assert log == ["cleaned up"]


async def test_cleanup_is_bounded_by_its_grace(autojump_clock: MockClock) -> None:
    """After a cancel the lifespan may still wait, but only for its grace; then it is cut off and reported."""
    log: list[str] = []

    class Lingering(Member):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            yield
            await trio.sleep(1)
            self.log.append("first second")
            await trio.sleep(100)
            self.log.append("never")

    recorder = Recorder()
    before = trio.current_time()
    async with Supervisor(observers=[recorder]) as supervisor:
        await supervisor.start(ChildSpec("lingering", lambda: Lingering("l", log), grace=3))
    assert trio.current_time() - before == pytest.approx(3)
    assert log == ["first second"]
    (crashed,) = recorder.of(Crashed)
    assert isinstance(crashed.error, CleanupCut)


async def test_a_background_task_that_crashes_takes_its_actor_along() -> None:
    """A crash in a nursery held by the lifespan is the actor's; who asked something meanwhile gets the cause."""

    class Listening(Actor[str, str]):
        def __init__(self) -> None:
            self.hang_up = trio.Event()

        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.listen)
                yield
                nursery.cancel_scope.cancel()

        async def listen(self) -> None:
            await self.hang_up.wait()
            raise ConnectionError("hung up")

        async def handle(self, message: str) -> str:
            if message == "hang up":
                self.hang_up.set()
                await trio.sleep_forever()
            return message

    recorder = Recorder()
    async with Supervisor(observers=[recorder]) as supervisor:
        ref = await supervisor.start(ChildSpec("connection", Listening, Restart.ON_CRASH))
        with pytest.raises(ActorFailed, match="ConnectionError: hung up"):
            await ref.ask("hang up")
        assert await ref.ask("and again") == "and again"
        await ref.stop()
    assert [ConnectionError] == [type(event.error) for event in recorder.of(Crashed)]


async def test_a_cancelled_child_is_not_restarted() -> None:
    """Cancelling or stopping an actor is final, also while it waits for its restart."""
    log: list[str] = []
    async with Supervisor(Strategy.ONE_FOR_ALL) as supervisor:
        a, b, c = [await supervisor.start(member(name, log)) for name in "abc"]
        b.cancel()
        assert (await b.wait_ended()).how is How.CANCELLED
        with pytest.raises(ActorFailed):
            await c.ask("crash")
        c.cancel()  # c is down, a not yet restarted
        await c.wait_ended()
        assert await a.ask("there?") == "a: there?"
    assert log.count("+c") == 1
    assert log.count("+b") == 1


async def test_names_are_unique_among_the_living() -> None:
    """A second living child of the same name is refused; an ended one's name is free, and its memory empty."""
    async with Supervisor() as supervisor:
        first = await supervisor.start(ChildSpec("p", lambda: Probe[str, int](len)))
        with pytest.raises(NameTaken, match="already a p"):
            await supervisor.start(ChildSpec("p", lambda: Probe[str, int](len)))
        await first.stop()
        second = await supervisor.start(ChildSpec("p", lambda: Probe[str, int](len)))
        assert first != second


async def test_a_closed_supervisor_starts_nobody() -> None:
    """Before and after its block a supervisor refuses to start anybody, and a block is entered once."""
    supervisor = Supervisor()
    spec = member("a", [])
    with pytest.raises(SupervisorClosed):
        await supervisor.start(spec)
    async with supervisor:
        pass
    with pytest.raises(SupervisorClosed):
        await supervisor.start(spec)

    async def block() -> None:
        async with supervisor:
            pass

    with pytest.raises(SupervisorClosed):
        await block()


async def test_paths_and_observers_reach_down_the_tree() -> None:
    """Children of an actor are named below it, and observers above hear of them."""
    recorder = Recorder()

    async def parent(_: str) -> str:
        async with Supervisor() as supervisor:
            ref = await supervisor.start(member("child", []))
            return ref.path

    async with Supervisor(observers=[recorder]) as supervisor:
        ref = await supervisor.start(ChildSpec("parent", lambda: parent))
        assert await ref.ask("who?") == "parent/child"
    assert [event.path for event in recorder.of(Started)] == ["parent", "parent/child"]


async def test_monitors_are_told_of_the_end_once() -> None:
    """A monitor is called once with the end, not at restarts; at once if it comes too late; not if undone."""
    told: list[Ended] = []
    undone: list[Ended] = []
    async with Supervisor() as supervisor:
        ref = await supervisor.start(member("a", []))
        ref.monitor(told.append)
        undo = ref.monitor(undone.append)
        undo()
        undo()
        await crash(ref)
        assert told == []
        ref.cancel("enough")
        ended = await ref.wait_ended()
        assert [ended] == told == [Ended("a", How.CANCELLED, "enough")]
        ref.monitor(told.append)()
    assert [ended, ended] == told
    assert undone == []


async def test_a_faulty_observer_ends_the_block_in_order() -> None:
    """What an observer raises comes out of the block; the children end in order all the same."""
    log: list[str] = []

    def faulty(event: object) -> None:
        if isinstance(event, Started) and event.path == "b":
            raise RuntimeError("observer")

    async def block() -> None:
        async with Supervisor(observers=[faulty]) as supervisor:
            for name in "abc":
                await supervisor.start(member(name, log))
            await trio.sleep_forever()

    with pytest.raises(RuntimeError, match="observer"):
        await block()
    assert log[:2] == ["+a", "+b"]
    assert log[-2:] == ["-b", "-a"]


async def test_a_failure_beside_the_bodys_own_error_is_noted() -> None:
    """If body and child fail together, the body's error is raised, with a note on the other."""

    async def block() -> None:
        async with Supervisor() as supervisor:
            ref = await supervisor.start(member("a", [], Restart.NEVER))
            await ref.tell("crash")
            with trio.CancelScope(shield=True):
                await ref.wait_ended()
            raise KeyError("body")

    with pytest.raises(KeyError) as raised:
        await block()
    assert raised.value.__notes__ == ["meanwhile: a failed: ValueError: a"]


async def test_idle_means_nothing_in_work_and_nothing_waiting(autojump_clock: MockClock) -> None:
    """`wait_idle` returns when all told messages have ended, also by crash or drop, and those they led to (R55)."""
    handled: list[int] = []

    class Chain(Actor[int, None]):
        def __init__(self, onward: ActorRef[int, None] | None) -> None:
            self.onward = onward

        async def handle(self, message: int) -> None:
            await trio.sleep(1)
            handled.append(message)
            if message == 2:
                raise ValueError("dropped on the way")
            if self.onward is not None:
                await self.onward.tell(message)

    async with Supervisor() as supervisor:
        last = await supervisor.start(ChildSpec("last", lambda: Chain(None), Restart.ON_CRASH))
        first = await supervisor.start(ChildSpec("first", lambda: Chain(last), Restart.ON_CRASH, capacity=1))
        for number in (1, 2, 3):
            await first.tell(number)
        await supervisor.wait_idle()
        assert sorted(handled) == [1, 1, 2, 3, 3]
        await last.tell(4)
        last.cancel()
        await supervisor.wait_idle()


async def test_control_c_ends_a_supervised_program() -> None:
    """A KeyboardInterrupt in the body ends the children like any other error."""
    log: list[str] = []

    async def block() -> None:
        async with Supervisor() as supervisor:
            await supervisor.start(member("a", log))
            signal.raise_signal(signal.SIGINT)
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await block()
    assert log == ["+a", "-a"]


def test_control_c_while_the_block_is_left_cancels_everybody_at_once() -> None:
    """A KeyboardInterrupt in the middle of an orderly end cancels all that is left, and still nobody survives it."""
    log: list[str] = []

    @trio.lowlevel.enable_ki_protection
    def press() -> None:
        signal.raise_signal(signal.SIGINT)

    class Interrupting(Member):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            yield
            press()
            await trio.sleep(0.01)
            self.log.append("cleaned up")

    async def main() -> None:
        async with no_task_survives():
            async with Supervisor() as supervisor:
                await supervisor.start(member("a", log))
                await supervisor.start(ChildSpec("b", lambda: Interrupting("b", log)))

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert sorted(log) == ["+a", "-a", "cleaned up"]


async def test_an_exit_inside_an_actor_ends_the_program() -> None:
    """SystemExit out of an actor is not a crash to restart from: it comes out of the block; its asker is told."""
    log: list[str] = []
    outcome: list[BaseException] = []

    async def leave(_: str) -> None:
        raise SystemExit(3)

    async def ask(ref: ActorRef[str, None]) -> None:
        with pytest.raises(ActorFailed) as failed:
            await ref.ask("go")
        outcome.append(failed.value.cause)

    async def block() -> None:
        async with trio.open_nursery() as nursery, Supervisor() as supervisor:
            await supervisor.start(member("a", log))
            ref = await supervisor.start(ChildSpec("leave", lambda: leave, Restart.ON_CRASH))
            nursery.start_soon(ask, ref)
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as raised:
        await block()
    assert raised.group_contains(SystemExit)
    assert log == ["+a", "-a"]
    assert isinstance(outcome[0], SystemExit)


async def test_an_actor_cancelled_while_starting_fails_its_start() -> None:
    """A child that somebody cancels while it starts makes `start` raise ActorStopped."""

    class Waiting(Member):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            self.inbox.ref.cancel("changed my mind")
            await trio.sleep_forever()
            yield

    async with Supervisor() as supervisor:
        with pytest.raises(ActorStopped, match="changed my mind"):
            await supervisor.start(ChildSpec("w", lambda: Waiting("w", [])))
