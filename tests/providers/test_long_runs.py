"""Twenty steps over one connection, each request the one before and a little more; and servers set up oddly."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from trio.testing import MockClock

from runtime.errors import DefinitionError, UsageError
from runtime.events import ActorStarted, ModelRetried
from runtime.wire import WIRES, WireName
from runtime.wire.chat_request import ChatWriter
from runtime.wire.messages_request import MessagesWriter
from runtime.wire.responses_request import ResponsesWriter

STEPS = 20
MARK = b',"cache_control":{"type":"ephemeral"}'
each_wire = pytest.mark.parametrize("wire", WIRES)


def walk(server: Any, answer: Any, say: Any, call: Any, wire: WireName, steps: int = STEPS) -> None:
    """A model that reads page after page and then answers."""

    def respond(seen: Any) -> Any:
        number = len(server.seen)
        return answer(call(wire, ("look", {"page": number})) if number < steps else say(wire, "done"))

    server.respond = respond


@each_wire
async def test_a_run_of_twenty_steps_needs_one_connection(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """All requests of one agent go over one connection, which stays open while its tools run."""
    walk(server, answer, say, call, wire)
    outcome = await run(wire, ["look"])
    assert (outcome.report.status, outcome.report.steps, len(outcome.ran)) == ("completed", STEPS, STEPS - 1)
    assert [seen.connection for seen in server.seen] == [1] * STEPS
    assert (outcome.stats.opened, outcome.stats.reused, outcome.stats.peak) == (1, STEPS - 1, 1)
    assert len(server.seen) == STEPS


async def test_children_at_work_together_have_a_connection_each(
    run: Any, server: Any, answer: Any, say: Any, call: Any, tmp_path: Path
) -> None:
    """As many connections as calls under way at once, and no more however many follow."""
    agents = tmp_path / "workspace" / "agents"
    agents.mkdir()
    head: dict[str, Any] = {"name": "child", "description": "helps", "tools": []}
    (agents / "child.md").write_text(f"---\n{json.dumps(head)}\n---\nYou are a child.\n")

    def respond(seen: Any) -> Any:
        if b"You are a child" in seen.body:
            return answer(say("openai-chat", "my part"), pause=0.005)
        rounds = sum(message["role"] == "assistant" for message in seen.json["messages"])
        tasks = [("delegate_to_child", {"task": f"part {rounds}.{part}"}) for part in range(4)]
        return answer(call("openai-chat", *tasks) if rounds < 3 else say("openai-chat", "done"))

    server.respond = respond
    outcome = await run(subagents=["child"], max_children=8)
    assert outcome.report.status == "completed"
    assert len(outcome.of(ActorStarted)) == 13
    assert outcome.stats.peak == outcome.stats.opened == server.connections == 4
    assert outcome.stats.reused == len(server.seen) - 4


@each_wire
async def test_each_request_begins_with_the_one_before(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """A step's bytes are those of the step before up to the end of its history, so that prompt caches hold."""
    walk(server, answer, say, call, wire)
    await run(wire, ["look"])
    bodies = [seen.body.replace(MARK, b"") for seen in server.seen]
    for before, after in pairwise(bodies):
        history = before[: before.rindex(b'"stream":true')].rpartition(b"]")[0].rstrip(b"]}")
        assert len(history) > len(before) // 2
        assert after.startswith(history)
        assert len(after) > len(before)


