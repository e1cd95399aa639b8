"""What a supervisor tells its observers: facts about its children, each said once, when it happens."""

from collections.abc import Callable
from enum import Enum

import attrs


class How(Enum):
    """The ways an actor can end."""

    STOPPED = "stopped"
    CANCELLED = "cancelled"
    CRASHED = "crashed"


@attrs.frozen
class Started:
    """The actor serves its mailbox from now on, for the first time or after `restarts` restarts."""

    path: str
    restarts: int


@attrs.frozen
class Crashed:
    """The actor raised `error`; a `Started` (with one more restart) or an `Ended` follows.

    Whoever keeps `error` keeps its traceback, and with that the actor: note its text instead.
    """

    path: str
    error: BaseException


@attrs.frozen
class Dropped:
    """A told message that will not be handled, or whose handling was cut short (`began`)."""

    path: str
    message: object
    began: bool


@attrs.frozen
class Ended:
    """The actor is gone for good. `reason` is text, so that nothing of the actor is kept alive by it."""

    path: str
    how: How
    reason: str


Event = Started | Crashed | Dropped | Ended

Observer = Callable[[Event], None]
"""Called synchronously, in order. What it raises ends the supervisor that called it."""
