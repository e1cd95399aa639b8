"""Telling, asking, requesting: what the sender may rely on."""

import math
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    Actor,
    ActorFailed,
    ActorRef,
    ActorStopped,
    AlreadyAnswered,
    ChildSpec,
    ControlRefused,
    Dropped,
    Envelope,
    How,
    MailboxFull,
    Phase,
    Supervisor,
    Unanswered,
)
from actors.testing import Probe, Recorder


async def double(number: int) -> int:
    """An actor without a class."""
    return 2 * number


async def test_the_return_value_is_the_reply() -> None:
    """What `handle` returns is what the asker gets; a plain async function is an actor."""
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("double", lambda: double))
        assert await ref.ask(21) == 42


async def test_none_is_a_reply_like_any_other() -> None:
    """A handler that returns None answers None."""

    async def nothing(_: str) -> str | None:
        return None

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("nothing", lambda: nothing))
        replies: list[object] = [await ref.ask("hello"), await (await ref.request("hello")).result()]
    assert replies == [None, None]


async def test_deadline_belongs_to_the_caller(autojump_clock: MockClock) -> None:
    """An ask that takes too long is cut off by the caller's own scope; the work is not, its answer is dropped."""
    finished: list[str] = []

    async def slow(message: str) -> str:
        await trio.sleep(10)
        finished.append(message)
        return message

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("slow", lambda: slow))
        with pytest.raises(trio.TooSlowError), trio.fail_after(1):
            await ref.ask("first")
        assert await ref.ask("second") == "second"
    assert finished == ["first", "second"]


async def test_an_ask_still_waiting_for_a_place_is_withdrawn_when_cancelled(autojump_clock: MockClock) -> None:
    """A cancelled ask that has no place in the mailbox yet is never handled; one that has is handled."""
    probe = Probe[str, int](len)
    probe.close()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=1))
        nursery.start_soon(ref.ask, "in work")
        await probe.has_received(1)
        with trio.move_on_after(1):
            await ref.ask("queued")
        with trio.move_on_after(1):
            await ref.ask("in line")
        probe.open()
        await ref.wait_idle()
    assert probe.received == ["in work", "queued"]


async def test_a_cancelled_caller_sends_nothing() -> None:
    """A tell, ask or request made in an already cancelled scope has not been sent."""
    probe = Probe[str, int](len)
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe))
        calls: tuple[Callable[[str], Awaitable[object]], ...] = (ref.tell, ref.ask, ref.request)
        for call in calls:
            with trio.CancelScope() as scope:
                scope.cancel()
                await call("never")
            assert scope.cancelled_caught
        await ref.ask("only")
    assert probe.received == ["only"]


async def test_a_full_mailbox_makes_the_sender_wait() -> None:
    """A tell returns when the message has its place, and waits while the mailbox is full."""
    probe = Probe[int, int](abs)
    probe.close()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=2))
        sent: list[int] = []

        async def send() -> None:
            for number in range(6):
                await ref.tell(number)
                sent.append(number)

        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        assert sent == [0, 1, 2]  # one in work, two in the mailbox
        status = ref.status()
        assert (status.working, status.queued, status.senders_in_line) == (True, 2, 1)
        probe.open()
        await probe.has_received(6)
    assert probe.received == [0, 1, 2, 3, 4, 5]


async def test_nobody_overtakes_a_waiting_sender() -> None:
    """Who comes while others wait for a place queues up behind them."""
    probe = Probe[int, int](abs)
    probe.close()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=1))
        for number in range(5):
            nursery.start_soon(ref.ask if number % 2 else ref.tell, number)
            await wait_all_tasks_blocked()
        probe.open()
        await ref.wait_idle()
        nursery.cancel_scope.cancel()
    assert probe.received == [0, 1, 2, 3, 4]


