"""Lines as they come in on a descriptor, for whoever waits for them: a task, or a program with nothing else to do."""

from __future__ import annotations

import os

import trio


class Keyboard:
    """Lines of a terminal or a pipe. No thread waits for them, so none is left behind when nobody wants them any more.

    What has been read and was not asked for yet stays for the next who asks.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b""

    async def line(self) -> str | None:
        """The next line without its end, None at the end of the input. A cancelled call loses nothing.

        What the input ends with is a line as well.
        """
        while b"\n" not in self._buffer:
            try:
                await trio.lowlevel.wait_readable(self._descriptor)
            except PermissionError:  # a file, which never has to be waited for
                await trio.lowlevel.checkpoint()
            if not self._read():
                return self._rest()
        return self._first()

    def next(self) -> str | None:
        """The same where nothing else is to be done meanwhile."""
        while b"\n" not in self._buffer:
            if not self._read():
                return self._rest()
        return self._first()

    def _read(self) -> bool:
        data = os.read(self._descriptor, 65_536)
        self._buffer += data
        return bool(data)

    def _first(self) -> str:
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    def _rest(self) -> str | None:
        rest, self._buffer = self._buffer, b""
        return rest.decode(errors="replace") if rest else None
