"""Generated programs: actors with tiny mailboxes that ask, tell, request, delegate, crash and cancel in any mix.

Whatever the program, it comes to its end by itself: on Trio's mock clock a deadlock would jump to the deadline.
"""

from collections import Counter, defaultdict

import attrs
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from actors import (
    ActorFailed,
    ActorRef,
    ActorStopped,
    ChildSpec,
    Dropped,
    Intensity,
    Restart,
    RestartLimitReached,
    Started,
    Strategy,
    Supervisor,
    WaitCycle,
)
from actors.testing import Recorder, Unrest, no_task_survives

ACTORS = 4
TIME_FOR_EVERYTHING = 100_000.0


@attrs.frozen
class Step:
    """One thing to do; `target` is an actor's number, `seconds` a pause before it or its deadline."""

    verb: str
    target: int
    seconds: int


@attrs.frozen
class Message:
    """Who sent it and as which of his messages; `fuel` is how many more generations it may cause."""

    sender: str
    number: int
    fuel: int


@attrs.frozen
class Program:
    """What each actor does for each message, and what each client outside does."""

    scripts: tuple[tuple[Step, ...], ...]
    clients: tuple[tuple[Step, ...], ...]
    capacity: int
    strategy: Strategy
    restart: Restart
    seed: int


def programs(*verbs: str) -> st.SearchStrategy[Program]:
    """Programs made of these verbs."""
    step = st.builds(Step, st.sampled_from(verbs), st.integers(0, ACTORS - 1), st.sampled_from([0, 0, 0, 1, 5]))
    script = st.lists(step, max_size=3).map(tuple)
    return st.builds(
        Program,
        st.tuples(*[script] * ACTORS),
        st.lists(st.lists(step, min_size=1, max_size=4).map(tuple), min_size=1, max_size=4).map(tuple),
        st.integers(1, 2),
        st.sampled_from(Strategy),
        st.sampled_from(Restart),
        st.integers(0, 1000),
    )


class World:
    """Runs one program and keeps account of what it sees."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.unrest = Unrest(program.seed)
        self.recorder = Recorder()
        self.refs: list[ActorRef[Message, tuple[int, Message]]] = []
        self.senders = 0
        self.asked: Counter[Message] = Counter()
        self.settled: Counter[Message] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.told: Counter[Message] = Counter()
        self.begun: Counter[Message] = Counter()
        self.seen: defaultdict[tuple[str, int], list[int]] = defaultdict(list)

    async def run(self) -> None:
        """Start the actors, let the clients loose, wait until all is quiet."""
        with trio.fail_after(TIME_FOR_EVERYTHING):
            async with no_task_survives():
                intensity = Intensity(10_000, 1.0)
                async with Supervisor(self.program.strategy, intensity, observers=[self.recorder]) as supervisor:
                    for number in range(ACTORS):
                        self.refs.append(await supervisor.start(self.spec(number)))
                    async with trio.open_nursery() as nursery:
                        for client in self.program.clients:
                            nursery.start_soon(self.follow, client, 3)
                    await supervisor.wait_idle()
                    await wait_all_tasks_blocked()  # restarts that are on their way
                    assert all(not ref.status().waiting_for for ref in self.refs)

    def spec(self, number: int) -> ChildSpec[Message, tuple[int, Message]]:
        """The specification of one actor."""

        async def handle(message: Message) -> tuple[int, Message]:
            self.begun[message] += 1
            self.seen[message.sender, number].append(message.number)
            await self.unrest()
            if message.fuel:
                await self.follow(self.program.scripts[number], message.fuel - 1)
            return number, message

        return ChildSpec(str(number), lambda: handle, self.program.restart, self.program.capacity)

    async def follow(self, steps: tuple[Step, ...], fuel: int) -> None:
        """Do what a script says, as one sender."""
        self.senders += 1
        sender = f"sender {self.senders}"
        for number, step in enumerate(steps):
            await self.unrest()
            await self.act(step, Message(sender, 10 * number, fuel))

    async def act(self, step: Step, message: Message) -> None:
        """Do one step."""
        ref = self.refs[step.target]
        match step.verb:
            case "ask":
                await self.ask(ref, step, message)
            case "tell":
                await self.tell(ref, message)
            case "hurried ask":
                with trio.move_on_after(step.seconds):
                    await self.ask(ref, step, message)
            case "hurried tell":
                with trio.move_on_after(step.seconds):
                    await self.tell(ref, message)
            case "request":
                await self.request(ref, step, message)
            case "both":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.ask, ref, step, message)
                    nursery.start_soon(
                        self.tell,
                        self.refs[(step.target + 1) % ACTORS],
                        attrs.evolve(message, number=message.number + 1),
                    )
            case "delegate":
                await self.delegate(ref, step, message)
            case "pause":
                await trio.sleep(step.seconds)
            case "crash":
                raise ValueError("as the program says")
            case "cancel":
                ref.cancel()
            case _:
                raise AssertionError(step.verb)

    async def ask(self, ref: ActorRef[Message, tuple[int, Message]], step: Step, message: Message) -> None:
        """Ask, and account for the outcome."""
        self.asked[message] += 1
        try:
            answer = await ref.ask(message)
        except (ActorFailed, ActorStopped, WaitCycle) as error:
            self.outcomes[type(error).__name__] += 1
        except trio.Cancelled:
            self.outcomes["cancelled"] += 1
            raise
        else:
            assert answer == (step.target, message)
            self.outcomes["value"] += 1
        finally:
            self.settled[message] += 1

    async def request(self, ref: ActorRef[Message, tuple[int, Message]], step: Step, message: Message) -> None:
        """Request, pause, fetch, and account for the outcome."""
        self.asked[message] += 1
        try:
            reply = await ref.request(message)
            await trio.sleep(step.seconds)
            assert await reply.result() == (step.target, message)
        except (ActorFailed, ActorStopped, WaitCycle) as error:
            self.outcomes[type(error).__name__] += 1
        finally:
            self.settled[message] += 1

    async def tell(self, ref: ActorRef[Message, tuple[int, Message]], message: Message) -> None:
        """Tell, and note what was accepted."""
        try:
            await ref.tell(message)
        except (ActorStopped, WaitCycle) as error:
            self.outcomes[type(error).__name__] += 1
        else:
            self.told[message] += 1

    async def delegate(self, ref: ActorRef[Message, tuple[int, Message]], step: Step, message: Message) -> None:
        """Have a child of one's own ask and tell another actor."""

        async def child(deputy: Message) -> None:
            await self.ask(ref, step, deputy)
            await self.tell(ref, attrs.evolve(deputy, number=deputy.number + 1))

        async with Supervisor() as supervisor:
            inner = await supervisor.start(ChildSpec("child", lambda: child))
            await inner.ask(message)