async def test_tell_nowait_raises_instead_of_waiting() -> None:
    """`tell_nowait` raises MailboxFull instead of waiting, also behind senders in line."""
    probe = Probe[int, int](abs)
    probe.close()
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=1))
        ref.tell_nowait(1)
        await probe.has_received(1)
        ref.tell_nowait(2)
        with pytest.raises(MailboxFull, match="probe is full"):
            ref.tell_nowait(3)


async def test_a_crash_reaches_the_asker_as_actor_failed() -> None:
    """Who asks a message that crashes the actor gets ActorFailed with the very cause."""
    cause = ValueError("no such number")

    async def crash(_: int) -> int:
        raise cause

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("crash", lambda: crash))
        with pytest.raises(ActorFailed, match="crash failed: ValueError: no such number") as failed:
            await ref.ask(1)
        assert failed.value.cause is cause
        assert failed.value.__cause__ is cause


async def test_a_group_of_one_is_told_as_the_one() -> None:
    """A crash inside the handler's nursery is told as the exception itself, without the group around it."""

    async def fail() -> None:
        raise ValueError("inside")

    async def crash(_: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("crash", lambda: crash))
        with pytest.raises(ActorFailed) as failed:
            await ref.ask(1)
        assert isinstance(failed.value.cause, ValueError)


async def test_messages_behind_a_crash_are_stopped_unbegun() -> None:
    """Who waits behind the message that crashed is told that his was not begun, and why."""
    probe = Probe[int, float](lambda number: 1 / number)
    probe.close()
    outcomes: dict[int, Exception] = {}
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=1))

        async def ask(number: int) -> None:
            try:
                await ref.ask(number)
            except (ActorFailed, ActorStopped) as error:
                outcomes[number] = error

        for number in range(3):  # in work, queued, in line
            nursery.start_soon(ask, number)
            await wait_all_tasks_blocked()
        probe.open()
    assert isinstance(outcomes[0], ActorFailed)
    for number in (1, 2):
        stopped = outcomes[number]
        assert isinstance(stopped, ActorStopped)
        assert not stopped.began
        assert "ZeroDivisionError" in str(stopped)


async def test_cancelling_an_actor_stops_the_asker_in_the_midst() -> None:
    """A cancelled actor's askers get ActorStopped, which says whether their message had been begun."""
    probe = Probe[str, int](len)
    probe.close()
    began: dict[str, bool] = {}
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe))

        async def ask(message: str) -> None:
            with pytest.raises(ActorStopped, match="operator") as stopped:
                await ref.ask(message)
            began[message] = stopped.value.began

        nursery.start_soon(ask, "in work")
        await probe.has_received(1)
        nursery.start_soon(ask, "queued")
        await wait_all_tasks_blocked()
        ref.cancel("by the operator")
        assert (await ref.wait_ended()).how is How.CANCELLED
    assert began == {"in work": True, "queued": False}


async def test_an_orderly_stop_handles_what_was_accepted() -> None:
    """`stop` lets the actor handle what it has accepted, refuses the rest, and returns at the end."""
    probe = Probe[int, int](abs)
    probe.close()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe, capacity=2))
        for number in range(3):
            await ref.tell(number)
            await wait_all_tasks_blocked()

        async def too_late() -> None:
            with pytest.raises(ActorStopped):
                await ref.tell(99)

        nursery.start_soon(too_late)
        await wait_all_tasks_blocked()
        nursery.start_soon(ref.stop)
        await wait_all_tasks_blocked()
        with pytest.raises(ActorStopped, match="not begun"):
            await ref.ask(100)
        probe.open()
        ended = await ref.wait_ended()
        assert (ended.how, ref.status().phase) == (How.STOPPED, Phase.ENDED)
    assert probe.received == [0, 1, 2]


async def test_sending_to_an_ended_actor_is_refused() -> None:
    """Every way to send to an actor that has ended raises ActorStopped at once."""
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("double", lambda: double))
        await ref.stop("done with it")
        for call in (ref.ask, ref.tell, ref.request):
            with pytest.raises(ActorStopped, match="done with it"):
                await call(1)
        with pytest.raises(ActorStopped, match="done with it"):
            ref.tell_nowait(1)
        with pytest.raises(ActorStopped, match="done with it"):
            ref.control("anything")
        ref.cancel()
        assert await ref.wait_ended() == await ref.stop()


