"""What is worked out once for an object that nobody changes any more, such as a tool's schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


class ByIdentity(Generic[Given, Made]):
    """Calls `make` once for each object it is given, equal ones apart; of the last `most` objects it knows the result.

    The objects need be neither hashable nor weakly referable. They are kept alive, so that no other has their identity.
    """

    def __init__(self, make: Callable[[Given], Made], most: int = 512) -> None:
        self._make = make
        self._most = most
        self._known: dict[int, tuple[Given, Made]] = {}

    def __call__(self, given: Given) -> Made:
        found = self._known.get(id(given))
        if found is not None:
            return found[1]
        made = self._make(given)
        while len(self._known) >= self._most:
            del self._known[next(iter(self._known))]
        self._known[id(given)] = (given, made)
        return made
