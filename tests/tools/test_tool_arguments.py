"""Whether arguments fit: the fast test never says more than jsonschema, and the words tell what to fix."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from runtime.tools._arguments import Arguments, plain_check

FLAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "start": {"type": "integer", "minimum": 1},
        "mode": {"type": "string", "enum": ["fast", "safe"]},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"old": {"type": "string"}},
                "required": ["old"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({"path": "a"}, None),
        ({"path": "a", "start": 2.0}, None),
        ({}, ["path: is required (string)"]),
        ({"path": 1}, ["path: must be text, got 1"]),
        ({"path": "a", "start": "2"}, ['start: must be a whole number, got "2"']),
        ({"path": "a", "start": True}, ["start: must be a whole number, got true"]),
        ({"path": "a", "start": 0}, ["start: 0 is less than the minimum of 1"]),
        ({"path": "a", "strat": 2}, ["strat: is unknown; did you mean 'start'?"]),
        ({"path": "a", "zzz": 2}, ["zzz: is unknown; there is only: path, start, mode, edits"]),
        ({"path": "a", "mode": "fats"}, ['mode: must be one of "fast", "safe"; got "fats"; did you mean \'fast\'?']),
        ({"path": "a", "edits": {}}, ["edits: must be a list, got {}"]),
        (
            {"path": "a", "edits": [{"old": "x"}, {"odl": "y"}]},
            ["edits[1].old: is required (string)", "edits[1].odl: is unknown; did you mean 'old'?"],
        ),
    ],
)
def test_the_words_tell_what_to_fix(arguments: dict[str, Any], faults: list[str] | None) -> None:
    """Each fault names the argument, what was wanted and what was sent."""
    fitted = Arguments(FLAT).fit(arguments)
    if faults is None:
        assert fitted is arguments
    else:
        assert isinstance(fitted, list)
        assert sorted(faults) == sorted(fitted)


def test_an_optional_argument_sent_as_null_is_left_out() -> None:
    """Models send null for what they mean to leave out; a required one still has to be there."""
    assert Arguments(FLAT).fit({"path": "a", "start": None}) == {"path": "a"}
    assert Arguments(FLAT).fit({"path": None}) == ["path: must be text, got null"]
    nullable = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    assert Arguments(nullable).fit({"a": None}) == {"a": None}


def test_a_flood_of_faults_and_a_large_value_are_cut() -> None:
    """The answer to a hopeless call stays short."""
    fitted = Arguments(FLAT).fit({"path": "a", "start": "x" * 10_000, **{f"k{i}": i for i in range(100)}})
    assert isinstance(fitted, list)
    assert len(fitted) <= 8
    assert sum(map(len, fitted)) < 2000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"type": "strange"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "properties": {"a": {"minLength": "x"}}},
    ],
)
def test_a_broken_schema_proves_nothing_and_fetches_nothing(schema: dict[str, Any]) -> None:
    """With a schema that cannot be used, the tool itself judges its arguments."""
    assert Arguments(schema).fit({"a": "x"}) == {"a": "x"}


def test_a_pattern_that_could_run_for_ages_is_left_to_the_tool() -> None:
    """A plain pattern is checked, one that may backtrack without end is not."""

    def schema(pattern: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}

    assert isinstance(Arguments(schema("^[a-z]+$")).fit({"a": "A"}), list)
    assert Arguments(schema("^(a+)+$")).fit({"a": "a" * 40 + "!"}) == {"a": "a" * 40 + "!"}
    keyed = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}, "^b": {"type": "string"}}}
    assert Arguments(keyed).fit({"a" * 40 + "!": 1}) == {"a" * 40 + "!": 1}
    assert isinstance(Arguments(keyed).fit({"b": 1}), list)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"type": "string", "pattern": "a"},
        {"type": "object", "patternProperties": {}},
        {"enum": [1, 2]},
        {"type": "integer", "enum": ["a"]},
        {"type": "array", "uniqueItems": True},
        {"type": "boolean", "minimum": 1},
        True,
    ],
)
def test_a_schema_that_is_not_plain_has_no_fast_test(schema: Any) -> None:
    """Only what the fast test fully understands does it judge."""
    assert plain_check(schema) is None


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(-3, 3), st.sampled_from(["", "a", "ab"]))


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2))


VALUES: st.SearchStrategy[Any] = st.recursive(SCALARS, grown, max_leaves=5)
BOUND = st.integers(-2, 2)
LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean", "null"])}),
    st.just({"type": ["string", "null"]}),
    st.fixed_dictionaries(
        {"type": st.just("string"), "enum": st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True)}
    ),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": BOUND, "maximum": BOUND}),
    st.fixed_dictionaries({"type": st.just("string")}, optional={"minLength": st.integers(0, 2)}),
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner, "minItems": st.integers(0, 2)})
    objects = st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
            "additionalProperties": st.one_of(st.booleans(), inner),
        }
    )
    both: st.SearchStrategy[Any] = st.one_of(lists, objects)
    return both


SCHEMAS = st.recursive(LEAVES, nested, max_leaves=4)


def is_valid(schema: dict[str, Any], value: Any) -> bool:
    validator: Any = Draft202012Validator(schema)
    return bool(validator.is_valid(value))


@given(schema=SCHEMAS, value=VALUES)
@settings(max_examples=300, deadline=None)
def test_the_fast_test_says_yes_only_where_jsonschema_does(schema: dict[str, Any], value: Any) -> None:
    """The compiled test and the library agree, but for whole numbers written as floats, which go the slow way."""
    accepts = plain_check(schema)
    valid = is_valid(schema, value)
    assert accepts is not None
    if accepts(value):
        assert valid
    elif valid:
        assert "." in repr(value)