async def test_told_messages_that_come_to_nothing_are_reported() -> None:
    """A told message that is cut short or never begun is dropped with an event; a handled one is not (R55)."""
    recorder = Recorder()
    probe = Probe[str, int](len)
    async with Supervisor(observers=[recorder]) as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe))
        await ref.tell("handled")
        await ref.wait_idle()
        probe.close()
        await ref.tell("cut short")
        await ref.tell("not begun")
        await probe.has_received(2)
        ref.cancel()
        await ref.wait_idle()
    assert [Dropped("probe", "cut short", began=True), Dropped("probe", "not begun", began=False)] == recorder.of(
        Dropped
    )


async def test_a_request_is_answered_later() -> None:
    """A request returns when the message is accepted; its reply can be fetched later, and again."""
    probe = Probe[str, int](len)
    probe.close()
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: probe))
        reply = await ref.request("four")
        with trio.move_on_after(0):
            await reply.result()
        assert not reply.is_there
        probe.open()
        assert [await reply.result(), await reply.result()] == [4, 4]
        assert reply.is_there


async def test_a_failed_request_fails_each_time_it_is_fetched() -> None:
    """The failure of a request is raised whenever its result is fetched."""
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("probe", lambda: Probe[int, float](lambda n: 1 / n)))
        reply = await ref.request(0)
        for _ in range(2):
            with pytest.raises(ActorFailed, match="division by zero"):
                await reply.result()


class Worker(Actor[str, list[str]]):
    """Works on one message in steps and takes note of what else arrives."""

    def __init__(self) -> None:
        self.step = trio.Event()
        self.steered: list[str] = []

    async def handle(self, message: str) -> list[str]:
        heard = [message]
        if message == "work":
            await self.step.wait()
            for envelope in self.inbox.drain():
                heard.append(envelope.message)
                if envelope.message == "and you?":
                    envelope.reply(["fine"])
        return heard + self.steered

    def control(self, signal: object) -> object:
        match signal:
            case "status":
                return f"{len(self.steered)} hints"
            case str():
                self.steered.append(signal)
                self.step.set()
                return True
            case _:
                return super().control(signal)


async def test_a_busy_actor_answers_control() -> None:
    """Control is answered at once, past a full mailbox, while the actor is in the middle of a message."""
    worker = Worker()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("worker", lambda: worker, capacity=1))
        heard: list[list[str]] = []

        async def ask() -> None:
            heard.append(await ref.ask("work"))

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        await ref.tell("fills the mailbox")
        assert ref.status().working
        assert ref.control("status") == "0 hints"
        with pytest.raises(ControlRefused, match="worker does not take the control signal 5"):
            ref.control(5)
        assert ref.control("hurry") is True
    assert heard == [["work", "fills the mailbox", "hurry"]]


async def test_a_plain_function_refuses_control() -> None:
    """An actor that is a plain function has no control of its own, but can be cancelled and looked at."""
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("double", lambda: double))
        with pytest.raises(ControlRefused):
            ref.control("status")
        assert ref.status().phase is Phase.SERVING


async def test_a_working_actor_drains_its_inbox() -> None:
    """Draining takes all that was sent, in order, lets waiting senders go on, and replies past the mailbox."""
    worker = Worker()
    async with Supervisor() as supervisor, trio.open_nursery() as nursery:
        ref = await supervisor.start(ChildSpec("worker", lambda: worker, capacity=1))
        work = await ref.request("work")
        await wait_all_tasks_blocked()
        answers: list[list[str]] = []

        async def ask() -> None:
            answers.append(await ref.ask("and you?"))

        for call in (partial(ref.tell, "by the way"), ask, partial(ref.tell, "by the way")):
            nursery.start_soon(call)
            await wait_all_tasks_blocked()
        assert worker.inbox.waiting == 3
        worker.step.set()
        assert await work.result() == ["work", "by the way", "and you?", "by the way"]
    assert answers == [["fine"]]


