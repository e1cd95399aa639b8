"""Searching: what is found, what is left out, and that no pattern stops the runtime."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.messages import ToolCall
from runtime.policy.paths import Workspace
from runtime.tools import ToolBox, ToolContext, _grep
from runtime.tools._grep import Match, Matcher, TooSlow, around
from runtime.tools._regex import cost
from runtime.tools.search import MAX_MATCHES, SEARCH_TOOLS

BOX = ToolBox(SEARCH_TOOLS)


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def foo():\n    return 'x'\n")
    (tmp_path / "b.md").write_bytes("Größe foo\r\nbar\r\n".encode())
    (tmp_path / "c.bin").write_bytes(b"foo\0")
    (tmp_path / "d.log").write_text("foo\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    return ToolContext(Workspace(tmp_path))


async def said(ctx: ToolContext, **arguments: Any) -> list[str]:
    result = await BOX.run(ToolCall("c", "search_text", arguments), ctx)
    return [("error: " if result.is_error else "") + line for line in result.content.splitlines()]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("foo", ["b.md:1: Größe foo", "src/a.py:1: def foo():"]),
        ("(?i)GRÖSSE|größe", ["b.md:1: Größe foo"]),
        ("^bar$", ["b.md:2: bar"]),
        (r"\Abar\Z", ["b.md:2: bar"]),
        ("^ +return", ["src/a.py:2:     return 'x'"]),
        (r"(\w+)\(.*\):$", ["src/a.py:1: def foo():"]),
        ("(?<=def )f(o)\\1", ["src/a.py:1: def foo():"]),
        ("nothing", ["no match for nothing in 3 files"]),
        ("[[x]", ["src/a.py:2:     return 'x'"]),
    ],
)
async def test_lines_are_found_with_path_and_number(ctx: ToolContext, pattern: str, expected: list[str]) -> None:
    """Plain patterns and those that need a process of their own give the same kind of answer."""
    assert expected == await said(ctx, pattern=pattern)


async def test_one_file_or_folder_can_be_searched(ctx: ToolContext) -> None:
    """A named file is searched even if git ignores it; a folder limits the search."""
    assert await said(ctx, pattern="foo", path="d.log") == ["d.log:1: foo"]
    assert await said(ctx, pattern="foo", path="src") == ["src/a.py:1: def foo():"]
    assert await said(ctx, pattern="foo", path="no") == ["error: 'no' does not exist"]
    assert await said(ctx, pattern="foo", path="..") == ["error: '..' is outside the workspace"]


async def test_what_rules_keep_out_is_counted(ctx: ToolContext) -> None:
    """Files the agent may not read are passed over, and the answer says that there are some."""
    ctx = ToolContext(ctx.workspace, readable=lambda path: path != "b.md")
    assert await said(ctx, pattern="foo") == [
        "src/a.py:1: def foo():",
        "[not searched, permission rules: 1 file]",
    ]


async def test_a_wrong_pattern_is_explained(ctx: ToolContext) -> None:
    """What is no regular expression gets the reason and the way out."""
    (line,) = await said(ctx, pattern="foo(")
    assert line.startswith("error: 'foo(' is no regular expression: missing ), unterminated subpattern at position 3")
    assert "more than 1000 characters" in (await said(ctx, pattern="x" * 1001))[0]


@pytest.mark.parametrize("pattern", ["x", "x+ ?y*"])
async def test_too_many_matches_are_cut(ctx: ToolContext, tmp_path: Path, pattern: str) -> None:
    """The first matches are shown, and that there are more."""
    (tmp_path / "many").write_text("x\n" * 1000)
    lines = await said(ctx, pattern=pattern, path="many")
    assert (len(lines), lines[-2]) == (MAX_MATCHES + 1, f"many:{MAX_MATCHES}: x")
    assert lines[-1].startswith("[only the first")


async def test_a_catastrophic_pattern_is_stopped(
    ctx: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern that backtracks without end costs its time and no more; meanwhile the runtime goes on."""
    monkeypatch.setattr(_grep, "MAX_SECONDS", 0.3)
    (tmp_path / "e").write_text("a" * 60 + "!")
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await trio.sleep(0.01)
            turns += 1

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            (line,) = await said(ctx, pattern="^(a+)+$", path="e")
            nursery.cancel_scope.cancel()
    assert "use a simpler pattern" in line
    assert turns > 3


def children() -> set[str]:
    """The processes below this one, where the system can tell."""
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        found |= set(task.read_text().split())
    return found


async def test_a_cancelled_search_leaves_no_process(ctx: ToolContext, tmp_path: Path) -> None:
    """Cancelling a search that hangs in a process ends the process with it."""
    (tmp_path / "e").write_text("a" * 60 + "!")
    before = children()
    with trio.fail_after(20), trio.move_on_after(0.3) as scope:
        await said(ctx, pattern="^(a+)+$", path="e")
    assert scope.cancelled_caught
    assert before == children()


def test_a_long_line_is_cut_around_its_match() -> None:
    """The match is always in what is shown."""
    assert around("short", 2) == "short"
    line = "a" * 1000 + "needle" + "b" * 1000
    assert "needle" in around(line, 1000)
    assert len(around(line, 1000)) == _grep.MAX_LINE_CHARS + 2
    assert around(line, 0).startswith("aaa")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("foo", "linear"),
        ("foo|bar", "linear"),
        (r"\(x\)\*", "linear"),
        ("[*+)(]", "linear"),
        ("[]*]x?", "linear"),
        ("a{3}", "linear"),
        ("(?:a|b)c", "linear"),
        ("def \\w+", "quadratic"),
        ("x.*?y", "quadratic"),
        ("a{2,}", "quadratic"),
        ("a{1,50}", "quadratic"),
        ("a.*b.*c", "unknown"),
        ("(a+)+", "unknown"),
        ("(a|aa)+$", "unknown"),
        ("(a?){30}", "unknown"),
        ("a{1000}", "unknown"),
        ("a?" * 20, "unknown"),
        ("(a|a)" * 20, "unknown"),
        ("(a)\\1", "unknown"),
        ("(?=a)b", "unknown"),
        ("a{1,50}b{1,50}", "unknown"),
    ],
)
def test_only_what_is_plainly_cheap_counts_as_cheap(pattern: str, expected: str) -> None:
    """The guess errs on the side of unknown."""
    assert expected == cost(pattern)


PIECES = st.sampled_from(["a", "b", "a+", "b*", "(a|b)", "^", "$", "[^a]", ".", "a?", "\\s", "(?i)"])


@given(
    pieces=st.lists(PIECES, min_size=1, max_size=4),
    lines=st.lists(st.text("abB c", max_size=6), max_size=8),
    limit=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_every_way_finds_the_lines_that_match_one_by_one(pieces: list[str], lines: list[str], limit: int) -> None:
    """Whether a pattern runs here or in its own process, the matches are those of each line alone."""
    flag = "(?i)" if "(?i)" in pieces else ""
    pattern = flag + "".join(piece for piece in pieces if piece != "(?i)")
    text = "\r\n".join(lines)
    matcher = Matcher(pattern, limit, lambda: None)
    found = [*matcher.search("f", text), *matcher.finish()]
    expected = [Match("f", number, line) for number, line in enumerate(lines or [""], 1) if re.search(pattern, line)]
    assert expected[:limit] == found


def test_a_deadline_holds_for_patterns_that_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a cheap pattern over very much text ends in its time."""
    monkeypatch.setattr(_grep, "MAX_SECONDS", -1.0)
    with pytest.raises(TooSlow):
        list(Matcher("a", 10**9, lambda: None).search("f", "a\n" * 1000))
