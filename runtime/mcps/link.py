"""The standing of one server in a run: there or not and why, its tools, and the one way in which they are called."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
import trio

from runtime.journal.nursery import serving
from runtime.messages import JsonObject
from runtime.tools import Output, ToolContext, ToolError

from .content import output_of, progress_text
from .entry import Entry
from .offer import Offer
from .pacing import Pace
from .resources import read
from .transports import Witness

if TYPE_CHECKING:
    from mcp import Client, MCPError

    from .behind import Behind

T = TypeVar("T")

MOST_MISSED = 2
"""Calls in a row without an answer after which the connection counts as dead."""
TOLD_LINES = 5
"""Lines of a server's last words that an error shows."""
_CLOSED = "Connection closed"
_FORGOTTEN = ("session terminated", "session not found")


@attrs.frozen
class Idle:
    """Nobody has asked for it yet."""


@attrs.frozen
class Starting:
    """It is being connected to."""


@attrs.frozen
class Up:
    """It is there; `witness` is told when it is not any more."""

    client: Client
    witness: Witness


@attrs.frozen
class Down:
    """It was lost, or could not be reached; the next try begins at `until`, on Trio's clock."""

    why: str
    until: float


@attrs.frozen
class Gone:
    """It is not tried again."""

    why: str


State: TypeAlias = Idle | Starting | Up | Down | Gone


