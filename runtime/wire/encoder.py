"""Requests as bytes, where a growing history costs only what was added to it.

Each message is encoded once. A request's body is what comes before the messages (model, tools, system), the messages'
bytes joined, and what changes from step to step (output cap, tool choice) behind them: so the body of one step begins
with the bytes of the step before, which is what providers' prompt caches go by.
"""

from __future__ import annotations

from functools import lru_cache
from operator import is_

from runtime.messages import Message
from runtime.model import ModelRequest, ToolSpec

from .chat_request import ChatWriter
from .dialects import COMPATIBLE, Dialect
from .encoding import RequestWriter
from .messages_request import MessagesWriter
from .responses_request import ResponsesWriter


class RequestEncoder:
    """The encoder of one actor on one wire; it belongs to one task.

    `provider` is the name before the slash in provider/model: opaque parts of replies from elsewhere are left out.
    `cache_key` groups requests that share a prefix, where the server takes such a key (the actor's path if None).
    """

    def __init__(
        self,
        wire: str,
        dialect: Dialect = COMPATIBLE,
        provider: str | None = None,
        cache_key: str | None = None,
    ) -> None:
        name = provider if provider is not None else dialect.name
        self._writer: RequestWriter
        match wire:
            case "openai-chat":
                self._writer = ChatWriter(dialect, name, cache_key)
            case "openai-responses":
                self._writer = ResponsesWriter(dialect, name, cache_key)
            case "anthropic-messages":
                self._writer = MessagesWriter(dialect, name)
            case _:
                raise ValueError(f"unknown wire {wire!r}")
        self._messages: tuple[Message, ...] = ()
        self._bytes: list[bytes] = []
        self._lost: list[int] = []
        self._left_out = 0
        self._model: str | None = None
        self._system: tuple[str, ...] = ()
        self._tools: tuple[ToolSpec, ...] = ()
        self._head = b""
        self._tail = b""
        self._tail_of: tuple[object, ...] = ()

    @property
    def left_out(self) -> int:
        """Opaque parts (reasoning, signatures) that the last request's history holds and its body does not."""
        return self._left_out

    def leave_out_opaque(self) -> bool:
        """From here on send no opaque part back: the provider has refused one, so the conversation would be stuck.

        False where that changes nothing.
        """
        if not self._writer.replays:
            return False
        self._writer.replays = False
        self._forget(0)
        self._tail_of = ()
        return True

    def leave_out_schema(self) -> bool:
        """From here on ask for no form of the answer but in words: the provider has refused to. False if it did."""
        if not self._writer.asks_for_schema:
            return False
        self._writer.asks_for_schema = False
        self._tail_of = ()
        return True

    def encode(self, request: ModelRequest) -> bytes:
        """The body of the request, JSON in UTF-8."""
        return b"".join(self.pieces(request))

    def pieces(self, request: ModelRequest) -> list[bytes]:
        """The same in pieces, which are shared with the requests before and after it."""
        if request.model != self._model:
            self._forget(0)  # behind a router, what may go back depends on the model
        if (
            request.model != self._model
            or (request.system is not self._system and request.system != self._system)
            or (request.tools is not self._tools and request.tools != self._tools)
        ):
            self._head = _shared(self._writer.head(request))
            self._model, self._system, self._tools = request.model, request.system, request.tools
        self._catch_up(request.messages)
        pieces = self._writer.joined(request, self._bytes.copy())
        # Behind the messages hardly anything changes from step to step.
        made_of = (
            request.model,
            request.tools,
            request.tool_choice,
            request.max_output_tokens,
            request.settings,
            request.output_schema,
            request.actor,
        )
        if made_of != self._tail_of:
            self._tail, self._tail_of = self._writer.tail(request), made_of
        return [self._head, *pieces, self._tail]

    def _catch_up(self, messages: tuple[Message, ...]) -> None:
        """Encode what is new: everything behind the first message that is not the one encoded before."""
        known = min(len(self._messages), len(messages))
        if not all(map(is_, self._messages, messages)):
            known = next(i for i in range(known) if self._messages[i] is not messages[i])
        self._forget(known)
        before = messages[known - 1] if known else None
        for message in messages[known:]:
            piece = self._writer.piece(message, before, self._model or "")
            self._bytes.append(piece.data)
            self._lost.append(piece.left_out)
            self._left_out += piece.left_out
            before = message
        self._messages = messages

    def _forget(self, known: int) -> None:
        """Keep the first `known` messages' bytes only."""
        if known < len(self._bytes):
            self._left_out -= sum(self._lost[known:])
            del self._bytes[known:], self._lost[known:]
            self._messages = self._messages[:known]


@lru_cache(maxsize=16)
def _shared(head: bytes) -> bytes:
    """One copy of what the requests of many actors begin with: those of one agent have the same prompt and tools."""
    return head
