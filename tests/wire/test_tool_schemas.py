"""Tool schemas: passed on, put right, or the one tool left out, with the reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.wire.schema_refs import target
from runtime.wire.schemas import SIZE_LIMIT, PreparedSchema, prepare, prepare_text

ALL: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "schemas" / "cases.json").read_text(encoding="utf-8")
)["cases"]
META = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"n": schema}}
    return schema


def generated(how: dict[str, Any]) -> dict[str, Any]:
    match how["kind"]:
        case "many_described":
            words = ("word " * 2000)[: how["description_chars"]]
            fields = {f"f{i}": {"type": "string", "description": words} for i in range(how["fields"])}
            return {"type": "object", "properties": fields}
        case "deep":
            return deep(how["levels"])
        case _:
            values = [f"v{i}" for i in range(how["values"])]
            return {"type": "object", "properties": {"e": {"type": "string", "enum": values}}}


def below(schema: Any) -> list[tuple[dict[str, Any], int]]:
    found: list[tuple[dict[str, Any], int]] = []
    todo: list[tuple[Any, int]] = [(schema, 0)]
    while todo:
        node, depth = todo.pop()
        if not isinstance(node, dict):
            continue
        found.append((node, depth))  # pyright: ignore[reportUnknownArgumentType]
        for key in MAPS:
            todo += [(n, depth + 1) for n in node.get(key, {}).values()]  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
        for key in LISTS:
            todo += [(n, depth + 1) for n in node.get(key, [])]  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
        todo += [(node.get(key), depth + 1) for key in SINGLES]  # pyright: ignore[reportUnknownMemberType]
    return found


def check(schema: Any) -> None:
    """What both providers take."""
    assert schema["type"] == "object"
    assert isinstance(schema["properties"], dict)
    assert not set(schema) & {"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "if"}
    for node, depth in below(schema):
        assert depth <= 100
        types = node.get("type")
        if types == "array" or (isinstance(types, list) and "array" in types):
            assert isinstance(node.get("items"), dict | bool)
        assert node.get("enum") != []
        if "pattern" in node:
            assert not re.search(r"(?<!\\)\(\?(?:=|!|<=|<!)", node["pattern"])
            re.compile(node["pattern"])
        if "$ref" in node:
            assert target(schema, node["$ref"]) is not None
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in schema["properties"])
    assert len(json.dumps(schema, ensure_ascii=False, allow_nan=False).encode()) <= SIZE_LIMIT
    assert not list(META.iter_errors(schema))  # pyright: ignore[reportUnknownMemberType]


def sent(found: PreparedSchema) -> Any:
    assert found.schema is not None, found.why
    check(found.schema)
    return found.schema


@pytest.mark.parametrize("case", ALL, ids=[case["id"] for case in ALL])
def test_schemas_get_the_verdict_and_the_form_each_case_expects(case: dict[str, Any]) -> None:
    """The verdict is an accepted one; what is sent keeps the rules and accepts what it must."""
    if "schema_text" in case:
        found = prepare_text(case["schema_text"])
    else:
        found = prepare(generated(case["generate"]) if "generate" in case else case["schema"])
    assert found.verdict in case.get("accept", [case["expected"]]), found.why
    assert bool(found.why) == (found.verdict != "ok")
    if found.verdict == "quarantine":
        assert found.schema is None
        return
    validator = jsonschema.Draft202012Validator(sent(found))
    for instance in case["must_accept"]:
        assert validator.is_valid(instance), instance  # pyright: ignore[reportUnknownMemberType]
    if found.verdict == "ok":
        for instance in case["must_reject"]:
            assert not validator.is_valid(instance), instance  # pyright: ignore[reportUnknownMemberType]


def test_arguments_come_back_under_their_own_names() -> None:
    """A renamed argument is the tool's own again before the call."""
    found = prepare(
        {
            "type": "object",
            "properties": {"a b": {}, "a_b": {}, "ü": {}},
            "required": ["ü"],
            "dependentRequired": {"a b": ["ü"]},
        }
    )
    schema = sent(found)
    spaced, plain, umlaut = schema["properties"]
    assert plain == "a_b"
    assert schema["required"] == [umlaut]
    assert schema["dependentRequired"] == {spaced: [umlaut]}
    assert found.restore({spaced: 1, plain: 2, umlaut: 3}) == {"a b": 1, "a_b": 2, "ü": 3}


