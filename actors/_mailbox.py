"""A bounded mailbox and the envelopes in it; every envelope ends exactly once.

This sits directly on Trio's park-and-reschedule instead of on channels and events: an ask then costs one
suspension on either side, also when it first has to wait for a place.
"""

from collections import deque
from enum import Enum
from typing import Generic, TypeVar, cast

from trio.lowlevel import (
    Abort,
    RaiseCancelT,
    Task,
    checkpoint,
    current_task,
    enable_ki_protection,
    reschedule,
    wait_task_rescheduled,
)

from ._errors import ActorStopped, AlreadyAnswered
from ._waits import Node

M = TypeVar("M")
R = TypeVar("R")


class Kind(Enum):
    """What the sender waits for: a place in the mailbox, the reply, or the place now and the reply later."""

    TELL = "tell"
    ASK = "ask"
    REQUEST = "request"


class Stage(Enum):
    """How far an envelope has come."""

    IN_LINE = "waiting for a place"
    ACCEPTED = "in the mailbox or in work"
    SETTLED = "ended"
    REFUSED = "ended without having been accepted"


class Envelope(Generic[M, R]):
    """A message on its way, and the place where its reply arrives.

    An actor sees one only when it drains its inbox. The kernel settles whatever the actor leaves unanswered.
    """

    __slots__ = ("_box", "_error", "_sender", "_task", "_value", "kind", "message", "stage")

    def __init__(self, message: M, kind: Kind, box: "Mailbox", sender: Node | None) -> None:
        self.message = message
        self.kind = kind
        self.stage = Stage.IN_LINE
        self._box = box
        self._sender = sender
        self._task: Task | None = None
        self._value: R | None = None
        self._error: BaseException | None = None

    @property
    def wants_reply(self) -> bool:
        """Whether the sender wants an answer, be it now or later."""
        return self.kind is not Kind.TELL

    def reply(self, value: R) -> None:
        """Answer a drained message. The reply goes straight to the asker; after a mere tell it goes nowhere.

        Raises AlreadyAnswered.
        """
        if self.kind is not Kind.TELL:
            if self.is_settled:
                raise AlreadyAnswered(f"this message to {self._box.path} already has its answer")
            self.settle(value)

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.stage is Stage.SETTLED or self.stage is Stage.REFUSED

    def settle(self, value: R) -> None:
        """End this envelope with its reply."""
        self._value = value
        self._end(Stage.SETTLED)

    def fail(self, error: BaseException) -> None:
        """End this accepted envelope without a reply."""
        self._error = error
        self._end(Stage.SETTLED)

    def refuse(self, error: BaseException) -> None:
        """End this envelope while its sender still waits for a place."""
        self._error = error
        self._end(Stage.REFUSED)

    def accept(self) -> None:
        """Note that the mailbox has taken this envelope, which is all that some senders wait for."""
        self.stage = Stage.ACCEPTED
        if self._task is not None and self.kind is not Kind.ASK:
            self._wake(self._task)

    def enlist(self) -> None:
        """Tie the current task, about to be parked with `abort`, to this envelope.

        Raises WaitCycle when the sender must not wait for this mailbox.
        """
        if self._task is not None:
            raise RuntimeError("two tasks wait for the same reply")
        if self._sender is not None:
            self._sender.wait_for(self._box)
        self._task = current_task()

    def abort(self, _: RaiseCancelT) -> Abort:
        """Trio's call when the parked task is cancelled: withdraw the envelope if it has no place yet."""
        assert self._task is not None
        self._forget_task()
        if self.stage is Stage.IN_LINE:
            self.stage = Stage.REFUSED
            self._box.withdraw(cast("AnEnvelope", self))
        return Abort.SUCCEEDED

    @enable_ki_protection
    async def wait(self, sender: Node | None) -> None:
        """Park until it is settled. A cancelled wait changes nothing and can be taken up again.

        Raises WaitCycle.
        """
        if self.is_settled:
            await checkpoint()
        else:
            self._sender = sender
            self.enlist()
            await wait_task_rescheduled(self.abort)

    def result(self) -> R:
        """The value it was settled with. Raises the error instead, if that is how it ended."""
        error = self._error
        if error is None:
            return cast("R", self._value)
        if self.kind is not Kind.REQUEST:  # nobody comes back for it, and it must not keep its own traceback alive
            self._error = None
        try:
            raise error
        finally:
            del error

    def _end(self, stage: Stage) -> None:
        assert not self.is_settled
        self.stage = stage
        if self._task is not None:
            self._wake(self._task)

    def _wake(self, task: Task) -> None:
        self._forget_task()
        reschedule(task)

    def _forget_task(self) -> None:
        self._task = None
        if self._sender is not None:
            self._sender.release(self._box)


