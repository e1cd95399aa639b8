"""What the three wires' assemblies have in common: JSON out of events, deltas to show, an error that ends it all."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from runtime.messages import ToolCall
from runtime.model import Delta, DeltaKind, ProviderError, Reply
from runtime.shapes import is_list, is_object

from .arguments import parse_arguments
from .failures import protocol, stream_failure, truncated
from .surrogates import Halves

_raw_decode = json.JSONDecoder().raw_decode


class Assembly(ABC):
    """A reply under construction. `done` means that nothing that follows may change it."""

    wire: str

    def __init__(self, headers: Mapping[str, str], now: float | None = None) -> None:
        self.done = False
        self.error: ProviderError | None = None
        self._headers = headers
        self._now = now
        self._halves: dict[tuple[DeltaKind, int], Halves] = {}
        self._noise = ""

    def event(self, name: str, data: str, out: list[Delta]) -> None:
        """Take one event in; what can be shown of it is appended to `out`."""
        value: Any = None
        try:
            value, end = _raw_decode(data)
        except (ValueError, RecursionError):
            end = -1
        if end == len(data) and is_object(value):  # the ordinary chunk
            self.chunk(name, value, out)
            return
        for chunk in self._chunks(data):
            if self.done:
                return
            self.chunk(name, chunk, out)

    @abstractmethod
    def chunk(self, name: str, chunk: dict[str, Any], out: list[Delta]) -> None:
        """Take one JSON object of the stream in."""

    @abstractmethod
    def whole(self, body: dict[str, Any], out: list[Delta]) -> bool:
        """Take a reply in that came as one JSON body; False if it is none of this wire."""

    @abstractmethod
    def reply(self) -> Reply:
        """What has arrived, as a reply; raises nothing, so `complete` must have been asked."""

    @abstractmethod
    def fault(self) -> ProviderError | None:
        """Why what has arrived is no whole reply, if so."""

    def finish(self) -> Reply:
        """The whole reply. Raises ProviderError, whose `partial` is what had arrived."""
        error = self.error or self.fault()
        if error is None:
            return self.reply()
        self.error = error
        error.partial = self.reply()
        raise error

    def fail(self, error: Any) -> None:
        """End with the error the server reported."""
        self._end(stream_failure(error, self._headers, now=self._now))

    def refuse(self, error: ProviderError) -> None:
        """End with an error of ours, unless the reply had come to its end before."""
        if not self.done:
            self._end(error)

    def _end(self, error: ProviderError) -> None:
        self.error = error
        self.done = True

    def _cut_off(self) -> ProviderError:
        return truncated(
            f"the stream ended before the reply was complete; the server's last words: {self._noise}"
            if self._noise
            else "the stream ended before the reply was complete"
        )

    def _chunks(self, data: str) -> Iterable[dict[str, Any]]:
        """The JSON objects of one event's data: one, or one a line where a host forgot the blank lines."""
        try:
            return self._objects(json.loads(data))
        except (ValueError, RecursionError):
            pass
        found: list[dict[str, Any]] = []
        for line in data.split("\n"):
            try:
                found.extend(self._objects(json.loads(line)))
            except (ValueError, RecursionError):
                if line.lstrip().startswith(("{", "[")):
                    self._end(protocol("the server sent an event that is not JSON", retryable=True))
                    return ()
                self._noise = line.strip()[:200]  # a proxy's plain text: no part of the reply
        return found

    def _objects(self, value: Any) -> list[dict[str, Any]]:
        if is_list(value):
            return [item for item in value if is_object(item)]
        return [value] if is_object(value) else []

    def _show(self, kind: DeltaKind, text: str, index: int, out: list[Delta]) -> None:
        if not text:
            return
        if not text.isascii() or self._halves:
            halves = self._halves.get((kind, index))
            if halves is None:
                halves = self._halves[kind, index] = Halves()
            text = halves.whole(text)
            if not text:
                return
        out.append(Delta(kind, text, index))


def tool_call(
    name: str, pieces: list[str], provider_id: str | None, extra: Mapping[str, Any] | None = None
) -> ToolCall:
    """A call as it stands when no more of it will come. Its id of ours is given later."""
    arguments, raw, error = parse_arguments(pieces)
    return ToolCall("", name, arguments, raw, error, provider_id, dict(extra) if extra else None)


def as_id(value: Any) -> str | None:
    """An id as text; null, "" and what is neither text nor number are none."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
