"""When to connect again to a server that was lost, and when to give up: pure, chance and times come as arguments."""

from __future__ import annotations

import attrs

FIRST = 0.5
"""Seconds before the second try; each further wait is twice as long."""
LONGEST = 30.0
STEADY = 20.0
"""Seconds after which a connection counts as a good one: what fails then is a first failure again."""
MOST_FAILURES = 8


@attrs.frozen
class Pace:
    """How a server has done of late: `failures` in a row."""

    failures: int = 0

    def after_failure(self, lasted: float) -> Pace:
        """The pace after a connection that held for `lasted` seconds, 0 for one that was never there."""
        return Pace(1 if lasted >= STEADY else self.failures + 1)

    @property
    def exhausted(self) -> bool:
        """Whether it is not worth another try."""
        return self.failures >= MOST_FAILURES

    def wait(self, chance: float) -> float:
        """Seconds until the next try, `chance` between 0 and 1: nothing at first, then twice as long each time."""
        if not self.failures:
            return 0.0
        return min(LONGEST, FIRST * 2.0 ** (self.failures - 1)) * (0.5 + chance / 2)