AnEnvelope = Envelope[object, object]
"""Inside the kernel messages are just objects; their types are known at the rim, to `ActorRef` and `Inbox`."""


class Mailbox(Node):
    """A bounded first-in-first-out queue with a line of senders before it, and one task that takes."""

    __slots__ = ("_line", "_queue", "_taker", "capacity", "closed")

    def __init__(self, path: str, capacity: int) -> None:
        super().__init__(path)
        self.capacity = capacity
        self.closed: str | None = None
        self._queue: deque[AnEnvelope] | None = None  # made for the first message: most mailboxes are empty
        self._line: deque[AnEnvelope] | None = None
        self._taker: Task | None = None

    @property
    def queued(self) -> int:
        """How many messages have been accepted and not been taken."""
        return len(self._queue or ())

    @property
    def in_line(self) -> int:
        """How many senders wait for a place."""
        return len(self._line or ())

    @property
    def has_place(self) -> bool:
        """Whether a message would be accepted without waiting."""
        return len(self._queue or ()) < self.capacity

    def refusal(self) -> ActorStopped:
        """What the sender of a message to a closed mailbox gets."""
        return ActorStopped(self.path, self.closed or "it ended")

    def put(self, envelope: AnEnvelope) -> None:
        """Give it a place, or a place in line."""
        if self._queue is None:
            self._queue = deque()
        if len(self._queue) < self.capacity:  # then nobody is in line: who is gets each place as it falls free
            envelope.stage = Stage.ACCEPTED
            self._queue.append(envelope)
            if self._taker is not None:
                self._rouse(self._taker)
        elif self._line is None:
            self._line = deque((envelope,))
        else:
            self._line.append(envelope)

    async def take(self) -> AnEnvelope | None:
        """The next message, or None when the mailbox is closed and empty. A cancelled take takes nothing."""
        if self._queue:
            await checkpoint()  # a full mailbox must not keep other tasks from running
        while not self._queue:
            if self.closed is not None:
                return None
            await self._doze()
        envelope = self._queue.popleft()
        if self._line:
            self._admit(self._line.popleft())
        elif not self._queue:
            self._queue = None
        return envelope

    def drain(self) -> list[AnEnvelope]:
        """Everything that has been sent, those in line included."""
        drained: list[AnEnvelope] = []
        while self._queue:
            drained.append(self._queue.popleft())
            if self._line:
                self._admit(self._line.popleft())
        return drained

    def close(self, reason: str) -> None:
        """Accept nothing more; those in line are refused, those in the queue stay. The first reason stands."""
        if self.closed is not None:
            return
        self.closed = reason
        line, self._line = self._line, None
        for envelope in line or ():
            envelope.refuse(self.refusal())
        if self._taker is not None:
            self._rouse(self._taker)

    def withdraw(self, envelope: AnEnvelope) -> None:
        """Take an envelope out of the line again."""
        assert self._line is not None
        self._line.remove(envelope)

    def _admit(self, envelope: AnEnvelope) -> None:
        assert self._queue is not None
        self._queue.append(envelope)
        envelope.accept()

    @enable_ki_protection
    async def _doze(self) -> None:
        self._taker = current_task()
        await wait_task_rescheduled(self._stop_dozing)

    def _stop_dozing(self, _: RaiseCancelT) -> Abort:
        self._taker = None
        return Abort.SUCCEEDED

    def _rouse(self, taker: Task) -> None:
        self._taker = None
        reschedule(taker)
