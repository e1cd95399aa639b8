"""A supervisor: a block that starts actors, restarts those that crash, and leaves nobody behind."""

from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context, ContextVar, copy_context
from functools import partial
from types import TracebackType
from typing import Never, Self, TypeVar

import trio

from ._actor import ChildSpec
from ._cell import Cell, Leaving, Phase, current
from ._child import Child
from ._errors import ActorFailed, NameTaken, RestartLimitReached, SupervisorClosed
from ._events import Crashed, Ended, Event, How, Observer, Started
from ._life import bare, live
from ._ref import ActorRef
from ._restart import Intensity, Restart, RestartWindow, Strategy, affected
from ._waits import Node

M = TypeVar("M")
R = TypeVar("R")
T = TypeVar("T")

inherited: ContextVar[tuple[Observer, ...]] = ContextVar("inherited", default=())
"""The observers of the supervisors around the running task's actor."""


class Supervisor:
    """Start actors inside `async with Supervisor(...) as supervisor`; when the block is left, all have ended.

    Leaving the block, in whatever way, cancels the children one after the other, the last one started first;
    each has ended before the next is cancelled. Children do not feel a cancellation around the block: it
    reaches them through this same order. Let them finish beforehand with `wait_idle`, or `ActorRef.stop`.

    A child that crashes while it works for an asker fails that ask. What happens beside depends on its
    `Restart`. ON_CRASH: it and, by the strategy, its siblings are restarted with the same mailboxes; when the
    intensity is used up, the block is cancelled and raises RestartLimitReached. NEVER: it ends; if no asker has
    heard of the error, the block is cancelled and raises ActorFailed, for no error may vanish. Once the block is
    being left, crashes are told to askers and observers only.

    Opened by an actor (in `handle` or `lifespan`), it belongs to that actor: the children's paths begin with the
    actor's, the observers of the supervisors above see them too, and the waits go into the same graph. No
    registry is needed for any of it; context variables carry it.
    """

    def __init__(
        self,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        intensity: Intensity | None = None,
        *,
        observers: Iterable[Observer] = (),
    ) -> None:
        self._strategy = strategy
        self._window = RestartWindow(intensity or Intensity())
        self._own_observers = tuple(observers)
        self._observers: tuple[Observer, ...] = ()
        self._owner: Node | None = None
        self._node = Node("a supervisor")
        self._children: dict[str, Child] = {}
        self._crashed: list[tuple[Child, BaseException]] = []
        self._recovery: trio.CancelScope | None = None
        self._recovered: trio.Event | None = None
        self._failure: Exception | None = None
        self._open = False
        self._context = Context()  # the block's: a restarted child must not inherit, and hold, that of the crash
        self._body = trio.CancelScope()
        self._nursery_block = trio.open_nursery()
        self._nursery: trio.Nursery | None = None

    @property
    def children(self) -> tuple[ActorRef[Never, object], ...]:
        """The living children, in start order."""
        return tuple(ActorRef(child.cell) for child in self._children.values())

    async def start(self, spec: ChildSpec[M, R]) -> ActorRef[M, R]:
        """Start a child and wait until it serves its mailbox, that is, until its lifespan has reached its yield.

        Raises ActorFailed if it crashed on the way, ActorStopped if it was cancelled, NameTaken,
        SupervisorClosed. A cancelled start ends the half-started child before it returns.
        """
        if not self._open:
            raise SupervisorClosed("this supervisor's block is not entered, or already left")
        path = f"{self._owner.path}/{spec.name}" if self._owner is not None else spec.name
        if spec.name in self._children:
            raise NameTaken(path)
        cell = Cell(path, spec.capacity, self._emit)
        child = Child(spec.name, spec.restart, cell, partial(live, cell, spec))
        self._children[spec.name] = child
        waiter = current.get()
        if waiter is not None:
            waiter.hold(cell)
        try:
            await self._launch(child)
        except BaseException:
            cell.leave(Leaving.CANCELLED, "its start was cancelled")
            with trio.CancelScope(shield=True):
                await child.exit()
            raise
        finally:
            if waiter is not None:
                waiter.release(cell)
        if child.launch_error is not None:
            raise ActorFailed(path, child.launch_error)
        if cell.ended is not None:
            raise cell.refusal()
        return ActorRef(cell)

    async def wait_idle(self) -> None:
        """Wait until no child has anything in work or waiting.

        Raises WaitCycle. A cancelled wait leaves nothing behind.
        """
        await trio.lowlevel.checkpoint()
        while busy := [child.cell for child in self._children.values() if not child.cell.is_idle]:
            for cell in busy:
                await ActorRef[Never, object](cell).wait_idle()

    async def __aenter__(self) -> Self:
        if self._nursery is not None:
            raise SupervisorClosed("a supervisor's block can be entered once only")
        self._owner = current.get()
        self._context = copy_context()
        self._observers = inherited.get() + self._own_observers
        self._node.path = (
            f"the supervisor in {self._owner.path}" if self._owner is not None else "the outermost supervisor"
        )
        self._nursery = await self._nursery_block.__aenter__()
        self._body.__enter__()
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open = False
        swallowed = False
        try:
            await self._shut_down()
        finally:
            try:
                swallowed = self._body.__exit__(kind, error, traceback)
            finally:
                await self._nursery_block.__aexit__(None, None, None)
        failure, self._failure = self._failure, None
        if failure is not None:
            if error is None or swallowed or isinstance(error, trio.Cancelled):
                try:
                    raise failure
                finally:
                    del failure, error
            error.add_note(f"meanwhile: {failure}")

    async def _shut_down(self) -> None:
        try:
            with trio.CancelScope(shield=True):
                if self._owner is not None:
                    self._owner.hold(self._node)
                if self._recovery is not None:
                    self._recovery.cancel()
                    assert self._recovered is not None
                    await self._recovered.wait()
                for child in reversed(tuple(self._children.values())):
                    await self._halt(child, Leaving.CANCELLED, "its supervisor's block was left")
        except BaseException:  # Control-C: no time for the order, but the nursery must not wait for anybody
            for child in tuple(self._children.values()):
                child.cell.leave(Leaving.CANCELLED, "its supervisor's block was left in haste")
            raise
        finally:
            for child in tuple(self._children.values()):
                if child.cell.phase is Phase.DOWN:
                    self._end(child, None)
            self._crashed.clear()
            if self._owner is not None:
                self._owner.release(self._node)
                self._owner = None

    async def _launch(self, child: Child) -> None:
        cell = child.cell
        if cell.phase is Phase.DOWN:
            cell.release(self._node)
            cell.restarts += 1
            cell.leaving = Leaving.NO
            cell.told = False
        cell.phase = Phase.STARTING
        cell.scope = trio.CancelScope(shield=True)
        child.launch_error = None
        child.launched = launched = trio.Event()
        self._spawn(partial(self._run, child), cell.path)
        await launched.wait()

    def _spawn(self, function: Callable[[], Awaitable[None]], name: str) -> None:
        nursery = self._nursery
        assert nursery is not None
        self._context.run(lambda: nursery.start_soon(function, name=name))

    async def _run(self, child: Child) -> None:
        inherited.set(self._observers)
        error: BaseException | None = None
        try:
            await child.live(partial(self._serves, child))
        except Exception as crash:  # noqa: BLE001  a supervisor is the place where crashes become decisions
            error = bare(crash)
        except BaseException as crash:
            child.cell.leave(Leaving.CANCELLED, "the program is ending")
            self._exited(child, crash)
            raise
        try:
            self._exited(child, error)
        finally:
            del error  # it holds this frame

    def _serves(self, child: Child) -> None:
        child.cell.phase = Phase.SERVING
        if child.launched is not None:
            child.launched.set()
            child.launched = None
        self._emit(Started(child.cell.path, child.cell.restarts))

    def _exited(self, child: Child, error: BaseException | None) -> None:
        """Decide what becomes of a child whose incarnation is over."""
        cell = child.cell
        cell.scope = cell.control = None
        cell.abandon(error)
        if error is not None:
            self._emit(Crashed(cell.path, error))
        launched, child.launched = child.launched, None
        if launched is not None and cell.leaving is Leaving.NO:
            child.launch_error = error
        if cell.leaving is Leaving.FOR_RESTART:
            self._put_down(child)
        elif cell.leaving is not Leaving.NO or error is None:
            self._end(child, error)
        elif launched is not None:
            if cell.restarts == 0:
                self._end(child, error)
            else:
                self._put_down(child)
        elif child.restart is Restart.NEVER:
            self._end(child, error)
            if not cell.told and self._open:  # while closing it may only miss a sibling that has been stopped
                self._fail(ActorFailed(cell.path, error))
        elif self._open:
            self._put_down(child)
            self._crashed.append((child, error))
            self._recover_soon()
        else:
            self._end(child, error)
        for event in (launched, child.exited):
            if event is not None:
                event.set()
        child.exited = None

    def _put_down(self, child: Child) -> None:
        child.cell.phase = Phase.DOWN
        child.cell.hold(self._node)

    def _end(self, child: Child, error: BaseException | None) -> None:
        cell = child.cell
        if cell.phase is Phase.DOWN:
            cell.release(self._node)
        if error is not None:
            ended = Ended(cell.path, How.CRASHED, f"crashed: {type(error).__name__}: {error}")
        elif cell.leaving is Leaving.CANCELLED:
            ended = Ended(cell.path, How.CANCELLED, cell.reason)
        else:
            ended = Ended(cell.path, How.STOPPED, cell.reason or "stopped")
        del self._children[child.name]
        monitors, cell.monitors = cell.monitors, None
        cell.finish(ended, error)
        for notify in monitors or ():
            self._call(notify, ended)
        self._emit(ended)

    def _recover_soon(self) -> None:
        if self._recovery is None:
            self._recovery = trio.CancelScope(shield=True)
            self._recovered = trio.Event()
            self._spawn(partial(self._recover, self._recovery), "restart")

    async def _recover(self, scope: trio.CancelScope) -> None:
        """Work off the crashes, one restart after the other."""
        current.set(self._node)
        try:
            with scope:
                while self._crashed and self._failure is None:
                    child, error = self._crashed.pop(0)
                    if child.cell.phase is Phase.DOWN:
                        await self._restart_after(child, error)
        finally:
            self._recovery = None
            assert self._recovered is not None
            self._recovered.set()

    async def _restart_after(self, crashed: Child, error: BaseException) -> None:
        if crashed.cell.leaving is not Leaving.NO and crashed.cell.leaving is not Leaving.FOR_RESTART:
            self._end(crashed, None)
            return
        window = self._window.after_failure(trio.current_time())
        if window is None:
            intensity = self._window.intensity
            limit = RestartLimitReached(crashed.cell.path, intensity.restarts, intensity.period)
            limit.__cause__ = error
            self._end(crashed, error)
            self._fail(limit)
            return
        self._window = window
        names = affected(self._strategy, tuple(self._children), crashed.name)
        group = [self._children[name] for name in names]
        for child in reversed(group):
            why = Leaving.FOR_RESTART if child.restart is Restart.ON_CRASH else Leaving.CANCELLED
            await self._halt(child, why, f"{crashed.cell.path} crashed and takes it along")
        for child in group:
            if child.cell.phase is Phase.DOWN:
                await self._relaunch(child)
                if child.launch_error is not None:
                    self._crashed.append((child, child.launch_error))
                    return

    async def _relaunch(self, child: Child) -> None:
        if child.cell.leaving > Leaving.FOR_RESTART:
            self._end(child, None)
            return
        self._node.hold(child.cell)
        try:
            await self._launch(child)
        finally:
            self._node.release(child.cell)

    async def _halt(self, child: Child, why: Leaving, reason: str) -> None:
        """End a child's incarnation and wait for that."""
        cell = child.cell
        if cell.leaving is Leaving.STOPPED:
            why = Leaving.CANCELLED  # its orderly stop has no time left
        cell.leave(why, reason)
        if cell.phase is Phase.DOWN and why is Leaving.CANCELLED:
            self._end(child, None)
        self._node.hold(cell)
        try:
            await child.exit()
        finally:
            self._node.release(cell)

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
            self._body.cancel()

    def _emit(self, event: Event) -> None:
        for observe in self._observers:
            self._call(observe, event)

    def _call(self, notify: Callable[[T], None], fact: T) -> None:
        try:
            notify(fact)
        except Exception as error:  # noqa: BLE001  an observer's fault must not interrupt what it observes
            self._fail(error)
