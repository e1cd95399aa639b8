"""The free list of idle connections against a plain list."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from runtime.providers.transport_idle import IdleConnections

EXPIRY = 10.0
ORIGINS = st.sampled_from(["a", "b", "c"])


class IdleMachine(RuleBasedStateMachine):
    """Idle connections, and the naive way: a list of (origin, connection, expires), eldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.made = 0
        self.idle: IdleConnections[str, int] = IdleConnections(EXPIRY)
        self.model: list[tuple[str, int, float]] = []

    @rule(seconds=st.sampled_from([0.0, 1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    @rule(origin=ORIGINS)
    def put(self, origin: str) -> None:
        """A connection becomes idle."""
        self.made += 1
        self.idle.put(origin, self.made, self.now)
        self.model.append((origin, self.made, self.now + EXPIRY))

    @rule(origin=ORIGINS)
    def take(self, origin: str) -> None:
        """The newest of an origin is taken."""
        mine = [entry for entry in self.model if entry[0] == origin]
        assert (mine[-1][1] if mine else None) == self.idle.take(origin)
        if mine:
            self.model.remove(mine[-1])

    @rule()
    def take_expired(self) -> None:
        """The eldest is taken if its time is over."""
        expected = self.model[0][1] if self.model and self.model[0][2] <= self.now else None
        assert expected == self.idle.take_expired(self.now)
        if expected is not None:
            del self.model[0]

    @rule()
    def take_eldest(self) -> None:
        """The eldest of all is taken."""
        assert (self.model[0][1] if self.model else None) == self.idle.take_eldest()
        del self.model[:1]

    @invariant()
    def it_counts(self) -> None:
        """The number of connections is known."""
        assert len(self.model) == len(self.idle)


TestIdleMachine: Any = IdleMachine.TestCase
TestIdleMachine.settings = settings(max_examples=60, stateful_step_count=40)
