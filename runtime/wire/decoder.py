"""From a response to a reply: bytes in any cut go in, deltas come out, and at the end one Reply or one ProviderError.

A response says what it is in its status and content type, and neither is to be trusted: errors come as JSON under
HTTP 200, whole replies as JSON although a stream was asked for, streams with a wrong type or none. So a body that is
not announced as an event stream is judged by its first character.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from runtime.model import Delta, Reply
from runtime.shapes import is_object

from .assembly import Assembly
from .failures import error_object, http_failure, protocol, truncated
from .sse import EventStream

EVENT_LIMIT = 16 << 20
"""Bytes of one event of a stream, its lines together."""
BODY_LIMIT = 128 << 20
"""Bytes of one body, uncompressed: a long reply takes some 700 for each of its 100,000 tokens."""
TEXT_LIMIT = 32 << 20
"""Characters a reply may stream, of text, reasoning and arguments together."""
_HEAD_LIMIT = 1 << 20
_BOM = b"\xef\xbb\xbf"


class Decoder:
    """The reader of one response. Nothing is read ahead: feed it, then close it, whatever ended the body."""

    def __init__(self, assembly: Assembly, status: int, headers: Mapping[str, str], now: float | None = None) -> None:
        self._assembly = assembly
        self._status = status
        self._headers = headers
        self._now = now
        self._events = EventStream()
        self._body: list[bytes] = []
        self._size = 0
        self._taken = 0
        self._text = 0
        self._full = False
        self._kept = True
        failed = not 200 <= status <= 299
        streams = "event-stream" in headers.get("content-type", "").lower()
        self._streaming: bool | None = False if failed else (True if streams else None)
        self._failed = failed

    @property
    def done(self) -> bool:
        """Whether the reply (or the error) is complete: the rest of the body changes nothing."""
        return self._assembly.done

    @property
    def full(self) -> bool:
        """Whether nothing more is taken in: the body is larger than any reply. Its connection is to be closed."""
        return self._full

    def feed(self, data: bytes) -> list[Delta]:
        """Take the next bytes of the body in; what can be shown of them comes back. Never raises."""
        out: list[Delta] = []
        if self._full:
            return out
        self._taken += len(data)
        if self._streaming is None:
            start = (b"".join(self._body) + data).removeprefix(_BOM).lstrip()
            if start and not _BOM.startswith(start):
                self._streaming = start[:1] not in b"{[<"
                if self._streaming:
                    held = b"".join(self._body)
                    self._body.clear()
                    data = held + data
        if self._kept and (self._streaming is not True or self._size < _HEAD_LIMIT):
            # Of a stream only its head, until the first event shows that it is one.
            self._body.append(data)
            self._size += len(data)
        if self._streaming:
            self._take(data, out)
            self._text += sum(len(delta.text) for delta in out)
        self._check_size()
        return out

    def close(self) -> Reply:
        """The reply, now that no more bytes will come: the body ended, or the connection broke.

        Raises ProviderError: what the server reported, or `truncated` when the wire's own end is missing.
        """
        body = b"".join(self._body)
        if self._failed:
            if self._size > _HEAD_LIMIT:
                body = body[:_HEAD_LIMIT]
            raise http_failure(self._status, self._headers, body, now=self._now)
        if self._full:
            return self._assembly.finish()
        if self._streaming:
            self._finish_stream()
            if self._kept:
                self._take_json(body)  # labelled a stream, and no event in it
        elif body.strip():
            self._take_body(body)
        return self._assembly.finish()

    def _check_size(self) -> None:
        """Take in no more of what grows without an end, and let go of what is held of it."""
        if self._failed:
            self._full = self._size > _HEAD_LIMIT  # What it says is in its beginning.
            return
        if self._streaming is None and self._size > _HEAD_LIMIT:
            what = f"the body begins with more than {_HEAD_LIMIT >> 20} MB of blanks"
        elif self._streaming and self._events.pending > EVENT_LIMIT:
            what = f"one event of the stream is larger than {EVENT_LIMIT >> 20} MB"
        elif self._taken > BODY_LIMIT or self._text > TEXT_LIMIT:
            what = f"the reply is larger than {(BODY_LIMIT if self._taken > BODY_LIMIT else TEXT_LIMIT) >> 20} MB"
        else:
            return
        self._full = True
        self._body.clear()
        self._events = EventStream()
        self._assembly.refuse(protocol(f"{what}; given up", retryable=False))

    def _take(self, data: bytes, out: list[Delta]) -> None:
        for name, text in self._events.feed(data):
            if self._assembly.done:
                return
            if self._kept:
                self._kept = False
                self._body.clear()
            self._assembly.event(name, text, out)

    def _finish_stream(self) -> None:
        """An event without its closing blank line counts if it is whole JSON, else it was cut off."""
        out: list[Delta] = []
        for name, text in self._events.close():
            if self._assembly.done:
                return
            if text.strip() != "[DONE]":
                try:
                    json.loads(text)
                except (ValueError, RecursionError):
                    return
            self._kept = False
            self._assembly.event(name, text, out)

    def _take_body(self, body: bytes) -> None:
        if self._take_json(body):
            return
        stripped = body.removeprefix(_BOM).lstrip()
        if stripped.startswith(b"<"):
            self._assembly.error = protocol(
                "the server answered with a web page; is the base URL right?", retryable=False
            )
            return
        self._streaming = True
        self._kept = False
        self._take(body, [])
        self._finish_stream()
        if self._assembly.error is None and self._assembly.fault() is not None:
            self._assembly.error = (
                truncated("the body ended in the middle of its JSON")
                if stripped.startswith((b"{", b"["))
                else protocol("the body is neither JSON nor an event stream", retryable=False)
            )

    def _take_json(self, body: bytes) -> bool:
        """Whether the body is one JSON text, which is then taken for a reply or an error."""
        try:
            value = json.loads(body.removeprefix(_BOM))
        except (ValueError, RecursionError):
            return False
        if is_object(value) and self._assembly.whole(value, []):
            return True
        error = error_object(value)
        if error is not None:
            self._assembly.fail(error)
        else:
            self._assembly.error = protocol("the body is JSON but no reply of this wire", retryable=False)
        return True
