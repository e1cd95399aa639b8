"""A fake model server for measurements and tests: loopback only, cheap, and its answers are known beforehand.

It speaks streamed OpenAI Chat Completions (`POST …/chat/completions`) and Anthropic Messages (`POST …/messages`). The
name of the model says what it does, and the number of tool results in the request how far it has come, so the server
keeps nothing about a conversation:

    loop-N[:TOOL[(PARAMETER)]]   one call of a tool (default `add(a, b)`) in each of N rounds, then a text
    fan-N[:TOOL[(PARAMETER)]]    N calls at once (default `child_0(task)`, `child_1(task)`, …), then a text
    burst-N                      a text of N deltas, sent as one piece
    paced-N                      a text of N deltas, one a millisecond

`@MS` at the end adds so many milliseconds before the answer. `GET /stats` counts, `GET /reset` counts from zero.

    python -m bench.fake_server --port 0     prints {"port": …, "pid": …} and serves until its parent ends
"""

import argparse
import json
import os
import re
import resource
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NoReturn

import attrs
import trio

_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]+)"')
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_NAME = re.compile(r"(loop|fan|burst|paced)-(\d+)(?::([\w-]+)(?:\((\w+)\))?)?(?:@(\d+(?:\.\d+)?))?")
_CREATED = 1_790_000_000
_RECEIVE_BYTES = 262_144
_BACKLOG = 4096

_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\n"
    b"date: Sun, 29 Nov 2026 12:00:00 GMT\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n"
    b"connection: keep-alive\r\n"
    b"cache-control: no-cache\r\n"
    b"x-request-id: req-0123456789abcdef0123456789abcdef\r\n"
    b"x-ratelimit-limit-requests: 10000\r\n"
    b"x-ratelimit-remaining-requests: 9999\r\n"
    b"x-ratelimit-reset-requests: 6ms\r\n"
    b"strict-transport-security: max-age=31536000\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"server: fake\r\n"
    b"\r\n"
)


@attrs.frozen
class Call:
    """A tool call to make."""

    id: str
    name: str
    arguments: str  # JSON


@attrs.frozen
class Answer:
    """What the model says next: a text in deltas, or tool calls."""

    deltas: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()


@attrs.frozen
class Script:
    """The behaviour a model's name asks for."""

    kind: str
    count: int
    tool: str | None
    parameter: str | None
    latency: float  # seconds

    @classmethod
    def parse(cls, model: str) -> "Script":
        """Read a model's name. Raises `ValueError`."""
        found = _NAME.fullmatch(model)
        if found is None:
            raise ValueError(f"no such model: {model!r}; try loop-3, fan-3, burst-100 or paced-100")
        kind, count, tool, parameter, latency = found.groups()
        return cls(kind, int(count), tool, parameter, float(latency or 0) / 1000)

    def answer(self, results: int) -> Answer:
        """The answer to a conversation that holds so many tool results."""
        if self.kind == "loop" and results < self.count:
            return Answer(calls=(self._loop_call(results),))
        if self.kind == "fan" and results < self.count:
            return Answer(calls=tuple(self._fan_call(index) for index in range(self.count)))
        if self.kind in ("burst", "paced"):
            return Answer(deltas=words(self.count))
        return Answer(deltas=("All", " of", " it", " is", " done."))

    def _loop_call(self, step: int) -> Call:
        arguments = {"a": step, "b": 1} if self.tool is None else {self.parameter or "text": f"item {step}"}
        return Call(f"call-{step}", self.tool or "add", json.dumps(arguments))

    def _fan_call(self, index: int) -> Call:
        arguments = {self.parameter or "task": f"Do part {index} of the work."}
        return Call(f"call-{index}", self.tool or f"child_{index}", json.dumps(arguments))


