"""Unified diffs are read as they come, and applied exactly or not at all."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.tools.diff import unified
from runtime.tools.document import Document, read_document
from runtime.tools.patch import FilePatch, PatchError, apply_hunks, read_patch

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- x", "+ y", "@@ z", " w", "\\ n", "---", "+++ q"]), max_size=12)


def whole(lines: list[str], ended: bool) -> str:
    return "\n".join(lines) + ("\n" if ended and lines else "")


def applied(patch: str, text: str) -> str:
    (file,) = read_patch(patch)
    return apply_hunks(Document(text), file.hunks, "f").text


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_a_diff_of_two_texts_leads_from_one_to_the_other(
    old: list[str], new: list[str], old_ended: bool, new_ended: bool, context: int
) -> None:
    """Whatever difflib writes, with any context, is read and applied; reversed it leads back."""
    before, after = whole(old, old_ended), whole(new, new_ended)
    rows = [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(
            [f"{line}\n" for line in before.split("\n")][:-1] + [x for x in [before.rpartition("\n")[2]] if x],
            [f"{line}\n" for line in after.split("\n")][:-1] + [x for x in [after.rpartition("\n")[2]] if x],
            "a/f",
            "b/f",
            n=context,
        )
    ]
    if not rows:
        return
    patch = "".join(rows)
    assert applied(patch, before) == after
    (file,) = read_patch(patch)
    assert apply_hunks(Document(after), [hunk.reversed for hunk in file.hunks], "f").text == before


@given(LINES, LINES)
@settings(max_examples=150, deadline=None)
def test_our_own_diffs_can_be_applied(old: list[str], new: list[str]) -> None:
    """The diff that a change reports is a patch that makes the same change."""
    before, after = whole(old, True), whole(new, True)
    patch = unified("f", before.encode(), after.encode())
    if patch:
        assert applied(patch, before) == after


@given(LINES, LINES, st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_a_patch_cut_anywhere_is_read_or_refused(old: list[str], new: list[str], cut: int) -> None:
    """A patch that ends too early never raises anything but PatchError, nor does applying it."""
    patch = unified("f", whole(old, True).encode(), whole(new, True).encode())[:cut]
    try:
        for file in read_patch(patch):
            apply_hunks(Document(whole(old, True)), file.hunks, "f")
    except PatchError:
        pass


@given(st.text(alphabet="-+ @\\abd/\n,0123", max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_patch_or_a_plain_refusal(text: str) -> None:
    """No text makes the reader fail in any other way than by PatchError."""
    try:
        read_patch(text)
    except PatchError as error:
        assert str(error)


def test_wrong_counts_are_forgiven_and_content_is_not() -> None:
    """A hunk whose counts or line numbers are wrong applies where its lines stand; one whose lines differ does not."""
    text = "one\ntwo\nthree\nfour\n"
    wrong = "--- a/f\n+++ b/f\n@@ -1,9 +1,2 @@\n two\n-three\n+3\n four\n"
    assert applied(wrong, text) == "one\ntwo\n3\nfour\n"
    assert applied(wrong.replace("-1,9 +1,2", "-77,3 +77,3"), text) == "one\ntwo\n3\nfour\n"
    assert applied(wrong.replace("@@ -1,9 +1,2 @@", "@@"), text) == "one\ntwo\n3\nfour\n"
    with pytest.raises(PatchError, match=r"hunk 1 of 1 for f does not fit(.|\n)*2\ttwo"):
        applied(wrong.replace("-three", "-threee"), text)


def test_a_hunk_that_fits_twice_needs_its_line_numbers() -> None:
    """Where the lines stand several times, the stated line decides; a wrong one is refused with the places."""
    text = "x\ny\nx\ny\n"
    assert applied("--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n x\n-y\n+z\n", text) == "x\ny\nx\nz\n"
    with pytest.raises(PatchError, match="fits at lines 1, 3"):
        applied("--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n x\n-y\n+z\n", text)


def test_later_hunks_follow_the_shift_of_earlier_ones() -> None:
    """When the first hunk is found lower than stated, the next one is looked for as much lower first."""
    text = "new\nnew\na\nb\nb\nc\nb\n"
    patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-b\n+B\n"
    assert applied(patch, text) == "new\nnew\nA\nb\nB\nc\nb\n"


@pytest.mark.parametrize(
    ("patch", "files"),
    [
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", [("x", "x")]),
        ("--- x\t2020-01-01\n+++ x\t2020-01-02\n@@ -1 +1 @@\n-a\n+b\n", [("x", "x")]),
        ("--- /dev/null\n+++ b/n/x\n@@ -0,0 +1 @@\n+b\n", [(None, "n/x")]),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n", [("x", None)]),
        (
            '--- "a/\\303\\251 \\"q\\".txt"\n+++ "b/\\303\\251 \\"q\\".txt"\n@@ -1 +1 @@\n-a\n+b\n',
            [('é "q".txt', 'é "q".txt')],
        ),
        ("diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n", [("o", "n")]),
        ("diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n", [(None, "e")]),
        ("diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\n", [("e", None)]),
        (
            "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@ def f():\n-a\n+b\n"
            "diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.1\n",
            [("x", "x"), ("y", "y")],
        ),
        ("Some words first.\n\n```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", [("x", "x")]),
    ],
)
def test_names_are_read_in_every_form(patch: str, files: list[tuple[str | None, str | None]]) -> None:
    """Plain diffs, git's with quotes and renames, new and removed files."""
    assert [(file.old, file.new) for file in read_patch(patch)] == files
    assert [(file.old, file.new) for file in read_patch(patch.replace("\n", "\r\n"))] == files


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("", "names no file"),
        ("*** Begin Patch\n", "names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk without"),
        ("--- a/x\n+++ b/x\n", "no hunk for x"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\nwhat\n", "begins with none of"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "only content and names change"),
        ("diff --git a/x b/x\nGIT binary patch\n", "binary"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "changes nothing"),
    ],
)
def test_what_cannot_be_applied_is_refused_with_its_line(patch: str, why: str) -> None:
    """Patches of other kinds, and broken ones, are refused in words."""
    with pytest.raises(PatchError, match=why):
        read_patch(patch)


def test_a_patch_keeps_line_ends_and_the_missing_newline() -> None:
    """A patch written with plain newlines applies to CRLF lines, and says nothing about an end it does not mark."""
    text = read_document(b"a\r\nb\r\nc")
    (file,) = read_patch("--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n")
    assert apply_hunks(text, file.hunks, "f").encode() == b"a\r\nB\r\nB2\r\nc"


def test_a_move_has_no_hunks() -> None:
    """A pure rename is a file patch without hunks."""
    assert read_patch("diff --git a/o b/n\nrename from o\nrename to n\n") == (FilePatch("o", "n"),)
