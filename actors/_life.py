"""One incarnation of an actor: it is made, it holds its lifespan, it serves its mailbox, it ends."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, cast

import trio

from ._actor import Actor, ChildSpec, Handler, Inbox
from ._cell import Cell, Phase, current
from ._errors import CleanupCut
from ._waits import Node

M = TypeVar("M")
R = TypeVar("R")


async def live(cell: Cell, spec: ChildSpec[M, R], started: Callable[[], None]) -> None:
    """Live one incarnation in this task, to its end; raises what it crashed with.

    `started` is called when it begins to serve. Cancelling `cell.scope`, which changes on the way, ends it.
    What was in work may be left to `cell.abandon`.
    """
    assert cell.scope is not None
    current.set(cell)
    made = spec.factory()
    if isinstance(made, Actor):
        actor = cast("Actor[object, object]", made)
        actor.inbox = Inbox(cell)
        cell.control = actor.control
        if type(actor).lifespan is not Actor[object, object].lifespan:
            await _live_within(actor.lifespan(), cell, actor.handle, spec.grace, started)
            return
        handle: Handler[object, object] = actor.handle
    else:
        handle = cast("Handler[object, object]", made)
    started()
    await _serve(cell, cell.scope, handle)


async def _live_within(
    lifespan: AbstractAsyncContextManager[None],
    cell: Cell,
    handle: Handler[object, object],
    grace: float,
    started: Callable[[], None],
) -> None:
    # The lifespan has its own place in the wait-for graph: the actor waits for it at its start and end, but not
    # while it serves, so that a background task of the actor may ask others without standing in its way.
    life = Node(cell.path)
    limit = cell.scope
    assert limit is not None
    cell.hold(life)
    current.set(life)
    clean_up_is_timed = False
    try:
        with limit:
            async with lifespan:
                await trio.lowlevel.checkpoint_if_cancelled()
                cell.release(life)
                current.set(cell)
                cell.scope = trio.CancelScope()
                try:
                    started()
                    await _serve(cell, cell.scope, handle)
                finally:
                    cell.scope = None
                    cell.phase = Phase.CLEANING_UP
                    cell.hold(life)
                    current.set(life)
                    limit.deadline = trio.current_time() + grace
                    clean_up_is_timed = True
    finally:
        cell.release(life)
    if clean_up_is_timed and limit.cancelled_caught:
        raise CleanupCut(cell.path, grace)


async def _serve(cell: Cell, scope: trio.CancelScope, handle: Handler[object, object]) -> None:
    try:
        with scope:
            while (envelope := await cell.take()) is not None:
                cell.in_work = envelope
                cell.answer(envelope, await handle(envelope.message))
                del envelope  # an idle actor holds no message and no reply
    except Exception as error:
        cell.abandon(bare(error))
        raise
    if scope.cancelled_caught:
        cell.abandon(None)


def bare(error: BaseException) -> BaseException:
    """The one exception in an exception group of one, which is all that nurseries added to it."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return bare(group.exceptions[0]) if len(group.exceptions) == 1 else group
    return error
