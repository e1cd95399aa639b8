"""A run's control socket from an asyncio program: its records in batches, and commands to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from runtime.errors import ElencoError, UsageError
from runtime.events import Record
from runtime.journal.folder import RunFolder
from runtime.journal.rows import encode_json
from runtime.messages import JsonObject
from runtime.watch.client import Disconnected, NotRunning
from runtime.watch.commands import Command, command_to_json
from runtime.watch.lines import record_from

CHUNK = 1 << 18


class Link:
    """One connection; a subscription and commands have one each. Made by `connected`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader = reader
        self._writer = writer
        self._token = token
        self._rest = b""
        self._sent = 0

    async def send(self, command: Command) -> JsonObject:
        """Have a command carried out. Raises UsageError, ElencoError, Disconnected."""
        return await self._request(command_to_json(command))

    async def records(self, from_seq: int = 1) -> AsyncGenerator[list[Record]]:
        """The run's records from there on, then live, as many at once as have come. Raises ElencoError."""
        await self._request({"op": "subscribe", "from": from_seq})
        while True:
            *lines, self._rest = self._rest.split(b"\n")
            if lines:
                yield [_record(line) for line in lines]
            data = await self._read()
            if not data:
                return
            self._rest += data

    async def _request(self, body: JsonObject) -> JsonObject:
        self._sent += 1
        try:
            self._writer.write(encode_json({"re": self._sent, "token": self._token, **body}).encode("ascii") + b"\n")
            await self._writer.drain()
        except OSError as error:
            raise Disconnected("the run went away") from error
        while b"\n" not in self._rest:
            data = await self._read()
            if not data:
                raise Disconnected("the run went away before it answered")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        answer: Any = json.loads(line)
        if answer.get("ok"):
            return cast("JsonObject", answer["result"])
        text = str(answer.get("error"))
        raise UsageError(text) if answer.get("usage") else ElencoError(text)

    async def _read(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError:
            return b""


@asynccontextmanager
async def connected(folder: RunFolder) -> AsyncGenerator[Link]:
    """A connection to the process that owns a run. Raises NotRunning."""
    try:
        found: Any = json.loads(folder.control.read_text())
        reader, writer = await asyncio.open_unix_connection(str(found["socket"]), limit=2 * CHUNK)
        token = str(found["token"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotRunning(f"no process works on run {folder.id}") from error
    try:
        yield Link(reader, writer, token)
    finally:
        writer.close()


def _record(line: bytes) -> Record:
    data: Any = json.loads(line)
    if not isinstance(data, dict):
        raise ElencoError("the run sent a line that is no event")
    data = cast("dict[str, Any]", data)
    if "error" in data and "v" not in data:
        raise ElencoError(str(data["error"]))
    try:
        return record_from(data)
    except (ValueError, TypeError) as error:
        raise ElencoError(f"the run sent a line that is no event: {error}") from error
