"""What one actor knows of another: a reference to send by, and the reply that is still to come."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import attrs
import trio
from trio.lowlevel import (
    cancel_shielded_checkpoint,
    checkpoint,
    checkpoint_if_cancelled,
    enable_ki_protection,
    wait_task_rescheduled,
)

from ._cell import Cell, Leaving, Phase, current
from ._errors import ActorStopped, ControlRefused, MailboxFull
from ._events import Ended
from ._mailbox import AnEnvelope, Envelope, Kind, Stage

M_contra = TypeVar("M_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


@attrs.frozen
class Status:
    """A snapshot of an actor, as the kernel sees it."""

    path: str
    phase: Phase
    working: bool
    queued: int
    senders_in_line: int
    restarts: int
    waiting_for: tuple[str, ...]


class ActorRef(Generic[M_contra, R_co]):
    """A reference to an actor that takes M and answers R; it stays valid through restarts and after the end.

    Who is asking is known by itself: a call made while an actor handles a message, also from a task started
    there, counts as that actor's; one made by a background task of its lifespan counts as nobody's. If it has to
    wait for somebody who is himself waiting for the caller, it is refused with WaitCycle instead.
    """

    __slots__ = ("__weakref__", "_cell")

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActorRef) and self._cell is other._cell

    def __hash__(self) -> int:
        return hash(self._cell)

    def __repr__(self) -> str:
        return f"<ActorRef {self.path}: {self._cell.phase.value}>"

    @property
    def path(self) -> str:
        """The names from the outermost actor down to this one, joined by `/`."""
        return self._cell.path

    @enable_ki_protection
    async def ask(self, message: M_contra) -> R_co:
        """Send a message and wait for the reply.

        Raises ActorFailed, ActorStopped, WaitCycle. A cancelled ask does not cancel the work: a message that
        has its place in the mailbox is handled, and its late reply dropped; one that still waits for a place
        is withdrawn.
        """
        await checkpoint_if_cancelled()
        envelope = self._envelope(message, Kind.ASK)
        envelope.enlist()
        self._cell.put(envelope)
        await wait_task_rescheduled(envelope.abort)
        return cast("R_co", envelope.result())

    @enable_ki_protection
    async def tell(self, message: M_contra) -> None:
        """Send a message; wait only while the mailbox is full. Messages of one sender keep their order.

        Raises ActorStopped, WaitCycle. After a cancelled tell the message has not been sent.
        """
        await checkpoint_if_cancelled()
        await self._post(self._envelope(message, Kind.TELL))

    @enable_ki_protection
    async def request(self, message: M_contra) -> "Reply[R_co]":
        """Send a message like `tell`, and leave its reply to be fetched later.

        Raises ActorStopped, WaitCycle. After a cancelled request the message has not been sent.
        """
        await checkpoint_if_cancelled()
        envelope = self._envelope(message, Kind.REQUEST)
        await self._post(envelope)
        return Reply(envelope)

    def tell_nowait(self, message: M_contra) -> None:
        """Send a message if there is a place for it. Raises MailboxFull, ActorStopped."""
        envelope = self._envelope(message, Kind.TELL)
        if not self._cell.has_place:
            raise MailboxFull(self.path, self._cell.capacity)
        self._cell.put(envelope)

    def control(self, signal: object) -> object:
        """Have the actor answer a control signal now, past its mailbox, however busy it is.

        Raises ActorStopped while there is no actor to answer (also between crash and restart), ControlRefused
        if it knows no such signal, and whatever its `control` raises; none of this disturbs the actor.
        """
        cell = self._cell
        if cell.control is not None:
            return cell.control(signal)
        if cell.phase is Phase.SERVING:
            raise ControlRefused(self.path, signal)
        raise ActorStopped(self.path, cell.ended.reason if cell.ended else cell.phase.value)

    def cancel(self, reason: str = "cancelled") -> None:
        """End the actor and everything below it now; it is not restarted. Does nothing after its end.

        What is in work is cut short at its next checkpoint. Use `wait_ended` to wait for the clean-up.
        """
        self._cell.leave(Leaving.CANCELLED, reason)

    async def stop(self, reason: str = "stopped") -> Ended:
        """Accept nothing more, let the actor handle what it has accepted, and wait until it has ended.

        Raises WaitCycle, and then nothing is stopped. A cancelled stop goes on by itself.
        """
        cell = self._cell
        with _Waiting(cell):
            cell.leave(Leaving.STOPPED, reason)
            return await self._end()

    async def wait_ended(self) -> Ended:
        """Wait for the actor's end, restarts not counted, and return how it ended.

        Raises WaitCycle. A cancelled wait leaves nothing behind.
        """
        with _Waiting(self._cell):
            return await self._end()

    async def wait_idle(self) -> None:
        """Wait until the actor has nothing in work and nothing waiting, or has ended.

        Raises WaitCycle. A cancelled wait leaves nothing behind.
        """
        await checkpoint()
        if not self._cell.is_idle:
            with _Waiting(self._cell):
                await self._cell.wait_idle()

    def monitor(self, notify: Callable[[Ended], None]) -> Callable[[], None]:
        """Have `notify` called once, synchronously, when the actor ends, or now if it has; returns the undo.

        What `notify` raises ends the actor's supervisor.
        """
        cell = self._cell
        if cell.ended is not None:
            notify(cell.ended)
            return lambda: None
        monitors = cell.monitors = cell.monitors or []
        monitors.append(notify)

        def undo() -> None:
            if notify in monitors:
                monitors.remove(notify)

        return undo

    def status(self) -> Status:
        """What the actor is doing, without disturbing it."""
        cell = self._cell
        return Status(
            path=cell.path,
            phase=cell.phase,
            working=cell.in_work is not None,
            queued=cell.queued,
            senders_in_line=cell.in_line,
            restarts=cell.restarts,
            waiting_for=cell.waiting_for,
        )

    def _envelope(self, message: object, kind: Kind) -> AnEnvelope:
        cell = self._cell
        if cell.closed is not None:
            raise cell.refusal()
        return Envelope(message, kind, cell, current.get())

    async def _post(self, envelope: AnEnvelope) -> None:
        cell = self._cell
        if cell.has_place:
            cell.put(envelope)
            await cancel_shielded_checkpoint()
        else:
            envelope.enlist()
            cell.put(envelope)
            await wait_task_rescheduled(envelope.abort)
            if envelope.stage is Stage.REFUSED:
                envelope.result()

    async def _end(self) -> Ended:
        cell = self._cell
        if cell.ended is None:
            over = trio.Event()
            undo = self.monitor(lambda _: over.set())
            try:
                await over.wait()
            finally:
                undo()
        else:
            await checkpoint()
        assert cell.ended is not None
        return cell.ended


class Reply(Generic[R_co]):
    """The reply to a `request`: to be fetched by anyone, at any time, any number of times; one task at once."""

    __slots__ = ("__weakref__", "_envelope")

    def __init__(self, envelope: AnEnvelope) -> None:
        self._envelope = envelope

    @property
    def is_there(self) -> bool:
        """Whether `result` would return, or raise, without waiting."""
        return self._envelope.is_settled

    async def result(self) -> R_co:
        """Wait for the reply.

        Raises ActorFailed, ActorStopped, WaitCycle. A cancelled call leaves the reply to be fetched again.
        """
        await self._envelope.wait(current.get())
        return cast("R_co", self._envelope.result())


class _Waiting:
    """While entered, the current actor waits for another one."""

    __slots__ = ("_target", "_waiter")

    def __init__(self, target: Cell) -> None:
        self._target = target
        self._waiter = current.get()

    def __enter__(self) -> None:
        if self._waiter is not None:
            self._waiter.wait_for(self._target)

    def __exit__(self, *_: object) -> None:
        if self._waiter is not None:
            self._waiter.release(self._target)
