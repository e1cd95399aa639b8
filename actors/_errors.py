"""What can go wrong between actors, one class for each thing the caller can do about it."""

from collections.abc import Sequence


class ActorError(Exception):
    """Anything the actor kernel raises on its own account."""


class ActorFailed(ActorError):
    """The actor raised while it worked on this message, or while it started.

    `cause` is the actor's own exception (also `__cause__`), `path` names the actor. The failure has been
    reported; whether the actor comes back is its supervisor's decision.
    """

    def __init__(self, path: str, cause: BaseException) -> None:
        super().__init__(f"{path} failed: {type(cause).__name__}: {cause}")
        self.path = path
        self.cause = cause
        self.__cause__ = cause


class ActorStopped(ActorError):
    """The actor ended before it answered.

    With `began` false the message was never looked at and may be sent to somebody else; with `began` true the
    work was cut short and part of it may be done.
    """

    def __init__(self, path: str, reason: str, *, began: bool = False) -> None:
        super().__init__(f"{path} has stopped ({reason}); the message was {'cut short' if began else 'not begun'}")
        self.path = path
        self.reason = reason
        self.began = began


class WaitCycle(ActorError):
    """This wait was refused: the actor waited for is itself waiting, at some remove, for the caller.

    `cycle` names everyone in it, in order; the first and the last are the caller. Nothing was sent.
    """

    def __init__(self, cycle: Sequence[str]) -> None:
        first, *rest = cycle
        super().__init__(
            f"refused, nobody in this circle could go on: {first} would wait for {', which waits for '.join(rest)}"
        )
        self.cycle = tuple(cycle)


class MailboxFull(ActorError):
    """`tell_nowait` found no place in the mailbox; nothing was sent. Use `tell` to wait for one."""

    def __init__(self, path: str, capacity: int) -> None:
        super().__init__(f"the mailbox of {path} is full ({capacity} messages)")
        self.path = path
        self.capacity = capacity


class Unanswered(ActorError):
    """The cause of an `ActorFailed`: the actor took the message out of its inbox and never replied to it."""


class AlreadyAnswered(ActorError):
    """A second reply to the same envelope; the first one stands."""


class ControlRefused(ActorError):
    """The actor has no answer to this control signal."""

    def __init__(self, path: str, signal: object) -> None:
        super().__init__(f"{path} does not take the control signal {signal!r}")
        self.path = path
        self.signal = signal


class CleanupCut(ActorError):
    """The actor's lifespan did not end within its grace and was cancelled."""

    def __init__(self, path: str, grace: float) -> None:
        super().__init__(f"the clean-up of {path} was cut off after its grace of {grace:g} s")
        self.path = path
        self.grace = grace


class NameTaken(ActorError):
    """A living child of this supervisor already has that name."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is already a {path}; wait for its end or choose another name")
        self.path = path


class SupervisorClosed(ActorError):
    """The supervisor's block has been left, or not been entered; it starts nobody."""


class RestartLimitReached(ActorError):
    """A child crashed more often than its supervisor's intensity allows; the last crash is `__cause__`."""

    def __init__(self, path: str, restarts: int, period: float) -> None:
        super().__init__(f"{path} crashed again after {restarts} restarts within {period:g} s; giving up")
        self.path = path
        self.restarts = restarts
        self.period = period
