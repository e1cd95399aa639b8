"""One seed: a run lives, is killed, is taken up again and ends, while everything that was promised is checked."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import attrs
import trio
from trio.testing import MockClock

from actors.testing import living_tasks
from runtime.agent import Agent
from runtime.app import LiveRun, Plan, Resumption, open_run
from runtime.errors import ElencoError, JournalError, first_of
from runtime.events import ApprovalDecided, CancelRequested, QuestionAnswered, Record, RunFinished
from runtime.journal.memory import MemoryJournal
from runtime.journal.replay import replay
from runtime.journal.state import RunState
from runtime.limits.budget import Spent
from runtime.outline import RunOptions
from runtime.record import report_to_json
from runtime.report import Report
from runtime.resume import check_resumable, limits_after
from runtime.tools.results import ResultStore

from .adversary import Adversary
from .checks import after_life, at_the_end
from .hands import Hands
from .people import People
from .schedule import Unrest, seeded
from .stage import staged
from .store import Store
from .tally import Tally
from .world import World, draw

MOST_STEPS = 150_000
HORIZON = 3_000 * 3600.0
"""Virtual seconds after which a run that has not ended never will."""
MOST_LIVES = 9


class Broken(AssertionError):
    """A seed for which a promise does not hold; the message has the command that plays it again."""


class Roll(dict[str, Agent]):
    """Who lives, and who has ever lived in this process, with what the ledger said of each at its end."""

    def __init__(self, live: LiveRun) -> None:
        super().__init__()
        self.everyone: dict[str, Agent] = {}
        self.spent: dict[str, Spent] = {}
        self._live = live

    def __setitem__(self, path: str, agent: Agent) -> None:
        super().__setitem__(path, agent)
        self.everyone[path] = agent

    def __delitem__(self, path: str) -> None:
        super().__delitem__(path)
        ledger = self._live.run.gate.ledger
        if ledger.is_open(path):
            self.spent[path] = ledger.spent(path)


@attrs.frozen
class Attended:
    """A live run, those who have ever lived in it, and the people around it."""

    live: LiveRun
    roll: Roll
    people: People


@attrs.frozen
class Life:
    """How one life of the process ended: with a report or an error, suspended (neither), or killed."""

    attended: Attended | None
    store: Store
    report: Report | None
    error: ElencoError | None
    killed: tuple[Record, ...] | None


def simulate(seed: int, tally: Tally | None = None, world: World | None = None) -> Tally:
    """Play a seed to its end. Raises Broken when a promise does not hold.

    Nothing leaves the loop: no thread, socket or process, and no time passes but Trio's mock clock.
    """
    world = world if world is not None else draw(seed)
    tally = tally if tally is not None else Tally()
    play = Play(world, tally)
    try:
        with seeded(seed), tempfile.TemporaryDirectory(prefix="elenco-sim-") as folder:
            trio.run(play.run, Path(folder), clock=MockClock(autojump_threshold=0), instruments=[play.unrest])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Broken(f"{_why(error)}\n  python -m bench.simulate --seed {seed}") from error
    tally.seeds += 1
    tally.steps += play.unrest.steps
    return tally


def _why(error: BaseException) -> str:
    inside: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return _why(inside[0]) if inside else f"{type(error).__name__}: {error}"


def _at_call(number: int, act: Callable[[], None]) -> Callable[[], None]:
    """What does something once: when it is called for the `number`-th time."""
    calls = itertools.count(1)

    def called() -> None:
        if next(calls) == number:
            act()

    return called


def _in_memory(results: ResultStore) -> ResultStore:
    """The same long results in a store that goes to no disk: that takes a thread."""
    kept = ResultStore()
    for handle in results.handles:
        if (text := results.get(handle)) is not None:
            kept.keep(handle, text)
    return kept


class Play:
    """The lives of one run, in one Trio run; effects on the world outlive each."""

    def __init__(self, world: World, tally: Tally) -> None:
        self.world = world
        self.tally = tally
        self.hands = Hands(world)
        self.model = Adversary(world)
        self.scope = trio.CancelScope()
        self.worn_out = False
        self.unrest = Unrest(Random(world.seed), world.unrest, MOST_STEPS, self._wear_out)
        self.told: dict[str, str] = {}
        self.records: tuple[Record, ...] = ()

    def _wear_out(self) -> None:
        self.worn_out = True
        self.scope.cancel()

    async def run(self, folder: Path) -> None:
        tasks = len(living_tasks())
        self.scope.deadline = HORIZON + trio.current_time()
        with self.scope:
            await self._lives(folder)
        assert not self.scope.cancelled_caught, self._stuck()
        assert not self.unrest.broken, "the simulator itself is broken"
        left = living_tasks()
        assert len(left) == tasks, f"left behind: {[task.name for task in left]}"

    def _stuck(self) -> str:
        if self.worn_out:
            return f"the run goes on for ever: {MOST_STEPS} steps of the scheduler"
        return "the run hangs: nothing happens any more, and it has not ended"

    async def _lives(self, folder: Path) -> None:
        records: tuple[Record, ...] = ()
        changes: dict[str, str] = {}
        for number in range(MOST_LIVES):
            state = replay(records)
            resumption = None
            if state.finished is not None and not changes:
                at_the_end(self.world, records, state, self.hands, self.told)  # killed just after its end
                return
            if state.started is not None:
                check_resumable(state, "sim")
                limits = limits_after(state, changes)
                resumption = Resumption(state, limits, changes, confirm_unknown=self.world.confirm)
            else:
                records = ()
            life = await self._life(number, self._plan(folder), records, resumption)
            following = self._next(life, number)
            if following is None:
                return
            records, changes = following
        raise AssertionError(f"{MOST_LIVES} lives were not enough")

    def _plan(self, folder: Path) -> Plan:
        world = self.world
        options = RunOptions(
            agent=world.agents[0].name,
            task="the task of the run",
            workspace=folder,
            limits=world.limits,
            allow=world.allow,
            ask=world.ask,
            deny=world.deny,
            yes=world.yes,
            headless=world.headless,
        )
        return staged(
            options,
            world.agents,
            model="sim/model",
            providers={"sim": self.model},
            price=world.price,
            window=world.window,
            tools=self.hands.tools(),
            humans=world.humans,
        )

    async def _life(self, number: int, plan: Plan, records: tuple[Record, ...], resumption: Resumption | None) -> Life:
        world = self.world
        accident = world.accidents[number] if number < len(world.accidents) else None
        store = Store(records, world.chance("store", number), accident, world.slow_store)
        store.on_waiting = self._nobody_works
        killed: list[tuple[Record, ...]] = []
        attended: Attended | None = None
        report: Report | None = None
        broken: ElencoError | None = None
        try:
            async with trio.open_nursery() as around:
                around.start_soon(store.serve)

                def kill() -> None:
                    if not store.failed:
                        killed.append(store.left(accident.extra if accident is not None else 0))
                        store.die()
                    around.cancel_scope.cancel()

                if accident is not None and accident.kind == "kill":
                    self.unrest.at(self.unrest.steps + accident.at, kill)
                if accident is not None and accident.kind == "effect":
                    self.hands.on_effect = _at_call(accident.at, kill)
                async with open_run(plan, store, "sim", resumption=resumption) as live:
                    live.run.chance = world.chance("jitter", number)
                    live.run.results = _in_memory(live.run.results)
                    roll = live.run.live = Roll(live)
                    async with trio.open_nursery() as nursery:
                        people = People(world, live, self.unrest, nursery)
                        attended = Attended(live, roll, people)
                        nursery.start_soon(people.attend)
                        try:
                            report = await live.report()
                        except ElencoError as error:
                            broken = error
                        await trio.sleep(0.2)  # what nobody waited for is committed, and late words are refused
                        nursery.cancel_scope.cancel()
                around.cancel_scope.cancel()
        except* ElencoError as group:
            broken = broken or first_of(group, ElencoError)
        self.hands.on_effect = lambda: None
        store.flush()  # as a journal does when it is closed
        if attended is not None:
            self.told |= attended.people.told
        return Life(attended, store, report, broken, killed[0] if killed else None)

    def _nobody_works(self) -> None:
        assert not self.model.at_work, "the run is said to wait while a model works"
        assert not self.hands.running, "the run is said to wait while a tool works"

    def _next(self, life: Life, number: int) -> tuple[tuple[Record, ...], dict[str, str]] | None:
        """Check what a life has left; what the next one begins with, None if the run has ended."""
        world, store = self.world, life.store
        self.records = store.records
        self.tally.note("lives")
        too_large = [size for size in self.model.sizes if world.window is not None and size > world.window]
        assert not too_large, f"requests of {too_large} tokens with their output cap, in a window of {world.window}"
        if life.killed is not None:
            self.tally.note("killed")
            return life.killed, {}
        if isinstance(life.error, JournalError):
            self.tally.note("failed stores")
            assert store.failed, f"the store works, and yet: {life.error}"
            return store.left(world.accidents[number].extra), {}
        if store.failed:
            ended = any(isinstance(record.event, RunFinished) for record in store.durable)
            suspended = life.attended is not None and life.attended.live.run.suspending
            assert ended or suspended or life.error, "the store failed and the run did not"
            return store.left(0), {}
        state = replay(store.records)
        assert life.attended is not None
        live, roll, people = life.attended.live, life.attended.roll, life.attended.people
        after_life(live.run, roll.everyone, roll.spent, store, state, people)
        if life.report is None and life.error is None:
            self.tally.note("suspended")
            return self._decided(store, state, number), {}
        at_the_end(world, store.records, state, self.hands, self.told)
        if life.report is not None:
            assert report_to_json(life.report) == state.actors[state.root].report
            if world.more and life.report.status == "stopped" and number < 2:
                self.tally.note("gone on with more")
                return store.records, {name: more for name, more in _MORE.items() if name in state.limits}
        self.tally.read(store.records)
        return None

    def _decided(self, store: Store, state: RunState, number: int) -> tuple[Record, ...]:
        """A run that waits with no process: people decide some of what it waits for, or cancel it in the end."""
        random = self.world.chance("unattended", number)
        journal = MemoryJournal(store.records)
        for request in state.pending_approvals:
            if random.random() < 0.7 or number > 3:
                decision = random.choice(("allow", "allow", "deny"))
                journal.append(ApprovalDecided(actor=request.actor, id=request.id, decision=decision, by="ada"))
        for question in state.pending_questions:
            if random.random() < 0.7 or number > 3:
                journal.append(QuestionAnswered(actor=question.actor, id=question.id, answer="yes", by="ada"))
        if number > 4:
            journal.append(CancelRequested(actor=state.root, by="ada"))
        return journal.records


_MORE = {"max_steps": "+2", "total_steps": "+4", "token_budget": "+9000", "cost_budget": "+0.1", "timeout": "+100"}
