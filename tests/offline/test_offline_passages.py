"""How files are split into passages."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.passages import Passage, split_file


def passages(path: str, text: str) -> list[tuple[int, int, str]]:
    return [(each.start_line, each.end_line, each.heading) for each in split_file(path, textwrap.dedent(text))]


def test_prose_is_split_under_its_headings() -> None:
    """Paragraphs, items and rows each are a passage under headings, lead sentence and table header."""
    text = """\
        # Elenco

        One
        paragraph.

        ## Promises

        They are:

        - first
          goes on
        - second
          - below

        | promise | test |
        |---|---|
        | Ends | a.py |
        | Forgets | b.py |
        """
    assert [
        (3, 4, "Elenco"),
        (8, 8, "Elenco > Promises"),
        (10, 11, "Elenco > Promises > They are:"),
        (12, 12, "Elenco > Promises > They are:"),
        (13, 13, "Elenco > Promises > They are: > second"),
        (17, 17, "Elenco > Promises > They are: > promise | test"),
        (18, 18, "Elenco > Promises > They are: > promise | test"),
    ] == passages("README.md", text)


def test_code_fences_hide_what_looks_like_headings() -> None:
    """A code fence is a passage of its own and its comments are no headings."""
    text = "# A\n\n```sh\n# not a heading\nls\n```\n\nend\n"
    assert [(3, 6, "A"), (8, 8, "A")] == passages("a.md", text)


def test_underlined_headings_are_headings() -> None:
    """Underlined titles are headings, each mark a level."""
    text = "Title\n=====\n\nSub\n---\n\ntext\n\nOther\n=====\n\nmore\n"
    assert [(7, 7, "Title > Sub"), (12, 12, "Other")] == passages("a.rst", text)


def test_python_is_split_by_definitions() -> None:
    """Python is split by definitions, with decorators, under the names of class and function."""
    text = '''\
        """Module."""

        import x

        class Parser:
            """Doc."""

            @cached
            def words(self):
                return 1

        LIMIT = 3
        '''
    assert [
        (1, 1, ""),
        (3, 3, ""),
        (5, 6, "Parser"),
        (8, 10, "Parser.words"),
        (12, 12, ""),
    ] == passages("a.py", text)


def test_settings_stand_under_their_section_with_their_comment() -> None:
    """A setting stands under its section or outer keys, together with the comment above it."""
    toml = "[tool.ruff]\n# wide\nline-length = 120\n\n[tool.mypy]\nstrict = true\n"
    assert [(2, 3, "tool.ruff"), (6, 6, "tool.mypy")] == passages("a.toml", toml)
    yaml = "services:\n  worker:\n    image: x\n  web:\n    image: y\n"
    expected = [(1, 1, "services"), (2, 3, "services > worker"), (4, 5, "services > web")]
    assert expected == passages("a.yaml", yaml)


def test_rows_of_a_csv_file_stand_under_its_header() -> None:
    """The rows of a CSV file stand under its header."""
    assert [(2, 2, "name,age"), (3, 3, "name,age")] == passages("a.csv", "name,age\nann,3\nbob,4\n")


def test_other_languages_are_split_at_blank_lines() -> None:
    """Other languages are split at blank lines, under the last name that was defined."""
    text = "const A = 1;\n\nfunction draw(x) {\n  return x;\n}\n\nfn other() {}\n"
    assert [(1, 1, ""), (3, 5, "draw"), (7, 7, "other")] == passages("a.js", text)


PIECES = """
# Title
## Sub
text
goes on:
- item
  - below
1. one
| a | b |
|---|---|
```
====
---
> said
def f():
    x = 1
class A:
    \"\"\"Doc
    \"\"\"
key: value
outer:
[section]
# remark
@wrap
a,b
}
function f() {
\tx
é\u2028x\x0cy
"""
LINES = st.sampled_from(PIECES.split("\n"))
SUFFIXES = st.sampled_from([".md", ".py", ".toml", ".csv", ".js", ".rst", ""])


@settings(max_examples=300)
@given(st.lists(LINES, max_size=30), SUFFIXES, st.sampled_from(["\n", "\r\n"]))
def test_passages_are_whole_lines_in_order(lines: list[str], suffix: str, end: str) -> None:
    """Whatever a file holds, its passages are whole lines, in order, none twice, and each has text."""
    found = split_file(f"a{suffix}", end.join(lines))
    last = 0
    for passage in found:
        assert last < passage.start_line <= passage.end_line <= max(1, len(lines))
        assert "\n".join(lines[passage.start_line - 1 : passage.end_line]) == passage.text
        assert passage.text.strip()
        last = passage.end_line


@settings(max_examples=200)
@given(st.lists(LINES, max_size=30), st.sampled_from([".py", ".js"]))
def test_no_line_of_code_is_lost(lines: list[str], suffix: str) -> None:
    """Every line of code that is not blank is in some passage."""
    found = split_file(f"a{suffix}", "\n".join(lines))
    covered = {number for each in found for number in range(each.start_line, each.end_line + 1)}
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= covered


@pytest.mark.parametrize("path", ["a.md", "a.py", "a.toml", "a.csv", "a.js", "LICENSE"])
def test_an_empty_file_has_no_passages(path: str) -> None:
    """An empty file has no passages."""
    empty: list[Passage] = []
    assert empty == split_file(path, "")