@attrs.define(eq=False)
class Calling:
    """A call under way: whom a server may ask back within it, and the scope that ends it when its time is up."""

    peer: Behind | None
    nursery: trio.Nursery
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    _asking: int = attrs.field(init=False, default=0)
    _left: float = attrs.field(init=False, default=math.inf)

    async def within(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work as a part of the call, whose time stands still meanwhile. Raises ToolError.

        It ends with the call: then, and when the one who wants it is cancelled, there is no answer.
        """
        done = trio.Event()
        found: list[T | ToolError] = []
        scope = trio.CancelScope()

        async def run() -> None:
            try:
                with scope:
                    found.append(await work())
            except ToolError as error:
                found.append(error)
            finally:
                done.set()

        self._stand_still()
        try:
            self.nursery.start_soon(run)
            await done.wait()
        finally:
            scope.cancel()
            self._go_on()
        if not found:
            raise ToolError("the call has ended")
        if isinstance(found[0], ToolError):
            raise found[0]
        return found[0]

    def _stand_still(self) -> None:
        if not self._asking:
            self._left = self.scope.deadline - trio.current_time()
            self.scope.deadline = math.inf
        self._asking += 1

    def _go_on(self) -> None:
        self._asking -= 1
        if not self._asking:
            self.scope.deadline = trio.current_time() + self._left


CALLING: ContextVar[Calling | None] = ContextVar("calling", default=None)
"""The call on whose behalf the running task works, where a server asks back within it."""


def nobody(actor: str, call_id: str) -> Behind | None:
    """Who is behind a call that no actor makes."""
    del actor, call_id
    return None


@attrs.define(eq=False)
class Link:
    """One server. Only its owner changes the state; whoever calls reads it.

    `offers` are kept while it is down: an agent's tools do not come and go with a connection. `settled` is set once the
    first try has ended, in whatever way. `peer` tells by actor and call id who is behind a call.
    """

    entry: Entry
    state: State = attrs.Factory(Idle)
    offers: tuple[Offer, ...] = ()
    listed: bool = False
    pace: Pace = Pace()
    settled: trio.Event = attrs.Factory(trio.Event)
    witness: Witness = attrs.Factory(Witness)
    since: float = 0.0
    calls: list[Calling] = attrs.Factory(list[Calling])
    missed: int = 0
    peer: Callable[[str, str], Behind | None] = nobody

    @property
    def name(self) -> str:
        return self.entry.name

    def begin_anew(self) -> None:
        """Forget how it went, so that it is started as if for the first time; its tools are kept until it is up."""
        self.state, self.pace, self.missed = Idle(), Pace(), 0
        self.settled, self.witness = trio.Event(), Witness()

    def outage(self) -> str:
        """Why no call can be made now; "" where one can."""
        match self.state:
            case Up():
                return ""
            case Down(why=why):
                return f"the MCP server {self.name} is down: {why}"
            case Gone(why=why):
                return f"the MCP server {self.name} cannot be used: {why}"
            case Idle() | Starting():
                return f"the MCP server {self.name} is not there yet: it is being connected to"

    def refusal(self) -> str:
        """The same in words for a model, which may call again: with when the server is tried again."""
        if not isinstance(self.state, Down):
            return self.outage()
        wait = math.ceil(self.state.until - trio.current_time())
        return f"{self.outage()}. It is tried again {f'in {wait} s' if wait > 0 else 'now'}"

    def client(self) -> Client:
        """The session to call through. Raises ToolError during an outage."""
        if isinstance(self.state, Up):
            return self.state.client
        raise ToolError(f"{self.refusal()}. Go on without its tools.")

    async def call(self, offer: Offer, arguments: JsonObject, ctx: ToolContext) -> Output:
        """One call of a tool to its output; the server hears when it is cancelled or its time is up.

        Raises ToolError: an outage, at once; no answer in time; a connection lost meanwhile; what the server says.
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:
            ctx.output(progress_text(progress, total, message))

        client = self.client()
        if offer.resources:
            return await read(client, partial(self._bounded, ctx), str(arguments.get("uri") or ""))
        result = await self._bounded(
            ctx, offer.name, lambda: client.call_tool(offer.name, dict(arguments), progress_callback=told)
        )
        return output_of(result)

    async def _bounded(self, ctx: ToolContext, what: str, send: Any) -> JsonObject:
        from mcp import MCPError
        from pydantic import ValidationError

        limit = self.entry.timeout
        async with serving() as nursery:
            calling = Calling(self.peer(ctx.actor, ctx.call_id), nursery)
            calling.scope.deadline = trio.current_time() + limit
            self.calls.append(calling)
            token = CALLING.set(calling)
            try:
                with calling.scope:
                    result = await send()
                    self.missed = 0
                    return dict(result.model_dump(mode="json", by_alias=True, exclude_none=True))
            except MCPError as error:
                raise ToolError(await self._failure(error)) from error
            except ValidationError as error:
                first = error.errors()[0].get("msg")
                raise ToolError(f"{self.name} answered with what is no result: {first}") from error
            except RuntimeError as error:  # so the SDK tells of a result that is not what the tool's schema promises
                why = str(error).split("\n", 1)[0]
                raise ToolError(f"{self.name} answered with a result that its own schema forbids: {why}") from error
            finally:
                CALLING.reset(token)
                self.calls.remove(calling)
        self._miss()
        raise ToolError(
            f"{self.name} did not answer {what} within {limit:g} s and was told to stop; it may have taken effect"
        )

    def _miss(self) -> None:
        self.missed += 1
        if self.missed >= MOST_MISSED and isinstance(self.state, Up):
            self.state.witness.end(f"it did not answer {self.missed} calls in a row")
            self.missed = 0

    async def _failure(self, error: MCPError) -> str:
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        witness = self.witness
        if error.code == CONNECTION_CLOSED and error.message != _CLOSED:
            return f"{self.name} gave no answer that can be taken: {error.message} The call may have taken effect"
        if error.code == CONNECTION_CLOSED:
            with trio.move_on_after(1):  # the connection's end tells more than that it has ended
                await witness.gone.wait()
            why = self.told(witness) if witness.why else error.message
            return f"the MCP server {self.name} was lost during the call: {why}. The call may have taken effect"
        if error.code == REQUEST_TIMEOUT:
            self._miss()
            return f"{self.name} did not answer: {error.message}"
        if error.message.lower() in _FORGOTTEN:
            witness.end("it has forgotten the session")
            return f"{self.name} has forgotten the session and is connected to anew; the call was not made: try again"
        return f"{self.name}: {error.message}" if error.message.strip() else f"{self.name}: error {error.code}"

    def told(self, witness: Witness, why: str = "") -> str:
        """A connection's end in words, with the last lines of its standard error."""
        words = [line for line in list(witness.words)[-TOLD_LINES:] if line.strip()]
        said = f"; its last words:\n{chr(10).join(words)}\n" if words else ""
        return f"{why or witness.why}{said}".rstrip()

    def origin(self) -> Sequence[Calling]:
        """The calls that may be what a server asks back for."""
        calling = CALLING.get()
        return [calling] if calling is not None and calling in self.calls else self.calls
