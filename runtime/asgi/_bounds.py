"""What a client may ask of the server's patience and memory."""

from __future__ import annotations

import attrs


@attrs.frozen
class Bounds:
    """Times in seconds, sizes in bytes; an application's own time is not bounded here."""

    head: float = 10.0
    """For the whole head of a request, from its first byte on."""
    idle: float = 60.0
    """Between two requests of a connection."""
    body: float = 30.0
    """For each next piece of a request's body."""
    send: float = 30.0
    """For the client to take each piece of a response."""
    linger: float = 2.0
    """To read what nobody wants any more, so that the client sees the answer and not a broken connection."""
    most_head: int = 64 * 1024
    most_body: int = 8 * 1024 * 1024
    most_ahead: int = 64 * 1024
    """Of the next requests, while one is being answered."""
    connections: int = 200
