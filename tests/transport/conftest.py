"""What the tests of the transport share."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest
import trio


class _CancelAtStep(trio.abc.Instrument):
    """Cancels a scope when all tasks together have made so many steps."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._scope = scope
        self._left = step

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count."""
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


@contextmanager
def _cancelled_at(step: int) -> Generator[None]:
    with trio.CancelScope() as scope:
        instrument = _CancelAtStep(scope, step)
        trio.lowlevel.add_instrument(instrument)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(instrument)


@pytest.fixture
def cancelled_at() -> Callable[[int], AbstractContextManager[None]]:
    """`with cancelled_at(n):` cancels its block at the n-th step of any task, if it gets so far."""
    return _cancelled_at
