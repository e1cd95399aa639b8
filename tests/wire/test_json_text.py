"""JSON written by an encoder that is made once is the very text of the standard library."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.json_text import json_encoder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(value=VALUES, ascii=st.booleans())
def test_a_value_is_written_as_the_standard_library_writes_it(value: Any, ascii: bool) -> None:
    """Every value gives the same text, numbers that JSON does not have included."""
    expected = json.dumps(value, ensure_ascii=ascii, separators=(",", ":"))
    assert expected == json_encoder(ascii=ascii)(value)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_numbers_that_json_does_not_have_are_refused_on_request(value: Any) -> None:
    """Without `nan`, such a number raises ValueError."""
    with pytest.raises(ValueError):
        json_encoder(ascii=True, nan=False)(value)


def test_what_is_not_json_is_a_type_error_unless_a_default_knows_it() -> None:
    """A set is refused, or becomes what `default` makes of it."""
    with pytest.raises(TypeError):
        json_encoder(ascii=True)({1})
    assert json_encoder(ascii=True, default=lambda _: "a set")([{1}]) == '["a set"]'
