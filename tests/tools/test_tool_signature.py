"""What a function's hints and docstring become, and what is refused with a reason."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import attrs
import pytest

from runtime.tools import SignatureError, Tool, ToolContext, tool
from runtime.tools._signature import read_docstring


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Place(TypedDict):
    """A place.

    Attributes:
        line: Counted from 1.
    """

    path: str
    line: NotRequired[int]


@attrs.frozen
class Edit:
    """One change.

    Attributes:
        old: What to replace.
    """

    old: str
    new: Annotated[str, "What to put there."] = ""
    colours: tuple[Colour, ...] = ()


@dataclass
class Point:
    x: int
    y: float = 0.5


Id = NewType("Id", int)


def schema_of(hint: Any) -> Any:
    def function(value: Any) -> None:
        """Do."""

    function.__annotations__["value"] = hint
    return tool(function).parameters["properties"]["value"]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (Id, {"type": "integer"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (Mapping[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"type": ["integer", "null"]}),
        (list[str] | None, {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Place,
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "line": {"type": "integer", "description": "Counted from 1."},
                },
                "required": ["path"],
                "additionalProperties": False,
            },
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.5}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_hint_becomes_its_schema(hint: Any, expected: Any) -> None:
    """Each kind of hint has one schema."""
    assert expected == schema_of(hint)


class Chain(TypedDict):
    next: Chain


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (bytes, "bytes has no JSON Schema"),
        (dict[int, str], "keys of a JSON object are strings, not int"),
        (tuple[int, str], "use a class"),
        (Edit | Point, "cannot be told apart"),
        (Chain, "contains itself"),
        (list[complex], "(its items): complex"),
        (Literal[b"x"], "a choice must be"),
    ],
)
def test_a_hint_without_a_schema_is_refused_by_name(hint: Any, why: str) -> None:
    """What JSON Schema cannot say is an error that names the argument."""
    with pytest.raises(SignatureError) as caught:
        schema_of(hint)
    assert why in str(caught.value)
    assert "argument 'value'" in str(caught.value)


def test_signatures_that_cannot_be_called_by_name_are_refused() -> None:
    """Arguments without a hint, positional ones, * and **, and descriptions of nothing are errors."""

    def no_hint(a: int) -> None: ...

    del no_hint.__annotations__["a"]

    def by_place(a: int, /) -> None: ...

    def many(*a: int) -> None: ...

    def described(a: int) -> None:
        """Do.

        Args:
            b: Not there.
        """

    functions: list[tuple[Callable[..., None], str]] = [
        (no_hint, "no type hint"),
        (by_place, "by name"),
        (many, "name each"),
        (described, "b, which"),
    ]
    for function, why in functions:
        with pytest.raises(SignatureError, match=why):
            tool(function)


def test_a_docstring_gives_the_descriptions() -> None:
    """What stands before the sections describes the tool, each entry of Args its argument, over several lines."""

    @tool(effects="none")
    def look(ctx: ToolContext, path: str, depth: int = 2, colour: Colour = Colour.RED, note: str | None = None) -> str:
        """Look at a thing.

        It may be large.

        Args:
            path: Where it is,
                as seen from the top: relative.
            depth (int): How far down.

        Returns:
            What was seen.
        """
        return f"{ctx.call_id}{path}{depth}{colour}{note}"

    assert look.description == "Look at a thing.\n\nIt may be large."
    assert look.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is, as seen from the top: relative."},
            "depth": {"type": "integer", "description": "How far down.", "default": 2},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "note": {"type": "string"},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert look.takes_context
    assert not look.is_async


def test_values_reach_the_function_as_its_types() -> None:
    """Classes, enums, tuples and whole numbers written as 5.0 are what the function asked for."""

    def change(edits: list[Edit], point: Point, colours: set[Colour], n: int, by: dict[str, Place]) -> None:
        """Change."""

    convert = tool(change).convert
    assert convert is not None
    converted = convert(
        {
            "edits": [{"old": "a", "colours": ["red"]}],
            "point": {"x": 5.0},
            "colours": ["blue", "blue"],
            "n": 2.0,
            "by": {"k": {"path": "p", "line": 1.0}},
        }
    )
    assert converted == {
        "edits": [Edit("a", "", (Colour.RED,))],
        "point": Point(5, 0.5),
        "colours": {Colour.BLUE},
        "n": 2,
        "by": {"k": {"path": "p", "line": 1}},
    }
    assert type(converted["n"]) is int


def test_a_docstring_without_sections_is_all_description() -> None:
    """Colons in prose are no arguments, and sections other than Args are left out."""
    assert read_docstring("Do this: now.\n\nx: y") == ("Do this: now.\n\nx: y", {})
    assert read_docstring("Do.\n\nRaises:\n    Error: never") == ("Do.", {})
    assert read_docstring("Args:\n    a: One\n    b:\n        Two\n        three: four") == (
        "",
        {"a": "One", "b": "Two three: four"},
    )
    assert read_docstring(inspect.getdoc(Edit) or "")[1] == {"old": "What to replace."}


def test_a_tool_that_contradicts_itself_is_refused() -> None:
    """Names that no provider takes, and retries of what may run only once, are errors at once."""

    def run() -> str:
        return ""

    with pytest.raises(ValueError, match="tool name 'a b'"):
        Tool("a b", "", {}, run)
    with pytest.raises(ValueError, match="may be retried"):
        Tool("a", "", {}, run, retries=1)


def test_the_guard_sees_honest_flags() -> None:
    """read_only is effects none; mutates is progress and not read_only; notes may say that they are no progress."""

    def run() -> str:
        return ""

    flags = [
        (Tool("a", "", {}, run, effects="none"), True, False),
        (Tool("a", "", {}, run, effects="none", progress=True), True, False),
        (Tool("a", "", {}, run, effects="idempotent"), False, True),
        (Tool("a", "", {}, run), False, True),
        (Tool("a", "", {}, run, progress=False), False, False),
    ]
    for each, read_only, mutates in flags:
        assert (read_only, mutates) == (each.read_only, each.mutates)