def test_references_to_a_renamed_argument_follow_it() -> None:
    """A pointer through a renamed property still leads there."""
    found = prepare({"type": "object", "properties": {"a b": {"type": "integer"}, "c": {"$ref": "#/properties/a%20b"}}})
    validator = jsonschema.Draft202012Validator(sent(found))
    assert not validator.is_valid({"c": "x"})  # pyright: ignore[reportUnknownMemberType]


NOWHERE: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}},
    },
    {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
    {"allOf": [{"$ref": "#"}], "type": "object"},
    {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object", "properties": {"x": {}}}]}},
    },
    {
        "type": "object",
        "properties": {"a": {"$ref": "#missing"}, "b": {"$ref": "file:///etc/passwd"}, "c": {"$dynamicRef": "#m"}},
    },
]


@pytest.mark.parametrize("schema", NOWHERE)
def test_references_that_lead_nowhere_are_dropped(schema: dict[str, Any]) -> None:
    """Circles without content, missing targets and remote ones; nothing is fetched, nothing runs for ever."""
    found = prepare(schema)
    validator = jsonschema.Draft202012Validator(sent(found))
    assert validator.is_valid({"a": 1, "b": 2, "x": 3})  # pyright: ignore[reportUnknownMemberType]
    assert found.verdict == "fix"


def test_branches_that_multiply_are_refused_in_time() -> None:
    """Thirty levels of two branches each are a quarantine and not an afternoon."""
    defs: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    defs["d30"] = {"type": "object"}
    found = prepare({"$ref": "#/$defs/d0", "$defs": defs})
    assert (found.verdict, "branches" in found.why) == ("quarantine", True)


@pytest.mark.parametrize("levels", [90, 500, 20_000])
def test_depth_costs_no_stack(levels: int) -> None:
    """Schemas nested to any depth are cut where they are too deep."""
    text = '{"type":"object","properties":{"n":' * levels + "{}" + "}}" * levels
    found = prepare_text(text)
    assert found.verdict == ("ok" if levels <= 100 else "fix")
    sent(found)
    if levels == 500:
        assert prepare(deep(levels)).verdict == "fix"


@pytest.mark.parametrize("text", ["", "{", "nope", '{"type":"object"}}', '{"a":NaN}', '{"x":Infinity}', "[" * 5000])
def test_text_that_is_no_json_is_a_quarantine(text: str) -> None:
    """One tool's broken schema is named, and nothing else happens."""
    found = prepare_text(text)
    assert found.verdict == "quarantine"
    assert found.why


def test_a_schema_too_large_in_every_way_is_left_out() -> None:
    """What no shortening brings below the limit is a quarantine."""
    many = {f"field_number_{i}": {"type": "string"} for i in range(5000)}
    found = prepare({"type": "object", "properties": many})
    assert (found.verdict, "64 KB" in found.why) == ("quarantine", True)


def test_a_python_value_that_is_no_json_is_a_quarantine() -> None:
    """A schema built in code may hold anything."""
    assert prepare({"type": "object", "properties": {"a": {"default": object()}}}).verdict == "quarantine"
    assert prepare({"type": "object", "properties": {1: {}}}).verdict == "quarantine"
    assert prepare(None).verdict == "quarantine"


KEYWORDS = [
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "allOf",
    "not",
    "enum",
    "const",
    "$ref",
    "$defs",
    "a",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "default",
    "description",
    "format",
    "if",
    "then",
    "prefixItems",
    "additionalItems",
    "dependentRequired",
    "$id",
    "$anchor",
    "examples",
    "uniqueItems",
    "dependencies",
]
SCALARS = ["", "string", "object", "^a$", "(?=x)", "[", "#", "#/$defs/a", "1", "\ud83d"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(SCALARS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "a b"]), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(ANY)
def test_any_schema_is_sent_in_a_form_all_take_or_not_at_all(schema: Any) -> None:
    """Whatever a server calls a schema, what is sent keeps every rule, and preparing it again changes nothing."""
    found = prepare(schema)
    if found.verdict != "quarantine":
        again = prepare(sent(found))
        assert (again.verdict, again.schema) == ("ok", found.schema)
