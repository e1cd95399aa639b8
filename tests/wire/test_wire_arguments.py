"""Tool arguments out of pieces: strictly an object, or an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.wire.arguments import is_complete, nested_deeper, parse_arguments
from runtime.wire.deep_json import read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


def cut(text: str, places: list[int]) -> list[str]:
    at = sorted({min(place, len(text)) for place in places})
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


@given(OBJECTS, st.booleans(), st.lists(st.integers(0, 200), max_size=8))
def test_an_object_in_any_pieces_is_that_object(value: dict[str, Any], ascii: bool, places: list[int]) -> None:
    """Arguments cut anywhere, escapes and characters included, are read as they were written."""
    text = json.dumps(value, ensure_ascii=ascii)
    arguments, raw, error = parse_arguments(cut(text, places))
    assert (arguments, error) == (value, None)
    assert raw == text


@given(OBJECTS.filter(bool), st.data())
def test_arguments_that_were_cut_off_are_never_run(value: dict[str, Any], data: st.DataObject) -> None:
    """No proper beginning of an object is taken for one, however its pieces fell."""
    text = json.dumps(value)
    length = data.draw(st.integers(1, len(text) - 1))
    pieces = cut(text[:length], data.draw(st.lists(st.integers(0, length), max_size=6)))
    arguments, _, error = parse_arguments(pieces)
    assert arguments is None
    assert error


@given(OBJECTS.filter(bool), st.integers(2, 4))
def test_whole_arguments_repeated_count_once(value: dict[str, Any], times: int) -> None:
    """(R31) A gateway that sends the whole twice means it once."""
    assert parse_arguments([json.dumps(value)] * times)[0] == value


@given(OBJECTS.filter(bool), OBJECTS.filter(bool))
def test_two_different_objects_are_an_error(first: dict[str, Any], second: dict[str, Any]) -> None:
    """(R31) They are not merged, and neither is chosen."""
    if json.loads(json.dumps(first)) != json.loads(json.dumps(second)):
        assert parse_arguments([json.dumps(first), json.dumps(second)])[0] is None


@pytest.mark.parametrize("text", ["", "  ", "null", " null\n"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    """(084-087) Blank and null mean that there are none."""
    assert parse_arguments([text])[0] == {}


def test_big_numbers_keep_their_digits_and_none_is_infinite() -> None:
    """(103) Integers are exact; what no float can hold is an error, and so are endless digits."""
    assert parse_arguments(['{"n":12345678901234567890}'])[0] == {"n": 12345678901234567890}
    assert parse_arguments(['{"n":1e400}'])[0] is None
    assert parse_arguments(['{"n":' + "1" * 5000 + "}"])[0] is None


def test_depth_is_bounded() -> None:
    """Deep nesting is an error with a reason, and costs no stack."""
    deep = '{"a":' * 300 + "1" + "}" * 300
    arguments, _, error = parse_arguments([deep])
    assert arguments is None
    assert error is not None
    assert "levels deep" in error
    assert not is_complete([deep])
    assert not nested_deeper('{"a":"' + "{" * 1000 + '"}', 200)


def test_lone_surrogates_in_escapes_are_replaced() -> None:
    """What a tool gets can be written as UTF-8."""
    arguments, _, _ = parse_arguments(['{"\\ud83d":"x\\udf0a","p":"\\ud83c\\udf0a"}'])
    assert arguments == {"\ufffd": "x\ufffd", "p": "\U0001f30a"}


@given(VALUES)
def test_deep_json_is_read_like_any_json(value: Any) -> None:
    """The reader for deep texts agrees with json.loads, behind a hundred brackets too."""
    text = json.dumps(value)
    assert read_json(text) == value
    assert read_json("[" * 150 + text + "]" * 150) == json.loads("[" * 150 + text + "]" * 150)


@given(VALUES, st.data())
def test_deep_json_refuses_what_is_no_json(value: Any, data: st.DataObject) -> None:
    """A broken text is refused where json.loads refuses it."""
    text = "[" * 120 + json.dumps(value) + "]" * 120
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.sampled_from(["", "[", "}", '"', ",", ":", "x", " "])) + text[at + 1 :]
    try:
        expected = json.loads(broken)
    except ValueError:
        with pytest.raises(ValueError):
            read_json(broken)
    else:
        assert read_json(broken) == expected


def test_any_depth_can_be_read() -> None:
    """Ten thousand levels are no problem for the reader."""
    value = read_json('{"a":' * 10_000 + "[1]" + "}" * 10_000)
    for _ in range(10_000):
        value = value["a"]
    assert value == [1]