async def test_a_drained_question_never_answered_fails() -> None:
    """Who asked something that was drained and not answered gets ActorFailed; the actor lives on (R55)."""
    worker = Worker()
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("worker", lambda: worker))
        work = await ref.request("work")
        ignored = await ref.request("ignored")
        await wait_all_tasks_blocked()
        worker.step.set()
        with pytest.raises(ActorFailed) as failed:
            await ignored.result()
        assert isinstance(failed.value.cause, Unanswered)
        assert await work.result() == ["work", "ignored"]
        assert await ref.ask("still there") == ["still there"]


async def test_what_was_drained_shares_the_fate_of_the_work() -> None:
    """A crash or cancel also settles the drained questions that have no answer yet."""
    drained: list[Envelope[str, None]] = []

    class Drainer(Actor[str, None]):
        async def handle(self, message: str) -> None:
            await trio.testing.wait_all_tasks_blocked()
            drained.extend(self.inbox.drain())
            if message == "crash":
                raise ValueError("with an open question")
            await trio.sleep_forever()

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("drainer", Drainer))
        crash, question = await ref.request("crash"), await ref.request("why?")
        for reply in (crash, question):
            with pytest.raises(ActorFailed, match="open question"):
                await reply.result()
        ref = await supervisor.start(ChildSpec("drainer", Drainer))
        wait, question = await ref.request("wait"), await ref.request("why?")
        await wait_all_tasks_blocked()
        ref.cancel()
        for reply in (wait, question):
            with pytest.raises(ActorStopped) as stopped:
                await reply.result()
            assert stopped.value.began
    with pytest.raises(AlreadyAnswered):
        drained[-1].reply(None)


async def test_an_inbox_is_drained_only_while_a_message_is_in_work() -> None:
    """Outside a message draining is refused: nobody would see to the answers."""
    worker = Worker()
    async with Supervisor() as supervisor:
        await supervisor.start(ChildSpec("worker", lambda: worker))
        with pytest.raises(RuntimeError, match="while a message is in work"):
            worker.inbox.drain()


async def test_an_actor_can_end_itself() -> None:
    """An actor that closes its inbox ends after what it has accepted."""

    class Once(Actor[int, int]):
        async def handle(self, message: int) -> int:
            self.inbox.close("served once")
            return message

    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("once", Once))
        assert await ref.ask(1) == 1
        assert (await ref.wait_ended()).reason == "served once"


async def test_references_to_the_same_actor_are_equal() -> None:
    """References are equal exactly if they lead to the same actor."""
    worker = Worker()
    async with Supervisor() as supervisor:
        ref = await supervisor.start(ChildSpec("worker", lambda: worker))
        other = await supervisor.start(ChildSpec("double", lambda: double))
        assert {ref, worker.inbox.ref} == {ref}
        assert ref != other
        assert "worker: serving" in repr(ref)


async def test_a_wide_reference_serves_where_a_narrow_one_is_wanted() -> None:
    """A reference that takes more and answers less is accepted where less is sent and more is allowed for."""

    async def describe(thing: object) -> str:
        return repr(thing)

    async def use(ref: ActorRef[int, str | None]) -> str | None:
        return await ref.ask(5)

    async with Supervisor() as supervisor:
        assert await use(await supervisor.start(ChildSpec("describe", lambda: describe))) == "5"


@pytest.mark.parametrize("bad", [0, -1])
def test_a_mailbox_holds_at_least_one_message(bad: int) -> None:
    """A child with no room for a message, a path for a name, or negative grace is refused when specified."""
    with pytest.raises(ValueError):
        ChildSpec("double", lambda: double, capacity=bad)
    with pytest.raises(ValueError):
        ChildSpec("a/b", lambda: double)
    with pytest.raises(ValueError):
        ChildSpec("double", lambda: double, grace=-math.inf)
