"""An answer's text is one JSON value, or the reason why it is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.output.answer import NoJson, read_answer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from(["{}", "\n {} \n", "```json\n{}\n```", "```\n{}```", "~~~\n{}\n~~~\n", "\ufeff{}"]))
def test_any_value_is_read_back(value: Any, form: str) -> None:
    """A value written as JSON is read as it was, also inside one code fence."""
    assert value == read_answer(form.replace("{}", json.dumps(value), 1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the answer is empty"),
        ("```json\n```", "the answer is empty"),
        ('Here it is: {"a": 1}', "it begins with other text"),
        ("hello", "it begins with other text"),
        ('{"a": 1} as you asked', "text follows the value at line 1, column 10"),
        ('```json\n{"a": 1}\n```\nDone.', "it begins with other text"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": NaN}', "NaN is no JSON value"),
        ('{"a": 1e999}', "1e999 is out of range"),
        ('{"a": 1, "a": 2}', 'the key "a" stands twice'),
        ("[" * 250 + "]" * 250, "nested more than 200 levels deep"),
        ("9" * 5000, "not valid JSON"),
    ],
)
def test_what_is_not_json_alone_is_told(text: str, why: str) -> None:
    """The reason names what is wrong and where."""
    with pytest.raises(NoJson, match=r".") as caught:
        read_answer(text)
    assert why in str(caught.value)


@given(st.text())
def test_any_text_is_a_value_or_a_reason(text: str) -> None:
    """Whatever a model writes, nothing but a value or a NoJson comes of it."""
    try:
        value = read_answer(text)
    except NoJson as error:
        assert str(error)
    else:
        json.dumps(value)


def test_half_a_surrogate_pair_becomes_a_mark() -> None:
    """What could not be written anywhere is repaired in the value."""
    assert {"a": "x\ufffd"} == read_answer('{"a": "x\\ud83d"}')
