"""The dashboard's process: a socket on 127.0.0.1, uvicorn behind it, and an end in a second whatever clients do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Callable, Generator

import attrs

from runtime.errors import ElencoError
from runtime.journal.folder import State
from runtime.signals import ending_signals

from .admission import Door
from .shell import Shell
from .site import Desk, site

LOOPBACK = "127.0.0.1"
GRACE = 1
"""Seconds that answers under way have when the server ends."""


@attrs.frozen
class Address:
    """Where the dashboard is; the token stands in the fragment, which no browser sends and no log holds."""

    port: int
    token: str

    @property
    def link(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/#t={self.token}"


def serve(state: State, port: int, told: Callable[[Address], None]) -> None:
    """Serve until a signal ends it; `told` hears the address once requests are answered. Blocks.

    Raises ElencoError where the port is taken.
    """
    listening = _listen(port)
    asyncio.run(_serve(state, listening, told))


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A port that was served a moment ago is taken again at once; two servers at one port stay impossible.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ElencoError(f"cannot listen at port {port}: {error.strerror}; choose another: --port 0") from error
    return listening


async def _serve(state: State, listening: socket.socket, told: Callable[[Address], None]) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            """Ours below: they end the streams first, and do not end the process a second time afterwards."""
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            told(address)

    address = Address(listening.getsockname()[1], secrets.token_urlsafe(32))
    files = await asyncio.to_thread(Shell.found)
    desk = Desk(state, Door(address.port, address.token, frozenset(files.files)), asyncio.Event())
    config = uvicorn.Config(
        site(desk, files),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )
    server = Server(config)

    def stop() -> None:
        # Answers that are cut off from now on are so on purpose: nobody need hear of them.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        desk.stopping.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for each in ending_signals():
        loop.add_signal_handler(each, stop)
    await server.serve([listening])