def words(count: int) -> tuple[str, ...]:
    """So many words of four letters, a space before each; no text of them repeats itself, which would stop an agent."""
    numbers = (index * 7919 % 26**4 for index in range(count))
    return tuple(" " + "".join(chr(97 + number // 26**place % 26) for place in range(4)) for number in numbers)


def openai_events(model: str, answer: Answer, *, with_usage: bool) -> list[bytes]:
    """The answer as server-sent events of Chat Completions."""

    def event(choices: list[Any], **more: Any) -> bytes:
        chunk = {"id": "chatcmpl-0123456789", "object": "chat.completion.chunk", "created": _CREATED, "model": model}
        return b"data: " + _dump({**chunk, "system_fingerprint": "fp_01234567", "choices": choices, **more}) + b"\n\n"

    def delta(content: dict[str, Any], finish: str | None = None) -> bytes:
        return event([{"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}])

    events = [delta({"role": "assistant", "content": "" if answer.deltas else None})]
    events += [delta({"content": text}) for text in answer.deltas]
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        events.append(
            delta({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
        )
        events += [
            delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
            for part in _parts(call.arguments)
        ]
    events.append(delta({}, "tool_calls" if answer.calls else "stop"))
    if with_usage:
        output = _output_tokens(answer)
        usage = {"prompt_tokens": 100, "completion_tokens": output, "total_tokens": 100 + output}
        events.append(event([], usage=usage))
    return [*events, b"data: [DONE]\n\n"]


def anthropic_events(model: str, answer: Answer) -> list[bytes]:
    """The answer as server-sent events of Messages."""

    def event(kind: str, **more: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), _dump({"type": kind, **more}))

    def block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
        return [
            event("content_block_start", index=index, content_block=start),
            *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
            event("content_block_stop", index=index),
        ]

    message: dict[str, Any] = {
        "id": "msg_0123456789",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    usage = {"input_tokens": 100, "output_tokens": 1}
    events = [event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})]
    if answer.deltas:
        text = [{"type": "text_delta", "text": delta} for delta in answer.deltas]
        events += block(0, {"type": "text", "text": ""}, text)
    for index, call in enumerate(answer.calls):
        start: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in _parts(call.arguments)]
        events += block(index, start, deltas)
    reason = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    events.append(event("message_delta", delta=reason, usage={"output_tokens": _output_tokens(answer)}))
    return [*events, event("message_stop")]


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _parts(text: str) -> list[str]:
    """The text in about five pieces, as models stream arguments."""
    size = max(1, -(-len(text) // 5))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _output_tokens(answer: Answer) -> int:
    return len(answer.deltas) + 10 * len(answer.calls)


@attrs.frozen
class Prepared:
    """A response ready to be sent: pieces a millisecond apart, after a latency in seconds."""

    latency: float
    pieces: tuple[bytes, ...]


@lru_cache(maxsize=4096)
def prepare(dialect: str, model: str, results: int, with_usage: bool) -> Prepared:
    """The bytes of a streamed answer, head and chunks included. Raises `ValueError` for an unknown model."""
    script = Script.parse(model)
    answer = script.answer(results)
    if dialect == "openai":
        events = openai_events(model, answer, with_usage=with_usage)
    else:
        events = anthropic_events(model, answer)
    chunks = [b"%x\r\n%s\r\n" % (len(event), event) for event in events]
    if script.kind == "paced":
        return Prepared(script.latency, (_STREAM_HEAD + chunks[0], *chunks[1:-1], chunks[-1] + b"0\r\n\r\n"))
    return Prepared(script.latency, (_STREAM_HEAD + b"".join(chunks) + b"0\r\n\r\n",))


@attrs.define
class Stats:
    """What has been served since the start or the last reset; `connections` and `requests` are totals."""

    requests: int = 0
    connections: int = 0
    open_now: int = 0
    peak: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def reset(self) -> None:
        """Count from zero; connections that are open stay counted as open."""
        self.requests = self.connections = self.bytes_in = self.bytes_out = 0
        self.peak = self.open_now


class FakeServer:
    """The server. `await nursery.start(server.serve)` runs it in the caller's nursery."""

    def __init__(self) -> None:
        self.stats = Stats()
        self.port = 0

    @property
    def url(self) -> str:
        """The base URL, without a final slash; known once serving."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, port: int = 0, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """Serve on loopback until cancelled, which closes every connection. Port 0 takes a free one."""
        with trio.socket.socket() as listener:
            listener.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
            await listener.bind(("127.0.0.1", port))
            listener.listen(_BACKLOG)
            self.port = listener.getsockname()[1]
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    connection, _ = await listener.accept()
                    nursery.start_soon(self._serve_connection, connection)

    async def _serve_connection(self, accepted: trio.socket.SocketType) -> None:
        stats = self.stats
        stats.connections += 1
        stats.open_now += 1
        stats.peak = max(stats.peak, stats.open_now)
        try:
            # Trio's own socket would go through its scheduler once more for each send.
            with socket.socket(fileno=accepted.detach()) as sock, suppress(OSError):  # A client may go away.
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._serve_requests(sock)
        finally:
            stats.open_now -= 1

    async def _serve_requests(self, sock: socket.socket) -> None:
        data = b""
        while True:
            while (head_end := data.find(b"\r\n\r\n")) < 0:
                if not (more := await _receive(sock)):
                    return
                data += more
            length = _LENGTH.search(data, 0, head_end)
            end = head_end + 4 + (int(length[1]) if length else 0)
            if len(data) < end:
                pieces, missing = [data], end - len(data)
                while missing > 0:
                    if not (more := await _receive(sock)):
                        return
                    pieces.append(more)
                    missing -= len(more)
                data = b"".join(pieces)
            request, data = data[:end], data[end:]
            self.stats.bytes_in += end
            await self._respond(sock, request, head_end)

    async def _respond(self, sock: socket.socket, request: bytes, head_end: int) -> None:
        method, path = request[: request.index(b"\r\n")].split(b" ")[:2]
        if method == b"GET":
            await self._send(sock, self._control(path))
            return
        self.stats.requests += 1
        dialect, mark = ("openai", b'"tool_call_id"') if path.endswith(b"/completions") else _ANTHROPIC
        model = _MODEL.search(request, head_end)
        results = request.count(mark, head_end)
        try:
            prepared = prepare(dialect, model[1].decode() if model else "", results, b'"include_usage"' in request)
        except ValueError as error:
            fault = {"error": {"type": "invalid_request_error", "message": str(error)}}
            await self._send(sock, _whole(b"400 Bad Request", fault))
            return
        if prepared.latency:
            await trio.sleep(prepared.latency)
        due = trio.current_time()
        for index, piece in enumerate(prepared.pieces):
            if index:
                await trio.sleep_until(due + index / 1000)
            await self._send(sock, piece)

    def _control(self, path: bytes) -> bytes:
        if path not in (b"/stats", b"/reset"):
            return _whole(b"404 Not Found", {"error": {"type": "not_found_error", "message": "no such page"}})
        counts = {**attrs.asdict(self.stats), "cpu_seconds": time.process_time()}
        if path == b"/reset":
            self.stats.reset()
        return _whole(b"200 OK", counts)

    async def _send(self, sock: socket.socket, data: bytes) -> None:
        self.stats.bytes_out += len(data)
        sent = _send_some(sock, data)
        while sent < len(data):
            await trio.lowlevel.wait_writable(sock)
            sent += _send_some(sock, memoryview(data)[sent:])


_ANTHROPIC = ("anthropic", b'"tool_use_id"')


async def _receive(sock: socket.socket) -> bytes:
    while True:
        await trio.lowlevel.wait_readable(sock)
        with suppress(BlockingIOError):
            return sock.recv(_RECEIVE_BYTES)


def _send_some(sock: socket.socket, data: bytes | memoryview) -> int:
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0


def _whole(status: bytes, value: Any) -> bytes:
    body = _dump(value)
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


async def _serve_until_orphaned(port: int) -> None:
    parent = os.getppid()
    server = FakeServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, port)
        print(json.dumps({"port": server.port, "pid": os.getpid()}), flush=True)
        while os.getppid() == parent:  # noqa: ASYNC110 (nothing tells a process that its parent has ended)
            await trio.sleep(1)
        nursery.cancel_scope.cancel()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve from the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fake_server", description="A fake model server on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        trio.run(_serve_until_orphaned, options.port)
    except* KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
