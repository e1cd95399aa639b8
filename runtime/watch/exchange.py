"""What a client and a run say to each other, whatever loop the client runs on: the place, requests, answers, lines."""

from __future__ import annotations

import json
from typing import Any, cast

import attrs

from runtime.errors import ElencoError, UsageError
from runtime.journal.folder import RunFolder
from runtime.journal.lock import is_owned
from runtime.journal.rows import encode_json
from runtime.messages import JsonObject


class NotRunning(ElencoError):
    """No process serves this run: nothing was sent."""


class Disconnected(ElencoError):
    """The run went away before it answered: whether the command took effect its journal tells."""


@attrs.frozen
class Place:
    """Where a live run is served, and the token commands must carry."""

    socket: str
    token: str = attrs.field(repr=False)


def place_of(folder: RunFolder) -> Place:
    """Raises NotRunning. Blocks."""
    try:
        found: Any = json.loads(folder.control.read_text())
        return Place(str(found["socket"]), str(found["token"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise not_running(folder) from error


def not_running(folder: RunFolder) -> NotRunning:
    if is_owned(folder.lock):
        return NotRunning(f"run {folder.id} is being started or ended by its process; try again in a moment")
    return NotRunning(f"no process works on run {folder.id}")


def request(number: int, token: str, body: JsonObject) -> bytes:
    """A request as one line."""
    return encode_json({"re": number, "token": token, **body}).encode("ascii") + b"\n"


def result_of(line: bytes | None) -> JsonObject:
    """What an answer tells, None being the end of the connection. Raises UsageError, ElencoError, Disconnected."""
    if line is None:
        raise Disconnected("the run ended, or turned this connection away, before it answered")
    answer: Any = json.loads(line)
    if answer.get("ok"):
        return cast("JsonObject", answer["result"])
    text = str(answer.get("error"))
    raise UsageError(text) if answer.get("usage") else ElencoError(text)


def frame_of(line: bytes) -> dict[str, Any]:
    """An event line decoded. Raises ElencoError for what the run could not tell, or a line that is none."""
    data: Any = json.loads(line)
    if not isinstance(data, dict):
        raise ElencoError("the run sent a line that is no event")
    frame = cast("dict[str, Any]", data)
    if "error" in frame and "v" not in frame:
        raise ElencoError(str(frame["error"]))
    return frame


@attrs.define(eq=False)
class LineBuffer:
    """Bytes as they come in, lines as they go out."""

    data: bytearray = attrs.Factory(bytearray)
    _looked_at: int = 0

    def feed(self, data: bytes) -> None:
        self.data += data

    def take(self) -> bytes | None:
        """The next line without its end, None where it is not complete yet."""
        end = self.data.find(b"\n", self._looked_at)
        if end < 0:
            self._looked_at = len(self.data)
            return None
        found = bytes(self.data[:end])
        del self.data[: end + 1]
        self._looked_at = 0
        return found
