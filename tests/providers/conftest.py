"""A model server of ours on loopback, whose every write a test decides, and whole runs against it."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

import attrs
import pytest
import trio
from trio.testing import MockClock

from runtime.app import LiveRun, open_run, plan
from runtime.events import Event
from runtime.journal import MemoryJournal
from runtime.known import ModelFlags
from runtime.limits.limits import Limits
from runtime.model import Provider
from runtime.outline import RunOptions
from runtime.providers.transport import Stats
from runtime.report import Report
from runtime.tools import Tool
from runtime.wire import WireName

STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@attrs.frozen
class Answer:
    """A response as it goes over the socket: the head in one write, then each piece as one chunk in one write.

    `then` is what follows the last piece: the body's proper end, a reset, a closed connection, or nothing ever.
    Without `head` it happens before anything is sent. `pause` is seconds before each piece, `first` before the first.
    """

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = STREAM
    then: Literal["end", "reset", "hang_up", "stall"] = "end"
    head: bool = True
    pause: float = 0.0
    first: float = 0.0


@attrs.frozen
class Seen:
    """A request as it arrived: `connection` counts from 1."""

    connection: int
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Respond: TypeAlias = Callable[[Seen], Answer]


class LoopbackServer:
    """Serves what `respond` says, the answers of a list one after the other, and the last one for ever."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.respond: Respond = lambda seen: Answer(say("openai-chat", "done"))
        self.connections = 0
        self.open = 0
        self.port = 0
        self._left = trio.lowlevel.ParkingLot()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answers(self, *answers: Answer) -> None:
        self.respond = lambda seen: answers[min(len(self.seen), len(answers)) - 1]

    async def all_left(self) -> None:
        """Wait until no client is connected any more."""
        while self.open:
            await self._left.park()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> NoReturn:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            task_status.started()
            await trio.serve_listeners(self._connection, listeners, handler_nursery=nursery)

    async def _connection(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        data = b""
        try:
            async with stream:
                while (request := await _request(stream, data)) is not None:
                    seen, data = attrs.evolve(request[0], connection=number), request[1]
                    self.seen.append(seen)
                    if not await _send(stream, self.respond(seen)):
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open -= 1
            self._left.unpark_all()


async def _request(stream: trio.SocketStream, data: bytes) -> tuple[Seen, bytes] | None:
    while b"\r\n\r\n" not in data:
        if not (more := await stream.receive_some()):
            return None
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(rest) < length:
        if not (more := await stream.receive_some()):
            return None
        rest += more
    return Seen(0, first.split(" ")[1], headers, rest[:length]), rest[length:]


async def _send(stream: trio.SocketStream, answer: Answer) -> bool:
    """Whether the connection may carry another request."""
    if answer.head:
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in answer.headers.items())]
        await stream.send_all("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode())
        await trio.sleep(answer.first)
        for piece in answer.pieces:
            await trio.sleep(answer.pause)
            if piece:
                await stream.send_all(b"%x\r\n%s\r\n" % (len(piece), piece))
    match answer.then:
        case "end":
            await stream.send_all(b"0\r\n\r\n")
            return True
        case "reset":
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        case "hang_up":
            pass
        case "stall":
            with suppress(trio.BrokenResourceError):
                await stream.receive_some()
    return False


# --- what a well-behaved model says, on each wire ------------------------------------------------------------------


def events(*values: Any) -> tuple[bytes, ...]:
    """Server-sent events, one a piece."""
    return tuple(
        b"data: [DONE]\n\n"
        if value == "[DONE]"
        else (f"event: {value['type']}\n" if "type" in value else "").encode()
        + b"data: %s\n\n" % json.dumps(value).encode()
        for value in values
    )


def say(wire: WireName, text: str, usage: tuple[int, int] | None = (50, 5), finish: str = "") -> tuple[bytes, ...]:
    """A reply of text; `finish` is the wire's own word for how it ended."""
    return reply(wire, text, (), usage, finish)


def call(wire: WireName, *calls: tuple[str, Any], usage: tuple[int, int] | None = (50, 5)) -> tuple[bytes, ...]:
    """A reply that calls tools, each with a name and its arguments (an object, or text as it is)."""
    return reply(wire, "", calls, usage, "")


def reply(
    wire: WireName, text: str, calls: Sequence[tuple[str, Any]], usage: tuple[int, int] | None, finish: str
) -> tuple[bytes, ...]:
    written = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    match wire:
        case "openai-chat":
            return _chat(text, written, usage, finish or ("tool_calls" if calls else "stop"))
        case "anthropic-messages":
            return _messages(text, written, usage, finish or ("tool_use" if calls else "end_turn"))
        case "openai-responses":
            return _responses(text, written, usage, finish)


def _chat(text: str, calls: list[tuple[str, str]], usage: tuple[int, int] | None, finish: str) -> tuple[bytes, ...]:
    def delta(content: Any, reason: str | None = None) -> Any:
        return {"choices": [{"index": 0, "delta": content, "finish_reason": reason}]}

    said = [delta({"role": "assistant", "content": text[at : at + 8]}) for at in range(0, len(text), 8)]
    for number, (name, arguments) in enumerate(calls):
        entry = {"index": number, "id": "call_1", "type": "function"}
        said.append(delta({"tool_calls": [{**entry, "function": {"name": name, "arguments": arguments}}]}))
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
    end: list[Any] = [{"choices": [], "usage": counted}] if counted else []
    return events(*said, delta({}, finish), *end, "[DONE]")


def _messages(text: str, calls: list[tuple[str, str]], usage: tuple[int, int] | None, finish: str) -> tuple[bytes, ...]:
    given, output = usage or (0, 0)
    out: list[Any] = [{"type": "message_start", "message": {"usage": {"input_tokens": given, "output_tokens": 1}}}]
    blocks: list[tuple[Any, Any]] = []
    if text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
    blocks += (
        (
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}},
            {"type": "input_json_delta", "partial_json": arguments},
        )
        for number, (name, arguments) in enumerate(calls)
    )
    for index, (start, delta) in enumerate(blocks):
        out += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    out.append({"type": "message_delta", "delta": {"stop_reason": finish}, "usage": {"output_tokens": output}})
    return events(*out, {"type": "message_stop"})


