"""All MCP servers of one run: started when an agent first names them, held by their owners, closed with the run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs
import trio

from actors import ActorRef, ChildSpec, Crashed, Intensity, Restart, Supervisor
from actors import Event as ActorEvent
from runtime.events import Event, McpConnected, McpLost, Warned
from runtime.messages import JsonObject
from runtime.tools import Tool
from runtime.wire.names import exposed_name

from .entry import Entry
from .link import Down, Gone, Link, Up, nobody
from .offer import Offer
from .owner import CLOSING, Owner, Relist
from .session import Surroundings, leaf
from .tools import tools_of

if TYPE_CHECKING:
    from .behind import Behind

PATIENCE = 2.0
"""Seconds after which it is told that a server is waited for."""
UNLIMITED = Intensity(restarts=1_000_000, period=1.0)
"""Owners pace themselves; the supervisor's own limit would end the run."""


def _nobody(event: Event) -> None:
    del event


def _even() -> float:
    return 0.5


@attrs.define(eq=False)
class Fleet:
    """The servers by name. `version` rises whenever tools of one of them have changed.

    `report` hears what belongs on record, `chance` gives numbers between 0 and 1, `reserved` are the names that tools
    of servers may not take, `peer` tells by actor and call id who is behind a call.
    """

    entries: Mapping[str, Entry] = attrs.field(factory=dict[str, Entry])
    around: Surroundings | None = None
    report: Callable[[Event], None] = _nobody
    chance: Callable[[], float] = _even
    reserved: frozenset[str] = frozenset()
    peer: Callable[[str, str], Behind | None] = nobody
    version: int = 0
    switched: dict[str, bool] = attrs.field(factory=dict[str, bool])
    """What a person has said in this run of servers: true for in, false for out."""
    links: dict[str, Link] = attrs.field(init=False, factory=dict[str, Link])
    _owners: dict[str, ActorRef[Relist, None]] = attrs.field(init=False, factory=dict[str, ActorRef[Relist, None]])
    _supervisor: Supervisor | None = attrs.field(init=False, default=None)
    _over: bool = attrs.field(init=False, default=False)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Serve while the block lasts; when it ends, all connections are closed, within CLOSING seconds or little more.

        Nothing is started here.
        """
        if not self.entries:
            yield
            return
        async with Supervisor(intensity=UNLIMITED, observers=[self._observe]) as supervisor:
            self._supervisor = supervisor
            try:
                yield
            finally:
                self.stop()

    def stop(self) -> None:
        """Begin to close all connections, all at once; nothing more is put on record."""
        self._over = True
        for owner in self._owners.values():
            owner.cancel("the run is over")

    async def ready(self, names: Sequence[str]) -> None:
        """Start those of the servers that nobody has asked for yet, and wait for the first try of each to end.

        A server that cannot be reached is no error here. A cancelled call leaves them being connected to.
        """
        wanted = [self._link(name) for name in dict.fromkeys(names) if name in self.entries]
        for link in wanted:
            if link.name not in self._owners:
                await self._start(link)
        waiting = [link for link in wanted if not link.settled.is_set()]
        if not waiting:
            return
        with trio.move_on_after(PATIENCE):
            await _all_settled(waiting)
            return
        late = ", ".join(link.name for link in waiting if not link.settled.is_set())
        longest = max(link.entry.startup_timeout for link in waiting)
        self._record(Warned(text=f"waiting for the MCP server {late} to start, {longest:g} s at most"))
        await _all_settled(waiting)

    def stands(self, name: str) -> bool:
        """Whether a server is in the run, be it up or down; not one that is disabled or given up."""
        on = self.switched.get(name, not self.entries[name].disabled)
        return on and not isinstance(self._link(name).state, Gone)

    async def switch(self, name: str, *, on: bool) -> None:
        """Take a server out of the run, or bring it in and begin to connect to it, also one that was given up.

        Its tools are others from then on. A cancelled call to bring it in may leave it out.
        """
        link = self._link(name)
        self.switched[name] = on
        self.version += 1
        owner = self._owners.get(name)
        if not on:
            link.witness.end("it was disabled")
            link.state = Gone("it was disabled in this run")
            link.settled.set()
            if owner is not None:
                owner.cancel("disabled")
            return
        if owner is not None:
            await owner.wait_ended()
        if self.switched[name] and self._owners.get(name) is owner:  # else somebody has been quicker
            self._owners.pop(name, None)
            link.begin_anew()
            await self._start(link)

    def tools_of(self, names: Iterable[str], recorded: Mapping[str, Sequence[Offer]] | None = None) -> list[Tool]:
        """The tools of these servers under their names here. A server never seen is taken as `recorded`."""
        links = [
            self._link(name) for name in dict.fromkeys(names) if name in self.entries and self.switched.get(name, True)
        ]
        for link in links:
            if not link.listed and recorded is not None:
                link.offers = tuple(recorded.get(link.name, ()))
        return tools_of(links, self.reserved)

    def missing(self, names: Iterable[str], tool: str) -> str:
        """Why the one of these servers that a tool, going by its name, is of cannot be called; "" where none is."""
        links = (self._link(name) for name in names if name in self.entries and tool.startswith(f"{name}_"))
        return next((refusal for link in links if (refusal := link.refusal())), "")

    def recorded(
        self, tools: Mapping[str, Sequence[str]], shown: Mapping[str, JsonObject]
    ) -> Mapping[str, Sequence[Offer]]:
        """A record's servers with their tools: `tools` by their own names, `shown` what a model saw, by its names."""
        found: dict[str, list[Offer]] = {}
        for server, names in tools.items():
            for name in names:
                spec = shown.get(exposed_name(server, name, self.reserved))
                if spec is not None:
                    offer = Offer(name, spec["description"], spec["parameters"])
                    found.setdefault(server, []).append(offer)
        return found

    def _link(self, name: str) -> Link:
        link = self.links.get(name)
        if link is None:
            link = self.links[name] = Link(self.entries[name], peer=self.peer)
        return link

    async def _start(self, link: Link) -> None:
        if not self.switched.get(link.name, not link.entry.disabled):
            where = "in this run" if link.name in self.switched else f"({link.entry.place})"
            link.state = Gone(f"it is disabled {where}")
            self._told(link)
            link.settled.set()
            return
        assert self._supervisor is not None
        assert self.around is not None
        around = self.around
        spec = ChildSpec(
            link.name,
            lambda: Owner(link, around, self.chance, self._told),
            restart=Restart.ON_CRASH,
            grace=CLOSING + 5,
        )
        self._owners[link.name] = await self._supervisor.start(spec)

    def _told(self, link: Link) -> None:
        """An owner says that its server is up or given up, or that its tools are others."""
        match link.state:
            case Up(witness=witness):
                self.version += 1
                self._record(McpConnected(server=link.name, tools=tuple(offer.name for offer in link.offers)))
                if witness.left_out:
                    lost = ", ".join(witness.left_out)
                    self._record(Warned(text=f"tools of the MCP server {link.name} that are none: {lost}"))
                    witness.left_out.clear()
            case Gone(why=why):
                self._record(McpLost(server=link.name, why=why))
            case _:
                pass

    def _observe(self, event: ActorEvent) -> None:
        """An owner has crashed: its server is down until the next try."""
        if not isinstance(event, Crashed):
            return
        link = self.links[event.path.rpartition("/")[2]]
        if isinstance(link.state, Gone):
            return
        was_up = isinstance(link.state, Up)
        first = link.pace.failures == 0
        lasted = trio.current_time() - link.since if was_up else 0.0
        link.pace = link.pace.after_failure(lasted)
        link.witness.end(leaf(event.error))  # for the calls that were under way
        why = link.told(link.witness, link.witness.why or leaf(event.error))
        link.state = Down(why, trio.current_time() + link.pace.wait(0.5))
        link.settled.set()
        if was_up or first:
            self._record(McpLost(server=link.name, why=why))

    def _record(self, event: Event) -> None:
        if not self._over:
            self.report(event)


async def _all_settled(links: Iterable[Link]) -> None:
    for link in links:
        await link.settled.wait()
