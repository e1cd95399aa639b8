"""Diffs of changed files: they say exactly what changed, and never take long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools import diff as diff_module
from runtime.tools.diff import MAX_DIFF_CHARS, unified


def patched(before: str, diff: str) -> str:
    """Apply a unified diff in the plainest way, checking every line it claims to see."""
    old = before.splitlines(True)
    new: list[str] = []
    at = 0
    body = diff.splitlines(True)[2:]
    for index, line in enumerate(body):
        bare = index + 1 < len(body) and body[index + 1].startswith("\\")
        text = line[1:].removesuffix("\n") if bare else line[1:]
        if line.startswith("@@"):
            start, count = re.match(r"@@ -(\d+)(?:,(\d+))?", line).groups()  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
            first = int(start) - (count != "0")
            new += old[at:first]
            at = first
        elif line.startswith("-"):
            assert old[at] == text
            at += 1
        elif line.startswith("+"):
            new.append(text)
        elif line.startswith(" "):
            assert old[at] == text
            new.append(text)
            at += 1
    return "".join(new + old[at:])


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d\r\n"]), max_size=25).map("".join)
TEXTS = st.tuples(LINES, st.sampled_from(["", "x"])).map("".join)


@given(before=TEXTS, after=TEXTS, limit=st.sampled_from([0, 1_000_000]))
@settings(deadline=None)
def test_a_diff_makes_the_old_text_into_the_new_one(before: str, after: str, limit: int) -> None:
    """Line by line or as one block, applying the diff gives the new content."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diff_module, "_MAX_WORK", limit)
        diff = unified("p", before.encode(), after.encode())
    assert after == (patched(before, diff) if diff else before)


def test_new_and_deleted_files_show_as_dev_null() -> None:
    """A file that was not there, or is gone, has /dev/null on that side."""
    assert unified("a.txt", None, b"x\n") == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"
    assert unified("a.txt", b"x\n", None) == "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    assert unified("a.png", b"\0", b"\0\0") == "Binary file a.png changed\n"


def test_a_small_change_deep_in_a_large_file_has_the_right_line_numbers() -> None:
    """What is the same at both ends is not compared, and the numbers are still those of the file."""
    lines = [f"{number}\n" for number in range(1, 50_001)]
    before = "".join(lines).encode()
    lines[39_999] = "new\n"
    diff = unified("p", before, "".join(lines).encode())
    assert "@@ -39997,7 +39997,7 @@" in diff
    assert len(diff.splitlines()) == 11


def test_files_with_nothing_in_common_are_one_block() -> None:
    """A rewrite is not compared line by line, and a huge diff is cut."""
    before = "".join(f"a{number}\n" for number in range(20_000)).encode()
    after = "".join(f"b{number}\n" for number in range(20_000)).encode()
    diff = unified("p", before, after)
    assert "@@ -1,20000 +1,20000 @@" in diff
    assert len(diff) < MAX_DIFF_CHARS + 200
    assert "left out" in diff