@each_wire
async def test_a_step_encodes_only_what_is_new(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """Each message is written as JSON once, however many requests it goes into."""
    walk(server, answer, say, call, wire)
    pieces = {writer.piece.__code__ for writer in (ChatWriter, MessagesWriter, ResponsesWriter)}
    heads = {writer.head.__code__ for writer in (ChatWriter, MessagesWriter, ResponsesWriter)}
    counts: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            counts["pieces"] += frame.f_code in pieces
            counts["heads"] += frame.f_code in heads

    sys.setprofile(count)
    try:
        await run(wire, ["look"])
    finally:
        sys.setprofile(None)
    assert len(server.seen) == STEPS
    assert counts == {"pieces": 1 + 2 * (STEPS - 1), "heads": 1}


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_stream_is_read(coding: str, run: Any, server: Any, answer: Any, say: Any) -> None:
    """A proxy that compresses what was asked for plain does no harm."""
    plain = b"".join(say("openai-chat", "read all the same"))
    packed = gzip.compress(plain) if coding == "gzip" else zlib.compress(plain)
    headers = {"content-type": "text/event-stream", "content-encoding": coding}
    server.answers(answer(tuple(packed[at : at + 7] for at in range(0, len(packed), 7)), 200, headers))
    outcome = await run()
    assert (outcome.report.text, server.seen[0].headers["accept-encoding"]) == ("read all the same", "identity")
    assert outcome.stats.open_now == 0


async def test_a_damaged_compressed_stream_is_tried_again(
    run: Any, server: Any, answer: Any, say: Any, skipping_clock: MockClock
) -> None:
    """A body that is not what its coding says is a broken response, not a crash."""
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    server.answers(answer((b"this is no gzip",), 200, headers), answer(say("openai-chat", "done")))
    outcome = await run()
    assert (outcome.report.text, [event.kind for event in outcome.of(ModelRetried)]) == ("done", ["truncated"])


async def test_a_stream_through_a_proxy_has_the_same_time_outs(
    run: Any, server: Any, answer: Any, say: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a proxy too a first piece may take its time, and a silence after it ends the attempt."""
    whole = say("openai-chat", "a longer answer")
    server.answers(answer(whole[:1], first=0.4, then="stall"), answer(whole, first=0.4))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
    lab = {"base_url": "http://model.test/v1", "timeouts": {"first_byte": 60, "idle": 0.2}}
    (tmp_path / "workspace" / "elenco.yaml").write_text(json.dumps({"providers": {"lab": lab}}))
    outcome = await run(model="lab/m", base_url=None)
    assert {seen.target for seen in server.seen} == {"http://model.test/v1/chat/completions"}
    [retried] = outcome.of(ModelRetried)
    assert "nothing more of the response for 0.2 s" in retried.message
    assert (outcome.report.text, len(server.seen)) == ("a longer answer", 2)


async def test_time_outs_of_a_provider_are_settings(
    run: Any, server: Any, answer: Any, say: Any, tmp_path: Path, skipping_clock: MockClock
) -> None:
    """`timeouts` of a provider in elenco.yaml are seconds to connect, to the first byte and of idleness."""
    settings = {"lab": {"base_url": server.url, "timeouts": {"connect": 1, "first_byte": 9, "idle": 5}}}
    config = tmp_path / "workspace" / "elenco.yaml"
    config.write_text(json.dumps({"providers": settings}))
    whole = say("openai-chat", "done")
    server.answers(answer(then="stall", head=False), answer(whole[:1], then="stall"), answer(whole))
    outcome = await run(model="lab/m", base_url=None)
    first, second = outcome.of(ModelRetried)
    assert "said nothing for 9 s" in first.message
    assert "for 5 s" in second.message
    assert 14 <= skipping_clock.current_time() < 20
    config.write_text(json.dumps({"providers": {"lab": {**settings["lab"], "timeouts": {"idl": 5}}}}))
    with pytest.raises(DefinitionError, match=r"elenco\.yaml:1:.*unknown key 'idl'; did you mean 'idle'"):
        await run(model="lab/m", base_url=None)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1"])
async def test_an_unusable_address_is_told_before_the_run(url: str, run: Any, server: Any) -> None:
    """A base URL nobody can be asked at is a slip of the person, told in one line."""
    with pytest.raises(UsageError, match="--base-url") as failed:
        await run(base_url=url)
    assert "\n" not in str(failed.value)


async def test_an_address_with_a_password_is_refused_before_the_run(run: Any, server: Any) -> None:
    """A password in a base URL is told in a line that does not hold it, and no run begins with it."""
    with pytest.raises(UsageError, match=r"--base-url: .*put the key in the environment") as failed:
        await run(base_url=server.url.replace("http://", "http://user:hunter2@"))
    assert "hunter2" not in str(failed.value)
    assert not server.seen


@pytest.mark.parametrize(
    ("key", "is_taken"), [("sk-good", True), (" sk-good\n", True), ("sk-bad key", False), ("ключ", False)]
)
async def test_a_key_that_is_none_is_told_before_the_run(
    key: str, is_taken: bool, run: Any, server: Any, answer: Any, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line end around a key is dropped; one that no header can hold is told, without showing it."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", key)
    server.answers(answer(say("openai-chat", "done")))
    if is_taken:
        await run(model="deepseek/m")
        assert server.seen[0].headers["authorization"] == "Bearer sk-good"
        return
    with pytest.raises(UsageError, match="DEEPSEEK_API_KEY") as failed:
        await run(model="deepseek/m")
    assert key not in str(failed.value)
