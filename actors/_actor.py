"""What a user writes: an actor, and the specification from which a supervisor makes it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, TypeAlias, TypeVar, cast

import attrs

from ._cell import Cell, Leaving
from ._errors import ControlRefused
from ._mailbox import Envelope, Kind
from ._ref import ActorRef
from ._restart import Restart

M = TypeVar("M")
R = TypeVar("R")


class Actor(ABC, Generic[M, R]):
    """What handles messages of type M, one at a time, and answers with R.

    Subclass it and write `handle`; where no state is needed, a plain `async def` function is an actor too.
    An exception out of `handle` or `lifespan` is a crash: this instance is thrown away, and the supervisor
    decides whether a fresh one takes over the mailbox.
    """

    __slots__ = ("__weakref__", "inbox")

    inbox: "Inbox[M, R]"
    """Set by the kernel before `lifespan` is entered."""

    @abstractmethod
    async def handle(self, message: M) -> R:
        """Work on one message; what is returned is the reply.

        Cancelled when the actor is: the asker then gets ActorStopped. The asker's own cancellation or deadline
        is not felt here.
        """

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Hold what the actor needs while it serves: an @asynccontextmanager that sets up, yields, cleans up.

        Nurseries may be held over the `yield`; if a task in one crashes, so does the actor. Until the yield
        is reached, `start` waits, and a cancelled start cancels this. After the yield, clean-up runs
        uncancelled, however the actor came to its end, but for at most `ChildSpec.grace` seconds.
        """
        return nullcontext()

    def control(self, signal: object) -> object:
        """Answer a control signal, at once and without waiting, whatever the actor is doing.

        It runs in the caller's task, between two checkpoints of the actor's own; what it raises is the
        caller's. Signals and answers are the actor's own protocol: steering, say, or a progress report.
        """
        raise ControlRefused(self.inbox.ref.path, signal)


class Inbox(Generic[M, R]):
    """An actor's own view of its mailbox."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def waiting(self) -> int:
        """How many messages `drain` would take."""
        return self._cell.queued + self._cell.in_line

    @property
    def ref(self) -> ActorRef[M, R]:
        """The reference to this actor that others may be given."""
        return ActorRef(self._cell)

    def drain(self) -> list[Envelope[M, R]]:
        """Take out everything sent so far, in order, to look at it in the middle of the message in work.

        Senders that waited for a place go on. A tell has thereby ended; who asked gets what `reply` is given,
        and ActorFailed if that does not happen before the message in work ends.

        Raises RuntimeError when no message is in work.
        """
        cell = self._cell
        if cell.in_work is None:
            raise RuntimeError("an inbox is drained while a message is in work; `handle` gets the others")
        envelopes = cell.drain()
        for envelope in envelopes:
            if envelope.kind is Kind.TELL:
                envelope.settle(None)
            else:
                cell.drained = cell.drained or []
                cell.drained.append(envelope)
        return cast("list[Envelope[M, R]]", envelopes)

    def close(self, reason: str = "stopped") -> None:
        """End the actor once it has handled what is accepted; refuse anything more. It is not restarted."""
        self._cell.leave(Leaving.STOPPED, reason)


Handler: TypeAlias = Callable[[M], Awaitable[R]]
"""A plain async function as an actor."""


def _one_part_of_a_path(_spec: object, _field: object, name: str) -> None:
    if not name or "/" in name:
        raise ValueError(f"{name!r} cannot be an actor's name: it must be one part of a path, without a slash")


@attrs.frozen
class ChildSpec(Generic[M, R]):
    """How to make an actor, now and after a crash.

    `factory` is called once for each incarnation and returns an `Actor` or a plain async function.
    `capacity` is the mailbox's, in messages; `grace` the clean-up's, in seconds.
    """

    name: str = attrs.field(validator=_one_part_of_a_path)
    factory: Callable[[], "Actor[M, R] | Handler[M, R]"]
    restart: Restart = Restart.NEVER
    capacity: int = attrs.field(default=64, validator=attrs.validators.ge(1))
    grace: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
