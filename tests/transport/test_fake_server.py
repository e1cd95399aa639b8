"""The fake model server that measurements run against."""

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from bench.fake_server import FakeServer, words
from runtime.providers.transport import DirectTransport, open_stream

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
async def server(nursery: trio.Nursery) -> FakeServer:
    """A server in the test's nursery."""
    server = FakeServer()
    await nursery.start(server.serve)
    return server


async def ask(server: FakeServer, path: str, request: dict[str, Any]) -> tuple[int, list[bytes]]:
    """Status, and the data of each event; or of an error the JSON body."""
    transport = DirectTransport()
    url = httpx.URL(f"{server.url}{path}")
    async with open_stream(transport, "POST", url, content=json.dumps(request).encode()) as response:
        body = (await response.aread()).decode()
    await transport.aclose()
    if response.status_code != 200:
        return response.status_code, [body.encode()]
    assert body.endswith("\n\n")
    events = [event.rpartition("data: ")[2].encode() for event in body[:-2].split("\n\n")]
    return response.status_code, events


async def ask_openai(server: FakeServer, model: str, results: int = 0) -> tuple[str, list[tuple[str, Any]], str]:
    """Text, calls with their arguments, and finish reason of a Chat Completions answer."""
    messages = [{"role": "tool", "tool_call_id": f"call-{number}", "content": "3"} for number in range(results)]
    _, events = await ask(server, "/v1/chat/completions", {"model": model, "stream": True, "messages": messages})
    assert events[-1] == b"[DONE]"
    text, calls, reason = "", dict[int, list[str]](), ""
    for event in events[:-1]:
        choice = json.loads(event)["choices"][0]
        text += choice["delta"].get("content") or ""
        reason = choice["finish_reason"] or reason
        for call in choice["delta"].get("tool_calls", []):
            function = call["function"]
            calls.setdefault(call["index"], [function.get("name", ""), ""])[1] += function["arguments"]
    return text, [(name, json.loads(arguments)) for name, arguments in calls.values()], reason


async def test_a_loop_calls_a_tool_in_each_round_and_then_answers(server: FakeServer) -> None:
    """loop-N makes one call of a tool for each of N results, each with other arguments, then a text."""
    for step in range(3):
        assert await ask_openai(server, "loop-3", step) == ("", [("add", {"a": step, "b": 1})], "tool_calls")
    assert await ask_openai(server, "loop-3", 3) == ("All of it is done.", [], "stop")
    expected = ("", [("read_file", {"path": "item 1"})], "tool_calls")
    assert await ask_openai(server, "loop-3:read_file(path)", 1) == expected


async def test_a_fan_makes_its_calls_at_once(server: FakeServer) -> None:
    """fan-N makes N calls in one answer, and answers once it has their results."""
    _, calls, _ = await ask_openai(server, "fan-3")
    assert [name for name, _ in calls] == ["child_0", "child_1", "child_2"]
    _, calls, _ = await ask_openai(server, "fan-2:delegate_to_worker")
    assert calls == [("delegate_to_worker", {"task": f"Do part {part} of the work."}) for part in range(2)]
    assert (await ask_openai(server, "fan-3", 3))[1] == []


@pytest.mark.parametrize("model", ["burst-100", "paced-20"])
async def test_a_text_comes_in_as_many_deltas_as_asked(model: str, server: FakeServer) -> None:
    """burst-N and paced-N stream N deltas."""
    count = int(model.partition("-")[2])
    assert await ask_openai(server, model) == ("".join(words(count)), [], "stop")


async def test_it_speaks_anthropic_messages(server: FakeServer) -> None:
    """The same models answer in Anthropic's events."""
    _, events = await ask(server, "/v1/messages", {"model": "loop-1", "messages": []})
    kinds = [json.loads(event)["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    parts = [json.loads(event)["delta"]["partial_json"] for event in events[2:-3]]
    assert json.loads("".join(parts)) == {"a": 0, "b": 1}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call-0", "content": "1"}]}
    _, events = await ask(server, "/v1/messages", {"model": "loop-1", "messages": [result]})
    assert "".join(json.loads(event)["delta"]["text"] for event in events[2:-3]) == "All of it is done."


async def test_usage_is_told_to_whom_asks(server: FakeServer) -> None:
    """With include_usage the last chunk has the usage and no choice."""
    request = {"model": "burst-5", "stream_options": {"include_usage": True}}
    _, events = await ask(server, "/v1/chat/completions", request)
    chunk = json.loads(events[-2])
    assert (chunk["choices"], chunk["usage"]["completion_tokens"]) == ([], 5)


@pytest.mark.parametrize("model", ["gpt-5", "loop-", "loop-x", ""])
async def test_an_unknown_model_is_a_bad_request(model: str, server: FakeServer) -> None:
    """A model that names no behaviour is refused with a reason."""
    status, [body] = await ask(server, "/v1/chat/completions", {"model": model})
    assert status == 400
    assert "no such model" in json.loads(body)["error"]["message"]


async def test_it_counts_connections_and_requests(server: FakeServer) -> None:
    """The counts are there over HTTP, and start again when reset."""
    transport = DirectTransport()
    url = httpx.URL(f"{server.url}/v1/chat/completions")
    for _ in range(3):
        async with open_stream(transport, "POST", url, content=b'{"model": "burst-1000@1"}') as response:
            await response.aread()
    async with open_stream(transport, "GET", httpx.URL(f"{server.url}/reset")) as response:
        counts = json.loads(await response.aread())
    assert (counts["requests"], counts["connections"], counts["open_now"], counts["peak"]) == (3, 1, 1, 1)
    assert counts["bytes_out"] > 300_000
    async with open_stream(transport, "GET", httpx.URL(f"{server.url}/stats")) as response:
        assert json.loads(await response.aread())["requests"] == 0
    await transport.aclose()


async def test_it_runs_as_a_process_of_its_own() -> None:
    """As a command it says where it listens, in one line of JSON."""
    command = [sys.executable, "-m", "bench.fake_server", "--port", "0"]
    async with trio.open_nursery() as nursery:
        run = partial(trio.run_process, command, cwd=ROOT, stdout=subprocess.PIPE)
        process: trio.Process = await nursery.start(run)
        assert process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            line += await process.stdout.receive_some()
        said = json.loads(line)
        assert said["pid"] == process.pid
        transport = DirectTransport()
        async with open_stream(transport, "GET", httpx.URL(f"http://127.0.0.1:{said['port']}/stats")) as response:
            assert json.loads(await response.aread())["requests"] == 0
        await transport.aclose()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
