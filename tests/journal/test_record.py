"""Messages become JSON and back without loss, through the journal's own text."""

from __future__ import annotations

import json
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.events import TYPES, Event, ModelFinished, ToolFinished, body_of, event_from
from runtime.journal.rows import decode_event, encode_body, encode_json
from runtime.messages import (
    AssistantMessage,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
)
from runtime.record import (
    images_to_json,
    message_from_json,
    message_to_json,
    parts_to_json,
    reply_of,
    report_from_json,
    report_to_json,
    result_of,
    usage_to_json,
)
from runtime.report import Report

texts = st.text(st.characters(exclude_categories=()), max_size=20)
counts = st.integers(0, 1 << 40)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=4)
usages = st.builds(Usage, counts, counts, counts, counts, counts, st.booleans())
images = st.lists(st.builds(Image, texts, texts), max_size=2).map(tuple)
calls = st.builds(
    ToolCall, texts, texts, st.none() | objects, texts, st.none() | texts, st.none() | texts, st.none() | objects
)
parts = st.lists(
    st.one_of(
        st.builds(Text, texts), st.builds(Reasoning, texts, st.none() | objects), st.builds(Opaque, objects), calls
    ),
    max_size=5,
).map(tuple)
finishes = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "refusal", "pause", "context_window"])
replies = st.builds(AssistantMessage, parts, finishes, st.none() | usages, texts, texts)
kinds = st.sampled_from(["ok", "error", "refused", "interrupted", "unknown"])
results = st.builds(ToolResult, texts, texts, texts, kinds, images)
costs = st.none() | st.floats(0, 10)
reports = st.builds(Report, st.just("completed"), texts, usages, costs, counts, st.none(), texts, json_values)
messages = st.one_of(
    st.builds(UserMessage, texts, st.sampled_from(["task", "steer", "note"]), images),
    replies,
    st.builds(ToolResults, st.lists(results, max_size=3).map(tuple)),
)


@given(messages)
def test_a_message_comes_back_from_json_as_it_was(message: Message) -> None:
    """Every message survives JSON text, opaque parts, images and half surrogate pairs among it."""
    assert message_from_json(json.loads(encode_json(message_to_json(message)))) == message


@given(replies)
def test_a_reply_comes_back_from_its_event(reply: AssistantMessage) -> None:
    """What model.finished keeps gives the very message again; only an estimated usage is not part of it."""
    usage = reply.usage or Usage(1, 1, estimated=True)
    event = ModelFinished(
        turn=0,
        text=reply.text,
        reasoning=reply.reasoning,
        tool_calls=(),
        finish=reply.finish,
        usage=usage_to_json(usage),
        cost_usd=None,
        seconds=0.0,
        model=reply.model,
        wire=reply.wire,
        parts=parts_to_json(reply),
    )
    read = decode_event(event.type, event.actor, encode_body(event))
    assert isinstance(read, ModelFinished)
    found = reply_of(read)
    expected = None if usage.estimated else reply.usage
    assert found == AssistantMessage(reply.parts, reply.finish, expected, reply.model, reply.wire)


@given(results)
def test_a_result_comes_back_from_its_event(result: ToolResult) -> None:
    """What tool.finished keeps gives the very result again."""
    event = ToolFinished(
        call_id=result.call_id,
        name=result.name,
        result=result.content,
        is_error=result.is_error,
        seconds=0.0,
        kind=result.kind,
        images=images_to_json(result.images),
    )
    read = decode_event(event.type, event.actor, encode_body(event))
    assert isinstance(read, ToolFinished)
    assert result_of(read) == result


@given(
    st.builds(
        Report, st.just("completed"), texts, usages, st.none() | st.floats(0, 10), counts, st.none(), texts, json_values
    )
)
def test_a_report_comes_back_from_json(report: Report) -> None:
    """A report survives JSON, its structured output too."""
    assert report_from_json(json.loads(encode_json(report_to_json(report)))) == report


@settings(max_examples=200)
@given(st.data())
def test_every_event_comes_back_from_its_row(data: st.DataObject) -> None:
    """Every type of event survives its row; a field of a newer version is left out."""
    cls = data.draw(st.sampled_from(list(TYPES.values())))
    event = data.draw(st.builds(cls, **fields_of(cls)))
    body = encode_body(event)
    assert decode_event(cls.type, event.actor, body) == event
    assert body.isascii()
    assert event_from(cls.type, event.actor, {**body_of(event), "from_the_future": 1}) == event


def fields_of(cls: type[Event]) -> dict[str, st.SearchStrategy[Any]]:
    """Values for each field; another kind of field than these needs its own samples."""
    return {field.name: SAMPLES[str(field.type)] for field in attrs.fields(cls)}


lists = st.lists(objects, max_size=2).map(tuple)
SAMPLES: dict[str, st.SearchStrategy[Any]] = {
    "JsonObject": objects,
    "JsonObject | None": st.none() | objects,
    "tuple[JsonObject, ...]": lists,
    "tuple[JsonObject, ...] | None": st.none() | lists,
    "str": texts,
    "str | None": st.none() | texts,
    "float": st.floats(allow_nan=False),
    "float | None": st.none() | st.floats(allow_nan=False),
    "int": counts,
    "int | None": st.none() | counts,
    "bool": st.booleans(),
    "tuple[str, ...] | None": st.none() | st.lists(texts, max_size=2).map(tuple),
    "tuple[int, int] | None": st.none() | st.tuples(counts, counts),
    "tuple[str, ...]": st.lists(texts, max_size=2).map(tuple),
}
