"""What a glob matches: a table, a naive twin, and patterns made to be slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.policy.globs import MAX_ALTERNATIVES, GlobError, compile_glob, expand_braces

TABLE = [
    ("*.py", "a.py", True),
    ("*.py", "src/deep/a.py", True),
    ("./*.py", "a.py", True),
    ("./*.py", "src/a.py", False),
    ("/a", "x/a", False),
    ("src/*.py", "src/a.py", True),
    ("src/*.py", "src/x/a.py", False),
    ("src/**/*.py", "src/a.py", True),
    ("src/**/*.py", "src/x/y/a.py", True),
    ("**/test_*", "a/test_b", True),
    ("secrets/**", "secrets", True),
    ("secrets/**", "secrets/a/b", True),
    ("secrets/**", "secretsx/a", False),
    ("secrets/", "secrets/a", True),
    ("secrets/", "secrets", True),
    ("**", ".", True),
    ("**", "a/b", True),
    (".", ".", True),
    (".", "a", False),
    ("a/**/**/b", "a/b", True),
    ("?.txt", "é.txt", True),
    ("?.txt", "ab.txt", False),
    ("[!a]b", "cb", True),
    ("[!a]b", "ab", False),
    ("docs/*.{md,txt}", "docs/a.txt", True),
    ("docs/*.{md,txt}", "docs/a.rst", False),
    ("{a,b/**}", "b/c/d", True),
    ("{}", "{}", True),
    ("{a}", "{a}", True),
    ("*", "a/b/c", True),
    (".*", "x/.env", True),
    ("A", "a", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), TABLE)
def test_a_glob_matches_what_the_table_says(pattern: str, path: str, expected: bool) -> None:
    """Globs mean what people expect of them."""
    assert expected == compile_glob(pattern)(path)


@pytest.mark.parametrize("pattern", ["", "../a", "a/../b", "{a,b}" * 10])
def test_a_glob_that_cannot_be_used_is_an_error(pattern: str) -> None:
    """Empty patterns, patterns that go up, and floods of alternatives are refused."""
    with pytest.raises(GlobError):
        compile_glob(pattern)


def test_braces_nest_and_multiply() -> None:
    """Alternatives within alternatives are all tried, in the order written."""
    assert expand_braces("{a,b{1,2}}x") == ["ax", "b1x", "b2x"]
    assert len(expand_braces("{a,b}{a,b}{a,b}")) == 8 < MAX_ALTERNATIVES


def test_a_hostile_glob_is_not_slow() -> None:
    """Stars without number against a long path come to an end at once."""
    assert not compile_glob("**/" * 50 + "*a" * 50 + "b")("/".join(["a" * 100] * 40))


PART = st.sampled_from(["a", "b", "ab", "*", "**", "?", "a*", "*b"])


@given(
    pattern=st.lists(PART, min_size=1, max_size=5),
    path=st.lists(st.sampled_from(["a", "b", "ab", "ba"]), min_size=1, max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_matching_agrees_with_one_big_regular_expression(pattern: list[str], path: list[str]) -> None:
    """Part by part gives the same as the obvious translation of the whole pattern."""
    translated = "".join(
        "(?:[^/]+/)*" if part == "**" else part.replace("*", "[^/]*").replace("?", "[^/]") + "/" for part in pattern
    )
    expected = re.fullmatch(translated, "/".join(path) + "/") is not None
    assert expected == compile_glob("/" + "/".join(pattern))("/".join(path))
