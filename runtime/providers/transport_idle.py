"""Idle connections: the newest of an origin is taken first, the eldest of all goes first. Pure; every step O(1).

httpx's own pool walks all its connections for every request, and again for each idle one.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

O = TypeVar("O", bound=Hashable)  # noqa: E741 (origin)
C = TypeVar("C", bound=Hashable)  # connection


class IdleConnections(Generic[O, C]):
    """A free list for each origin, with one expiry for all: `expiry` seconds after a connection was put.

    Time is an argument, in seconds of any clock that does not run backwards.
    """

    __slots__ = ("_by_origin", "_expiry", "_order")

    def __init__(self, expiry: float) -> None:
        self._expiry = expiry
        self._order: OrderedDict[C, tuple[O, float]] = OrderedDict()
        self._by_origin: dict[O, deque[C]] = {}

    def __len__(self) -> int:
        return len(self._order)

    def put(self, origin: O, connection: C, now: float) -> None:
        """Add a connection that is not here."""
        self._order[connection] = (origin, now + self._expiry)
        self._by_origin.setdefault(origin, deque()).append(connection)

    def take(self, origin: O) -> C | None:
        """Remove and return the newest connection to `origin`."""
        free = self._by_origin.get(origin)
        if free is None:
            return None
        connection = free.pop()
        if not free:
            del self._by_origin[origin]
        del self._order[connection]
        return connection

    def take_expired(self, now: float) -> C | None:
        """Remove and return the eldest connection if its time is over."""
        for _, expires in self._order.values():
            return self.take_eldest() if expires <= now else None
        return None

    def take_eldest(self) -> C | None:
        """Remove and return the connection that has been here longest."""
        if not self._order:
            return None
        connection, (origin, _) = self._order.popitem(last=False)
        free = self._by_origin[origin]
        free.popleft()  # The eldest of all is the eldest of its origin.
        if not free:
            del self._by_origin[origin]
        return connection