def _responses(
    text: str, calls: list[tuple[str, str]], usage: tuple[int, int] | None, finish: str
) -> tuple[bytes, ...]:
    items: list[Any] = []
    if text:
        content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
        items.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content})
    items += (
        {
            "id": f"fc_{number}",
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": arguments,
            "status": "completed",
        }
        for number, (name, arguments) in enumerate(calls)
    )
    counted = {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage)} if usage else None
    body: dict[str, Any] = {
        "id": "resp_1",
        "output": items,
        "usage": counted,
        "status": "incomplete" if finish else "completed",
    }
    if finish:
        body["incomplete_details"] = {"reason": finish}
    done = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    deltas = [{"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}]
    return events(
        {"type": "response.created", "response": {"id": "resp_1", "output": [], "usage": None}},
        *(deltas if text else []),
        *done,
        {"type": f"response.{'incomplete' if finish else 'completed'}", "response": body},
    )


@pytest.fixture(name="say")
def say_fixture() -> Callable[..., tuple[bytes, ...]]:
    return say


@pytest.fixture(name="call")
def call_fixture() -> Callable[..., tuple[bytes, ...]]:
    return call


@pytest.fixture(name="events")
def events_fixture() -> Callable[..., tuple[bytes, ...]]:
    return events


@pytest.fixture(name="answer")
def answer_fixture() -> type[Answer]:
    return Answer


@pytest.fixture
async def server(nursery: trio.Nursery) -> LoopbackServer:
    """A server in the test's nursery."""
    server = LoopbackServer()
    await nursery.start(server.serve)
    return server


@pytest.fixture
def skipping_clock(mock_clock: MockClock) -> MockClock:
    """Time that jumps to the next deadline once nothing has come over any socket for a moment."""
    mock_clock.autojump_threshold = 0.003
    return mock_clock


# --- a whole run against it ----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Outcome:
    """How a run ended and what it left on record; `ran` are the tool calls that were really run."""

    report: Report | None = None
    events: list[Event] = attrs.Factory(list[Event])
    ran: list[tuple[str, Any]] = attrs.Factory(list[tuple[str, Any]])
    tools: frozenset[str] = frozenset()
    stats: Stats = attrs.Factory(Stats)

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


@attrs.define(eq=False)
class Runs:
    """Runs of one agent, from an agent file and flags to the sockets."""

    folder: Path
    server: LoopbackServer
    outcome: Outcome = attrs.Factory(Outcome)

    @asynccontextmanager
    async def opened(
        self,
        outcome: Outcome,
        wire: WireName = "openai-chat",
        tools: Iterable[str | Tool] = (),
        *,
        model: str = "some-model",
        limits: Limits | None = None,
        providers: Mapping[str, Provider] | None = None,
        record: Path | None = None,
        base_url: str | None = "the server's",
        **front: Any,
    ) -> AsyncGenerator[LiveRun]:
        given = [tool if isinstance(tool, Tool) else _recording(tool, outcome.ran) for tool in tools]
        outcome.tools = frozenset(tool.name for tool in given)
        head = {"name": "solo", "description": "works alone", "tools": [tool.name for tool in given], **front}
        path = self.folder / "agents" / "solo.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\n{json.dumps(head)}\n---\nYou work alone.\n", encoding="utf-8")
        if base_url == "the server's":
            base_url = None if providers else self.server.url
        flags = ModelFlags(model, base_url, wire if base_url else None, record)
        options = RunOptions(
            agent="solo", task="the task", model=flags, workspace=self.folder, limits=limits or Limits(), headless=True
        )
        journal = MemoryJournal()
        ready = plan(options, given, providers)
        try:
            async with open_run(ready, journal, "r1") as live:
                yield live
                outcome.report = await live.report()
        finally:
            outcome.events = [record.event for record in journal.records]
            outcome.stats = ready.models.transport.stats

    async def __call__(self, *args: Any, **settings: Any) -> Outcome:
        outcome = Outcome()
        async with self.opened(outcome, *args, **settings):
            pass
        assert outcome.stats.open_now == 0
        await self.server.all_left()
        return outcome


def _recording(name: str, ran: list[tuple[str, Any]]) -> Tool:
    async def run(**arguments: Any) -> str:
        ran.append((name, arguments))
        return f"{name} was run with {json.dumps(arguments)}"

    return Tool(name, f"does {name}", {"type": "object", "properties": {}}, run, effects="none")


@pytest.fixture
def run(tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """`await run(wire, tools, ...)` plays a whole run against the server; nothing of it is left behind."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for variable in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(variable)
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Runs(folder, server)


@pytest.fixture
def open_files() -> Callable[[], set[str]]:
    """What is open in this process: descriptors of sockets and files."""
    return lambda: set(os.listdir("/proc/self/fd"))