def run(program: Program) -> World:
    """Run a program on the mock clock."""
    world = World(program)
    trio.run(world.run, clock=MockClock(autojump_threshold=0))
    return world


@settings(max_examples=100, deadline=None)
@given(programs("ask", "tell", "request", "both", "delegate", "pause"))
def test_without_crashes_every_program_ends_and_every_message_is_handled_once(program: Program) -> None:
    """Asks and tells in any mix end: a circle is refused, all else answered; each told message is handled once."""
    world = run(program)
    assert world.settled == world.asked
    assert set(world.outcomes) <= {"value", "WaitCycle"}
    assert all(world.begun[message] == 1 for message in world.told)
    assert set(world.begun.values()) <= {1}
    for numbers in world.seen.values():
        assert numbers == sorted(numbers)


@settings(max_examples=100, deadline=None)
@given(
    programs("ask", "tell", "request", "both", "delegate", "pause", "hurried ask", "hurried tell", "cancel", "crash")
)
def test_whatever_crashes_every_ask_settles_once_and_every_tell_ends_once(program: Program) -> None:
    """With crashes, restarts, cancels and deadlines every ask settles once and no tell is lost without a word (R55)."""
    world = World(program)
    crashed = False
    try:
        trio.run(world.run, clock=MockClock(autojump_threshold=0))
    except* (ValueError, ActorFailed):  # a client crashed, or a told message of a child without restart
        crashed = True
    assert world.settled == world.asked
    assert set(world.begun.values()) <= {1}
    for numbers in world.seen.values():
        assert numbers == sorted(numbers)
    unbegun = Counter(event.message for event in world.recorder.of(Dropped) if not event.began)
    assert all(count == 1 for count in unbegun.values())
    assert not set(unbegun) & set(world.begun)
    for message in world.told:
        assert crashed or world.begun[message] + unbegun[message] == 1


@attrs.frozen
class Fault:
    """Crash this child after so many seconds."""

    pause: float
    child: int


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.builds(Fault, st.sampled_from([0.0, 0.5, 1.0, 3.0]), st.integers(0, 2)), max_size=12),
    st.sampled_from(Strategy),
    st.integers(0, 3),
)
def test_restarts_follow_strategy_and_intensity(faults: list[Fault], strategy: Strategy, limit: int) -> None:
    """Children restart as a list of all crash times and the strategy's plain meaning say, and the block gives up so."""
    period = 2.0
    recorder = Recorder()

    async def crash(_: None) -> None:
        raise ValueError("as planned")

    async def scenario() -> None:
        async with Supervisor(strategy, Intensity(limit, period), observers=[recorder]) as supervisor:
            refs = [
                await supervisor.start(ChildSpec(str(number), lambda: crash, Restart.ON_CRASH)) for number in range(3)
            ]
            for fault in faults:
                await trio.sleep(fault.pause)
                await refs[fault.child].tell(None)
                await wait_all_tasks_blocked()

    now = 0.0
    times: list[float] = []
    expected = Counter({str(number): 1 for number in range(3)})
    gives_up = False
    for fault in faults:
        now += fault.pause
        if len([time for time in times if now - time < period]) >= limit:
            gives_up = True
            break
        times.append(now)
        match strategy:
            case Strategy.ONE_FOR_ONE:
                expected[str(fault.child)] += 1
            case Strategy.ONE_FOR_ALL:
                expected.update("012")
            case Strategy.REST_FOR_ONE:
                expected.update("012"[fault.child :])

    try:
        trio.run(scenario, clock=MockClock(autojump_threshold=0))
    except RestartLimitReached:
        assert gives_up
    else:
        assert not gives_up
    assert Counter(event.path for event in recorder.of(Started)) == expected
