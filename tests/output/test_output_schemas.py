"""Output schemas: what is wrong with one is told at its place, and a value is held against it without fetching."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import DefinitionError, UsageError
from runtime.output.place import load_schema
from runtime.output.schema import faults_of_schema, is_bounded, value_faults

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ("", 1, "the file is empty"),
        ("{\n  oops", 2, "not valid JSON: Expecting property name"),
        ("[1, 2]", 1, "a schema is an object"),
        ('{\n "type": "strin"\n}', 2, "not a valid JSON Schema: type: 'strin'"),
        (
            '{\n\t"type": "object",\n\t"properties": {"a": {"type": 7}}\n}',
            3,
            "not a valid JSON Schema: properties.a.type",
        ),
        ('{\n "$ref": "https://example.com/s.json"\n}', 2, "is remote, and nothing is fetched"),
        ('{\n "properties": {\n  "a": {"$ref": "#/$defs/no"}\n }\n}', 3, "leads nowhere"),
        ('{\n "properties": {"a":\n  {"pattern": "("}}\n}', 3, "the pattern '(' cannot be read"),
        ('{\n "x": NaN\n}', 2, "nan is no JSON value"),
        ('{\n "$schema": "https://example.com/draft"\n}', 2, "names no draft known here"),
        ('{\n "$schema": "http://[bad"\n}', 2, "names no draft known here"),
        ('{\n "$schema": 5\n}', 2, "names no draft known here"),
        ('{"$ref": "#"}', 1, "refers to itself without end"),
        ('{"allOf": [{"anyOf": [{"$ref": "#"}]}]}', 1, "refers to itself without end"),
        ("{" + '"not":{' * 120 + "}" * 121, 1, "nested more than 100 levels deep"),
        ('{"description": "' + "x" * 70_000 + '"}', 1, "larger than 64 KB"),
    ],
)
def test_a_faulty_schema_file_is_told_with_its_line(tmp_path: Path, content: str, line: int, text: str) -> None:
    """Every fault has the line it stands on."""
    file = tmp_path / "s.json"
    file.write_text(content)
    with pytest.raises(DefinitionError) as caught:
        load_schema(file)
    assert line == caught.value.faults[0].line
    assert text in caught.value.faults[0].text


def test_a_schema_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """No file, a folder in its place, bytes that are no text: one line each."""
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "f" / "x.json"):
        with pytest.raises(UsageError, match=re.escape(str(path))):
            load_schema(path)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(DefinitionError, match="not UTF-8"):
        load_schema(tmp_path / "b.json")


def test_a_property_may_be_called_like_a_keyword() -> None:
    """`$ref` and `pattern` as names of properties are no references and no patterns."""
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}, "enum": {}}}
    assert [] == faults_of_schema(schema)
    assert [] == value_faults(schema, {"$ref": "http://x", "pattern": "("})


@pytest.mark.parametrize("name", ["enum", "const", "properties", "patternProperties", "$defs"])
def test_below_a_property_called_like_a_keyword_faults_are_found(name: str) -> None:
    """What stands below a property with a keyword's name is a schema, and looked at as any other."""
    for fault in ({"$ref": "#/$defs/no"}, {"pattern": "("}):
        (found,) = faults_of_schema({"properties": {name: fault}})
        assert ("properties", name, *fault) == found.path


def test_an_older_draft_is_read_as_what_it_says_it_is() -> None:
    """`$schema` chooses the draft: in draft 7 `items` may be a list."""
    schema: dict[str, Any] = {"$schema": DRAFT_7, "items": [{"type": "integer"}]}
    assert [] == faults_of_schema(schema)
    assert ['[0]: must be a whole number, got "x"'] == value_faults(schema, ["x"])
    del schema["$schema"]
    assert faults_of_schema(schema)


@pytest.mark.parametrize(
    ("schema", "bounded"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]$"}}}, True),
        ({"type": "string", "pattern": "(a+)+$"}, False),
        ({"patternProperties": {"(a+)+$": {}}}, False),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"$schema": DRAFT_7, "items": [{"pattern": "(a+)+$"}]}, False),
        ({"$schema": DRAFT_7, "dependencies": {"a": {"properties": {"b": {"pattern": "(a+)+$"}}}}}, False),
    ],
)
def test_what_could_take_for_ever_is_known_beforehand(schema: dict[str, Any], bounded: bool) -> None:
    """References and patterns that search are not held against a value in this process."""
    assert bounded is is_bounded(schema)


def test_a_fault_names_its_place_and_what_is_wanted() -> None:
    """The words tell a model what to put right."""
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"enum": ["low", "high"]}}},
        "required": ["items", "n"],
        "additionalProperties": False,
    }
    assert {
        "n: is required",
        "m: is unknown; there is only: items",
        'items[1]: must be one of "low", "high"; got "hihg"; did you mean \'high\'?',
    } == set(value_faults(schema, {"items": ["low", "hihg"], "m": 1}))
