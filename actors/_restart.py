"""Whom to restart after a crash, and when to give up: OTP's strategies and restart intensity as pure values."""

from collections.abc import Sequence
from enum import Enum

import attrs


class Restart(Enum):
    """What one child wants when it crashes."""

    NEVER = "never"
    ON_CRASH = "on crash"


class Strategy(Enum):
    """Who is restarted together with a crashed child."""

    ONE_FOR_ONE = "one for one"
    ONE_FOR_ALL = "one for all"
    REST_FOR_ONE = "rest for one"


@attrs.frozen
class Intensity:
    """At most `restarts` restarts within any `period` seconds."""

    restarts: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    period: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))


@attrs.frozen
class RestartWindow:
    """The restarts that still count, as times in seconds, oldest first."""

    intensity: Intensity = Intensity()
    times: tuple[float, ...] = ()

    def after_failure(self, now: float) -> "RestartWindow | None":
        """The window with one more restart in it, or None when that would be one too many.

        `now` never goes backwards. A restart counts until it is `period` seconds old.
        """
        recent = tuple(time for time in self.times if now - time < self.intensity.period)
        if len(recent) >= self.intensity.restarts:
            return None
        return attrs.evolve(self, times=(*recent, now))


def affected(strategy: Strategy, order: Sequence[str], crashed: str) -> tuple[str, ...]:
    """The children to restart, in start order; stop them the other way round. `order` is all, as started."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return (crashed,)
        case Strategy.ONE_FOR_ALL:
            return tuple(order)
        case Strategy.REST_FOR_ONE:
            return tuple(order[order.index(crashed) :])
