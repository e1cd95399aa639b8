"""Lines of the log stream and commands: one form, read back as written, every mistake named."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import UsageError
from runtime.events import ContextCompacted, Event, FileChanged, ModelDelta, Record, ToolFinished, Unknown, Warned
from runtime.journal.rows import encode_body
from runtime.watch import Approve, Cancel, ChangeLimits, Say, Status, line, record_from
from runtime.watch.commands import SCOPES, command_from_json, command_to_json

texts = st.text(st.characters(exclude_categories=()), max_size=10)


def test_a_kept_event_is_one_line_with_its_seq() -> None:
    """A kept event has the fields of the contract, in a readable order, the time in milliseconds."""
    record = Record(17, 1795953600.1239, Warned(actor="coordinator/researcher-1", text="hé\nho"))
    assert line(record, "k7f2") == (
        b'{"v":1,"seq":17,"at":"2026-11-29T12:00:00.123Z","run":"k7f2","actor":"coordinator/researcher-1",'
        b'"type":"warning","text":"h\\u00e9\\nho"}\n'
    )


def test_a_live_event_says_what_it_comes_after() -> None:
    """A live event has `after` and `n` and no seq."""
    data = json.loads(line(Record(17, 0.0, ModelDelta(actor="a", kind="text", text="x"), 3), "r"))
    assert (data["after"], data["n"]) == (17, 3)
    assert "seq" not in data


EVENTS = [
    Warned(text="x"),
    ContextCompacted(actor="a", before=3, after=1),
    FileChanged(actor="a", call_id="c", path="p", diff="d", after="hash"),
    ModelDelta(actor="a", kind="text", text="\ud800", reset=True),
    Unknown(actor="a", name="newer", body={"x": [1, None]}),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_line_is_read_back(event: Any) -> None:
    """A line gives the record again."""
    record = Record(4, 1795953600.25, event, 0 if event.kept else 2)
    assert record_from(json.loads(line(record, "r"))) == record


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"v": 2, "seq": 1},
        {"v": 1, "seq": 1},
        {"v": 1, "after": 1, "n": 1, "at": "x", "run": "", "actor": "", "type": "gap"},
    ],
)
def test_what_is_no_event_line_is_refused(data: dict[str, Any]) -> None:
    """A line of another version, or half a line, is an error and never half an event."""
    with pytest.raises((ValueError, TypeError)):
        record_from(data)


@given(
    event=st.one_of(
        st.builds(Warned, text=texts, actor=texts),
        st.builds(
            ToolFinished,
            actor=texts,
            call_id=texts,
            name=texts,
            result=texts,
            is_error=st.booleans(),
            seconds=st.floats(),
        ),
        st.builds(FileChanged, actor=texts, call_id=texts, path=texts, diff=texts, after=texts),
        st.builds(
            Unknown,
            actor=texts,
            name=texts,
            body=st.dictionaries(st.sampled_from(["seq", "run", "type", "x"]), st.integers() | st.floats() | texts),
        ),
    ),
    at=st.floats(0, 4e9),
)
def test_a_line_of_the_journals_text_is_the_same_line(event: Event, at: float) -> None:
    """The text that the journal made of an event gives the line that the event itself gives, byte for byte."""
    assert line(Record(4, at, event), "r") == line(Record(4, at, event, body=encode_body(event)), "r")


@given(st.floats())
def test_lines_are_strict_json(number: float) -> None:
    """A number JSON does not have becomes text."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    event = ToolFinished(
        actor="a", call_id="c", name="n", result="", is_error=False, seconds=0.0, data={"deep": [{"x": number}]}
    )
    told = json.loads(line(Record(1, 0.0, event), "r"), parse_constant=refuse)
    (found,) = told["data"]["deep"]
    assert found == {"x": number if math.isfinite(number) else str(number)}


commands = st.one_of(
    st.builds(
        Approve, id=texts, scope=st.sampled_from(SCOPES), arguments=st.none() | st.dictionaries(texts, texts), by=texts
    ),
    st.builds(Say, text=texts.filter(str.strip), actor=st.none() | texts, interrupt=st.booleans(), by=texts),
    st.builds(Cancel, actor=st.none() | texts),
    st.builds(ChangeLimits, limits=st.dictionaries(texts, st.integers() | texts)),
    st.builds(Status),
)


@given(commands)
def test_a_command_is_read_back(command: Any) -> None:
    """A command survives JSON."""
    assert command_from_json(json.loads(json.dumps(command_to_json(command)))) == command


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "unknown command None"),
        ({"op": 3}, "unknown command 3"),
        ({"op": "aprove"}, "did you mean 'approve'"),
        ({"op": "approve"}, "approve: 'id' is missing"),
        ({"op": "approve", "id": 1}, "approve: 'id' must be str, not int"),
        ({"op": "approve", "id": "a1", "scope": "runs"}, "unknown scope 'runs'; did you mean 'run'"),
        ({"op": "say", "text": "x", "acter": "y"}, "unknown key 'acter'; did you mean 'actor'"),
        ({"op": "say", "text": "x", "interrupt": 1}, "'interrupt' must be bool"),
        ({"op": "say", "text": " \n"}, "say: the text is empty"),
        ({"op": "limits", "limits": []}, "'limits' must be JsonObject"),
    ],
)
def test_a_wrong_command_is_named(data: dict[str, Any], why: str) -> None:
    """Every mistake in a command is said with what was probably meant."""
    with pytest.raises(UsageError, match=why):
        command_from_json(data)


@given(st.dictionaries(texts, st.none() | st.integers() | texts | st.lists(texts)))
def test_any_object_is_a_command_or_a_usage_error(data: dict[str, Any]) -> None:
    """No request breaks the reading of commands."""
    for op in ("approve", "status", None):
        try:
            command = command_from_json({**data, "op": op})
        except UsageError as wrong:
            assert str(wrong)
        else:
            assert type(command).__name__.lower() == op
