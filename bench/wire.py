"""What decoding costs: CPU per delta from bytes to Delta for the three wires, json.loads of the same chunks beside it.

Also what encoding a step of a growing conversation costs. `python -m bench.wire`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from runtime import wire
from runtime.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, ToolResults, UserMessage
from runtime.model import ModelRequest, ToolSpec

DELTAS = 20_000
READ = 4096
ROUNDS = 5


def chat_events() -> list[str]:
    head = '{"id":"chatcmpl-t1","object":"chat.completion.chunk","created":1790000000,"model":"test-model",'
    chunks = [
        head + f'"choices":[{{"index":0,"delta":{{"content":"word{n} "}},"finish_reason":null}}]}}'
        for n in range(DELTAS)
    ]
    last = head + '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
    return [f"data: {chunk}\n\n" for chunk in (*chunks, last, "[DONE]")]


def messages_events() -> list[str]:
    start = '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[]}}'
    block = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    chunks = [
        f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"word{n} "}}}}'
        for n in range(DELTAS)
    ]
    end = '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}'
    return [
        f"event: {json.loads(chunk)['type']}\ndata: {chunk}\n\n"
        for chunk in (start, block, *chunks, end, '{"type":"message_stop"}')
    ]


def responses_events() -> list[str]:
    item = '{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}'
    chunks = [
        '{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,'
        f'"delta":"word{n} ","logprobs":[],"sequence_number":{n}}}'
        for n in range(DELTAS)
    ]
    end = '{"type":"response.completed","response":{"status":"completed","output":[],"usage":null}}'
    return [f"event: {json.loads(chunk)['type']}\ndata: {chunk}\n\n" for chunk in (item, *chunks, end)]


def best(work: Callable[[], None]) -> float:
    """Seconds of CPU of the best of several rounds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def decoding(name: wire.WireName, events: list[str]) -> tuple[float, float]:
    """Microseconds per delta: the whole decoder, and json.loads of the data alone."""
    body = "".join(events).encode()
    reads = [body[at : at + READ] for at in range(0, len(body), READ)]
    data = [line.removeprefix("data: ") for event in events for line in event.split("\n") if line.startswith("data: {")]

    def decode() -> None:
        decoder = wire.decoder(name, 200, {"content-type": "text/event-stream"})
        deltas = sum(len(decoder.feed(read)) for read in reads)
        decoder.close()
        assert deltas == DELTAS

    def load() -> None:
        for text in data:
            json.loads(text)

    return best(decode) / DELTAS * 1e6, best(load) / DELTAS * 1e6


def encoding(name: wire.WireName, steps: int) -> float:
    """Microseconds to encode the last of `steps` steps, each of which added a call and its result."""
    encoder = wire.RequestEncoder(name, wire.DIALECTS["anthropic" if name == "anthropic-messages" else "openai"])
    tools = tuple(ToolSpec(f"tool_{n}", "does things", {"type": "object", "properties": {}}) for n in range(20))
    messages: list[Message] = [UserMessage("the task " * 50)]
    spent = 0.0
    for step in range(steps):
        request = ModelRequest("model-1", ("system prompt " * 100,), tuple(messages), tools)
        start = time.process_time()
        encoder.encode(request)
        spent = time.process_time() - start
        call = ToolCall(f"c{step}", "tool_1", {"path": "a/b/c.txt", "start": step})
        messages.append(AssistantMessage((Text("let me look " * 10), call), "tool_calls"))
        messages.append(ToolResults((ToolResult(f"c{step}", "tool_1", "some text of a file " * 50),)))
    return spent * 1e6


def main() -> None:
    cases: tuple[tuple[wire.WireName, list[str]], ...] = (
        ("openai-chat", chat_events()),
        ("anthropic-messages", messages_events()),
        ("openai-responses", responses_events()),
    )
    print(f"{'wire':20} {'us/delta':>9} {'json.loads':>11} {'encode step 10':>15} {'step 500':>10}")
    for name, events in cases:
        decode, load = decoding(name, events)
        print(f"{name:20} {decode:9.2f} {load:11.2f} {encoding(name, 10):12.0f} us {encoding(name, 500):7.0f} us")


if __name__ == "__main__":
    main()
