"""The cell of an actor: its identity and mailbox, which outlast each incarnation of the actor in it."""

from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum, IntEnum

import trio

from ._errors import ActorFailed, ActorStopped, Unanswered
from ._events import Dropped, Ended, Event
from ._mailbox import AnEnvelope, Mailbox
from ._waits import Node

current: ContextVar[Node | None] = ContextVar("current", default=None)
"""On whose behalf the running task waits. Tasks started while a message is handled inherit it."""


class Phase(Enum):
    """Where an actor is in its life."""

    STARTING = "starting"
    SERVING = "serving"
    CLEANING_UP = "cleaning up"
    DOWN = "waiting for its restart"
    ENDED = "ended"


class Leaving(IntEnum):
    """Why an incarnation is to end; a higher reason overrides a lower one."""

    NO = 0
    FOR_RESTART = 1
    STOPPED = 2
    CANCELLED = 3


class Cell(Mailbox):
    """What references to an actor point at, in all its incarnations and after its end.

    It lets go of the actor and of its supervisor at the end, so that a reference keeps neither alive.
    """

    __slots__ = (
        "_idle",
        "control",
        "drained",
        "emit",
        "ended",
        "in_work",
        "leaving",
        "monitors",
        "phase",
        "reason",
        "restarts",
        "scope",
        "told",
    )

    def __init__(self, path: str, capacity: int, emit: Callable[[Event], None]) -> None:
        super().__init__(path, capacity)
        self.emit: Callable[[Event], None] | None = emit
        self.phase = Phase.STARTING
        self.restarts = 0
        self.control: Callable[[object], object] | None = None
        self.scope: trio.CancelScope | None = None
        self.in_work: AnEnvelope | None = None
        self.drained: list[AnEnvelope] | None = None
        self.told = False
        self.leaving = Leaving.NO
        self.reason = ""
        self.ended: Ended | None = None
        self.monitors: list[Callable[[Ended], None]] | None = None
        self._idle: trio.Event | None = None

    @property
    def is_idle(self) -> bool:
        """Nothing in work, nothing waiting."""
        return self.in_work is None and not self._queue and not self._line

    async def wait_idle(self) -> None:
        """Return when nothing is in work or waiting, or the actor has ended."""
        while not self.is_idle:
            if self._idle is None or self._idle.is_set():
                self._idle = trio.Event()
            await self._idle.wait()

    def leave(self, why: Leaving, reason: str) -> None:
        """Make the present incarnation end: at once, or for STOPPED, after what has been accepted."""
        if self.phase is Phase.ENDED or why <= self.leaving:
            return
        self.leaving = why
        self.reason = reason
        if why is Leaving.STOPPED:
            self.close(reason)
        elif self.scope is not None:
            self.scope.cancel()

    def answer(self, envelope: AnEnvelope, value: object) -> None:
        """End the message in work with a value, and see to what it drained and left unanswered."""
        self.in_work = None
        envelope.settle(value)
        if self.drained is not None:
            drained, self.drained = self.drained, None
            for other in drained:
                if not other.is_settled:
                    cause = Unanswered("the message was taken out of the inbox and never replied to")
                    other.fail(ActorFailed(self.path, cause))
        if self._idle is not None and self.is_idle:
            self._idle.set()

    def abandon(self, error: BaseException | None) -> None:
        """Settle what was begun and now will not be finished; note in `told` if an asker heard of the error."""
        begun = [envelope for envelope in (self.in_work, *(self.drained or ())) if envelope is not None]
        self.in_work = self.drained = None
        for envelope in begun:
            if envelope.is_settled:
                continue
            if error is not None:
                self.told = self.told or envelope.wants_reply
                envelope.fail(ActorFailed(self.path, error))
            else:
                envelope.fail(ActorStopped(self.path, self.reason, began=True))
                if not envelope.wants_reply and self.emit is not None:
                    self.emit(Dropped(self.path, envelope.message, began=True))
        if self._idle is not None and self.is_idle:
            self._idle.set()

    def finish(self, ended: Ended, error: BaseException | None) -> None:
        """End for good: refuse everything left and let go of whatever could be kept alive."""
        emit, self.emit = self.emit, None
        self.phase = Phase.ENDED
        self.ended = ended
        self.control = self.scope = None
        self.close(ended.reason)
        for envelope in self.drain():
            refusal = self.refusal()
            refusal.__cause__ = error
            envelope.fail(refusal)
            if not envelope.wants_reply and emit is not None:
                emit(Dropped(self.path, envelope.message, began=False))
        if self._idle is not None:
            self._idle.set()
