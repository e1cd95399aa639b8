"""The owner of one server's connection: an actor that connects, holds, notices the loss, and is started again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import attrs
import trio

from actors import Actor, ActorStopped, MailboxFull
from runtime.errors import did_you_mean, first_of
from runtime.journal.nursery import serving

from .answers import Answers
from .link import Down, Gone, Link, Starting, Up
from .session import Surroundings, connected, offers_of, with_resources
from .transports import Unusable, Witness

if TYPE_CHECKING:
    from mcp import Client

CLOSING = 6.0
"""Seconds a connection may take to close; what is left of it then is cut off."""
SETTLING = 0.1
"""Seconds to wait for further changes of a list before it is read again."""
LISTEN_AGAIN = 5.0


class ConnectionLost(Exception):
    """The connection is over and nobody asked for it."""


@attrs.frozen
class Relist:
    """The server says that its tools have changed."""


class Owner(Actor[Relist, None]):
    """One incarnation holds one connection. Losing it is a crash, from which the supervisor starts the next one.

    `told` hears of every change: of the state, and of the tools.
    """

    def __init__(self, link: Link, around: Surroundings, chance: Callable[[], float], told: Callable[[Link], None]):
        self._link = link
        self._around = around
        self._chance = chance
        self._told = told
        self._stopping = False
        self._answers = Answers(link, around.folder, self._changed)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Serve at once and connect meanwhile: nobody has to wait in a mailbox for a server that is down."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._own)
            yield
            self._stopping = True
            if isinstance(self._link.state, Up):
                nursery.cancel_scope.deadline = trio.current_time() + CLOSING
                self._link.state.witness.end("the run is over")
            else:
                nursery.cancel_scope.cancel()

    async def handle(self, message: Relist) -> None:
        """Read the list of tools again."""
        await trio.sleep(SETTLING)
        self.inbox.drain()
        if isinstance(self._link.state, Up):
            await self._list(self._link.state.client)

    async def _own(self) -> None:
        link, entry = self._link, self._link.entry
        if isinstance(link.state, Gone):  # it was disabled while it was lost
            self.inbox.close(link.state.why)
            return
        if link.pace.exhausted:
            why = link.state.why if isinstance(link.state, Down) else "it failed again and again"
            self._give_up(f"{why} (given up after {link.pace.failures} tries)")
            return
        wait = link.pace.wait(self._chance())
        if wait and isinstance(link.state, Down):
            link.state = Down(link.state.why, trio.current_time() + wait)
        await trio.sleep(wait)
        link.state = Starting()
        witness = link.witness = Witness()
        link.since = 0.0
        with trio.CancelScope(deadline=trio.current_time() + entry.startup_timeout) as scope:
            try:
                async with connected(entry, self._around, witness, self._answers) as client:
                    await self._list(client, first=True)
                    scope.deadline = float("inf")
                    self._come_up(client, witness)
                    async with serving() as nursery:
                        nursery.start_soon(self._listen, client)
                        await witness.gone.wait()
                    scope.deadline = trio.current_time() + CLOSING
            except (Unusable, BaseExceptionGroup) as error:
                if (unusable := first_of(error, Unusable)) is None:
                    raise
                self._give_up(str(unusable))
                return
        if not self._stopping:
            raise ConnectionLost(witness.why or f"it did not answer within {entry.startup_timeout:g} s")

    def _come_up(self, client: Client, witness: Witness) -> None:
        link = self._link
        link.state = Up(client, witness)
        link.since = trio.current_time()
        link.missed = 0
        self._told(link)
        link.settled.set()

    def _give_up(self, why: str) -> None:
        self._link.state = Gone(self._link.told(self._link.witness, why))
        self._told(self._link)
        self._link.settled.set()
        self.inbox.close(why)

    async def _list(self, client: Client, *, first: bool = False) -> None:
        from mcp import MCPError
        from pydantic import ValidationError

        link = self._link
        try:
            offers = with_resources(client, await offers_of(client))
        except (MCPError, ValidationError) as error:
            if first:
                raise
            link.witness.left_out.append(f"the new list: {error}")
            offers = link.offers
        if (wanted := link.entry.tools) is not None:
            there = [offer.name for offer in offers]
            for name in wanted:
                if name not in there and first:
                    link.witness.left_out.append(f"{name}: the server has no such tool{did_you_mean(name, there)}")
            offers = tuple(offer for offer in offers if offer.name in wanted)
        changed = offers != link.offers
        link.offers, link.listed = offers, True
        if changed and not first:
            self._told(link)

    def _changed(self) -> None:
        with suppress(MailboxFull, ActorStopped):
            self.inbox.ref.tell_nowait(Relist())

    async def _listen(self, client: Client) -> None:
        """Servers of the newer protocol tell of changes to whoever listens."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed or client.session.discover_result is None:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed()
            except (ListenNotSupportedError, MCPError):
                return
            except (SubscriptionLost, TimeoutError):
                pass
            await trio.sleep(LISTEN_AGAIN)
            self._changed()
