"""The tools that change a part of a file: exact, over what was read, told so that the next try succeeds."""

from __future__ import annotations

import os
import stat
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.messages import ToolCall
from runtime.tools import Problem
from runtime.tools.changes import MAX_EDIT_BYTES
from runtime.tools.document import Document, exchanged, inserted, removed
from runtime.tools.near import hint

FIVE = "one\ntwo\nthree\nfour\nfive\n"


async def test_a_unique_text_is_replaced_and_shown(desk: Any) -> None:
    """The answer shows the lines as they are now; the change is reported with its diff."""
    await desk.known("f.txt", FIVE)
    said = await desk.said("edit_file", path="f.txt", old_text="three\nfour", new_text="3\n3.5\n4")
    assert said == "changed f.txt; lines 1-6 of 6 now:\n1\tone\n2\ttwo\n3\t3\n4\t3.5\n5\t4\n6\tfive"
    assert desk.files() == {"f.txt": b"one\ntwo\n3\n3.5\n4\nfive\n"}
    ((path, before, after, diff),) = desk.changes
    assert (path, before, after) == ("f.txt", FIVE.encode(), b"one\ntwo\n3\n3.5\n4\nfive\n")
    assert diff.startswith("--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,6 @@\n one\n two\n-three\n")
    again = await desk.said("edit_file", path="f.txt", old_text="3.5\n", new_text="")
    assert "4\t4" in again


async def test_a_text_that_is_there_twice_needs_more_around_it(desk: Any) -> None:
    """The lines where it stands are named; replace_all takes them all."""
    await desk.known("f", "x = 1\ny = 2\nx = 1\n")
    why = await desk.fault("edit_file", path="f", old_text="x = 1", new_text="x = 3")
    assert "is in f 2 times, at lines 1, 3" in why
    assert desk.changes == []
    assert "changed f in 2 places" == await desk.said(
        "edit_file", path="f", old_text="x = 1", new_text="x = 3", replace_all=True
    )
    assert desk.files()["f"] == b"x = 3\ny = 2\nx = 3\n"
    await desk.known("o", "aaa\n")
    assert "2 times" in await desk.fault("edit_file", path="o", old_text="aa", new_text="b")


@pytest.mark.parametrize(
    ("text", "wanted", "said"),
    [
        ("def f():\n\treturn 1\n", "def f():\n    return 1", "Only white space differs from lines 1-2"),
        ("def f():\n    return 1\n", "1\tdef f():\n2\t    return 1", "line numbers"),
        ('say("a\\n")\nx\n', 'say(\\"a\\\\n\\")', "escaped once too often: as plain text it is at line 1"),
        (
            "total = price * count\nother\n",
            "total = price * counts",
            "The closest lines are:\n1\ttotal = price * count",
        ),
        ("alpha\nbeta\n", "zzz qqq", "Nothing in the file is like it"),
        ("a\n", "  \n", "It is only white space"),
        ("", "a", "Nothing in the file is like it"),
    ],
)
async def test_a_near_miss_says_what_differs(desk: Any, text: str, wanted: str, said: str) -> None:
    """Where the old text is not there, the answer says why, or shows the lines that come closest."""
    await desk.known("f", text)
    why = await desk.fault("edit_file", path="f", old_text=wanted, new_text="new")
    assert why.startswith("old_text is not in f. ")
    assert said in why


@given(st.lists(st.text(alphabet="ab (=\t", max_size=12), max_size=30), st.text(alphabet="ab (=\t\n\\1", max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_hint_is_always_words(lines: list[str], wanted: str) -> None:
    """Any file and any text give a hint that names only lines that are there."""
    said = hint(lines, wanted)
    assert said
    numbers = [int(row.split("\t")[0]) for row in said.split("\n")[1:] if "\t" in row and row[0].isdigit()]
    assert all(1 <= number <= len(lines) for number in numbers)


async def test_a_hint_in_a_large_file_comes_soon(desk: Any) -> None:
    """The closest lines of a file of megabytes are found without comparing everything with everything."""
    rows = [f"value_{number} = compute({number}, mode='fast')" for number in range(60_000)]
    await desk.known("big.py", "\n".join(rows))
    with trio.fail_after(10):
        why = await desk.fault(
            "edit_file", path="big.py", old_text="value_31337 = computed(31337, 'fast')", new_text=""
        )
    assert "31338\tvalue_31337 = compute(31337" in why


@pytest.mark.parametrize(
    ("data", "after"),
    [
        (b"one\r\ntwo\r\n", b"one\r\n2\r\n2b\r\n"),
        (b"one\r\ntwo", b"one\r\n2\r\n2b"),
        (b"one\ntwo\r\nthree\n", b"one\n2\r\n2b\r\nthree\n"),
        (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\n2\n2b\n"),
        ("\ufeffone\r\ntwo\r\n".encode("utf-16-le"), "\ufeffone\r\n2\r\n2b\r\n".encode("utf-16-le")),
        ("\ufeffone\ntwo".encode("utf-16-be"), "\ufeffone\n2\n2b".encode("utf-16-be")),
        (b"caf\xe9\ntwo\n", b"caf\xe9\n2\n2b\n"),
    ],
)
async def test_ends_marks_and_encodings_are_kept(desk: Any, data: bytes, after: bytes) -> None:
    """Every tool that edits keeps line ends, final newline, byte order mark and encoding."""
    edits: list[tuple[str, dict[str, Any]]] = [
        ("edit_file", {"old_text": "two", "new_text": "2\n2b"}),
        ("replace_lines", {"start": 2, "end": 2, "expected": "two", "content": "2\n2b\n"}),
        ("apply_patch", {"patch": "--- a/f\n+++ b/f\n@@ -2 +2,2 @@\n-two\n+2\n+2b\n"}),
    ]
    for name, arguments in edits:
        await desk.known("f", data)
        await desk.said(name, **({} if name == "apply_patch" else {"path": "f"}), **arguments)
        assert desk.files()["f"] == after, name


async def test_mode_bits_are_kept(desk: Any) -> None:
    """An edited script stays executable, by whichever tool."""
    file = await desk.known("run.sh", "#!/bin/sh\necho a\n")
    file.chmod(0o750)
    await desk.said("edit_file", path="run.sh", old_text="echo a", new_text="echo b")
    await desk.said("insert_lines", path="run.sh", after=2, expected="echo b", content="exit 0")
    await desk.said("write_file", path="run.sh", content="#!/bin/sh\n")
    await desk.said("move_file", path="run.sh", to="bin/run.sh")
    assert stat.S_IMODE((desk.folder / "bin" / "run.sh").stat().st_mode) == 0o750
    moved = "diff --git a/bin/run.sh b/x.sh\nrename from bin/run.sh\nrename to x.sh\n"
    await desk.said("apply_patch", patch=moved + "--- a/bin/run.sh\n+++ b/x.sh\n@@ -1 +1,2 @@\n #!/bin/sh\n+true\n")
    assert stat.S_IMODE((desk.folder / "x.sh").stat().st_mode) == 0o750


async def test_lines_are_inserted_replaced_and_deleted_by_number(desk: Any) -> None:
    """The three tools by number agree with what a list of lines does."""
    await desk.known("f", FIVE)
    await desk.said("insert_lines", path="f", after=0, expected="", content="zero")
    await desk.said("insert_lines", path="f", after=6, expected="five", content="six\nseven\n")
    await desk.said("replace_lines", path="f", start=2, end=3, expected="one\ntwo", content="1\n\n2")
    await desk.said("delete_lines", path="f", start=5, end=6, expected="three\nfour")
    assert desk.files()["f"] == b"zero\n1\n\n2\nfive\nsix\nseven\n"
    said = await desk.said("delete_lines", path="f", start=1, end=7, expected="zero\n1\n\n2\nfive\nsix\nseven")
    assert said == "changed f; it is empty now"
    assert desk.files()["f"] == b""
    await desk.said("insert_lines", path="f", after=0, expected="", content="a")
    assert desk.files()["f"] == b"a\n"


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_numbers_mean_the_same_for_every_file(data: st.DataObject) -> None:
    """For any text, with or without a final newline, the spans by number do what slicing a list of lines does."""
    lines = data.draw(st.lists(st.sampled_from(["a", "b", "", "cc"]), min_size=1, max_size=6))
    ended = data.draw(st.booleans()) or not lines[-1]
    new = data.draw(st.lists(st.sampled_from(["x", "", "y"]), min_size=1, max_size=3))
    crlf = data.draw(st.booleans())
    text = "\n".join(lines) + ("\n" if ended else "")
    document = Document(text.replace("\n", "\r\n") if crlf else text)
    start = data.draw(st.integers(1, len(lines)))
    end = data.draw(st.integers(start, len(lines)))

    def whole(result: list[str]) -> str:
        plain = "\n".join(result) + ("\n" if ended and result else "")
        return plain.replace("\n", "\r\n") if crlf and len(lines) + ended > 1 else plain

    found = document.replaced([exchanged(document, start, end, new)]).text
    assert found == whole(lines[: start - 1] + new + lines[end:])
    found = document.replaced([inserted(document, end, new)]).text
    assert found == whole(lines[:end] + new + lines[end:])
    found = document.replaced([removed(document, start, end)]).text
    assert found == whole(lines[: start - 1] + lines[end:])


async def test_lines_that_read_otherwise_than_expected_stay(desk: Any) -> None:
    """The lines as they are now are shown, and where the expected ones stand."""
    await desk.known("f", FIVE)
    why = await desk.fault("replace_lines", path="f", start=2, end=2, expected="four", content="x")
    assert why == (
        "nothing was changed: line 2 reads otherwise than expected. Now:\n2\ttwo\nWhat you expect stands at line 4."
    )
    assert "has only 5 lines, no line 6" in await desk.fault("delete_lines", path="f", start=6, end=6, expected="")
    assert "counted from 1" in await desk.fault("delete_lines", path="f", start=0, end=1, expected="")
    assert "not before start" in await desk.fault("delete_lines", path="f", start=3, end=2, expected="")
    assert "leave expected empty" in await desk.fault("insert_lines", path="f", after=0, expected="one", content="x")
    assert "content is empty" in await desk.fault("insert_lines", path="f", after=1, expected="one", content="")
    assert desk.files()["f"] == FIVE.encode()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("edit_file", {"path": "f", "old_text": "two", "new_text": "2"}),
        ("insert_lines", {"path": "f", "after": 1, "expected": "one", "content": "x"}),
        ("replace_lines", {"path": "f", "start": 2, "end": 2, "expected": "two", "content": "x"}),
        ("delete_lines", {"path": "f", "start": 2, "end": 2, "expected": "two"}),
        ("write_file", {"path": "f", "content": "new\n"}),
        ("apply_patch", {"patch": "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+2\n"}),
    ],
)
async def test_a_file_is_changed_only_over_what_was_read(desk: Any, name: str, arguments: dict[str, Any]) -> None:
    """A file that was not read, or that has changed since, is left alone with a clear error; read again, it goes."""
    file = desk.put("f", FIVE)
    assert "you have not read f yet; read_file it first" in await desk.fault(name, **arguments)
    await desk.said("read_file", path="f")
    file.write_text(FIVE + "six\n")
    assert "f has changed since you last read it; read_file it again" in await desk.fault(name, **arguments)
    assert (desk.changes, desk.files()) == ([], {"f": (FIVE + "six\n").encode()})
    await desk.said("read_file", path="f", start=1, end=1)
    await desk.said(name, **arguments)
    assert len(desk.changes) == 1


async def test_what_one_wrote_oneself_counts_as_read(desk: Any) -> None:
    """A new file can be edited and rewritten at once; a link to it is the same file."""
    await desk.said("write_file", path="d/f", content="a\n")
    (desk.folder / "l").symlink_to("d/f")
    await desk.said("edit_file", path="l", old_text="a", new_text="b")
    await desk.said("write_file", path="d/f", content="c\n")
    assert desk.files()["d/f"] == b"c\n"
    assert (desk.folder / "l").is_symlink()


@pytest.mark.parametrize(
    ("name", "arguments", "before", "after"),
    [
        ("edit_file", {"path": "f", "old_text": "two", "new_text": "2"}, FIVE, FIVE.replace("two", "2")),
        ("edit_file", {"path": "f", "old_text": "e\n", "new_text": "E\n", "replace_all": True}, FIVE, None),
        ("insert_lines", {"path": "f", "after": 5, "expected": "five", "content": "six"}, FIVE, FIVE + "six\n"),
        ("insert_lines", {"path": "f", "after": 1, "expected": "a", "content": "a"}, "a", "a\na"),
        ("replace_lines", {"path": "f", "start": 5, "end": 5, "expected": "five", "content": "5\n6"}, FIVE, None),
        ("delete_lines", {"path": "f", "start": 2, "end": 3, "expected": "two\nthree"}, FIVE, "one\nfour\nfive\n"),
        ("write_file", {"path": "f", "content": "new\n"}, FIVE, "new\n"),
        ("delete_file", {"path": "f"}, FIVE, None),
        ("apply_patch", {"patch": "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+two\n+2\n"}, FIVE, None),
        ("apply_patch", {"patch": "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"}, "a\n", None),
        ("move_file", {"path": "f", "to": "g/h"}, FIVE, None),
        ("make_folder", {"path": "n/m"}, FIVE, FIVE),
    ],
)
async def test_a_change_that_was_cut_off_is_not_made_twice(
    desk: Any, name: str, arguments: dict[str, Any], before: str, after: str | None
) -> None:
    """Run again by another process that knows what was read, a finished change is recognized and reported again."""
    await desk.known("f", before)
    seen = dict(desk.ctx.memory.seen)
    await desk.said(name, **arguments)
    files = desk.files()
    if after is not None:
        assert files == {"f": after.encode()}
    again = desk.after_restart(seen)
    await again.said(name, **arguments)
    assert again.files() == files
    assert {change[:3] for change in again.changes} <= {change[:3] for change in desk.changes}
    if name not in ("make_folder", "write_file", "delete_file", "move_file") and "/dev/null" not in str(arguments):
        assert [change[:3] for change in again.changes] == [change[:3] for change in desk.changes]


async def test_what_is_no_text_or_too_large_is_not_edited(desk: Any) -> None:
    """Pipes, folders, binary data and huge files are refused at once."""
    os.mkfifo(desk.folder / "pipe")
    desk.put("bin", b"\x89PNG\0")
    (desk.folder / "huge").touch()
    os.truncate(desk.folder / "huge", MAX_EDIT_BYTES + 1)
    with trio.fail_after(10):
        for path, why in [
            ("pipe", "is a pipe, socket or device"),
            ("bin", "a PNG image of 5 bytes, not text"),
            ("huge", "more than the 8000000 that are edited here"),
            (".", "is a folder"),
            ("no", "does not exist"),
            ("../x", "is outside the workspace"),
        ]:
            assert why in await desk.fault("edit_file", path=path, old_text="a", new_text="b")
            assert why in await desk.fault("file_outline", path=path)


async def test_texts_that_change_nothing_are_told(desk: Any) -> None:
    """An empty old text, equal texts and lines that read so already are no edits."""
    await desk.known("f", FIVE)
    assert "is empty" in await desk.fault("edit_file", path="f", old_text="", new_text="x")
    assert "are the same" in await desk.fault("edit_file", path="f", old_text="two", new_text="two")
    assert "nothing was changed" in await desk.said(
        "replace_lines", path="f", start=2, end=2, expected="two", content="two"
    )
    await desk.known("l", b"caf\xe9\n")
    assert "Latin-1, which has no '€'" in await desk.fault("edit_file", path="l", old_text="é", new_text="€")


async def test_the_preview_is_the_diff_and_changes_nothing(desk: Any) -> None:
    """What a human is shown before is what happens after."""
    await desk.known("f", FIVE)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("edit_file", {"path": "f", "old_text": "two", "new_text": "2"}),
        ("insert_lines", {"path": "f", "after": 5.0, "expected": "five", "content": "x"}),
        ("write_file", {"path": "n", "content": "x\n"}),
        ("apply_patch", {"patch": "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-three\n+3\n"}),
        ("delete_file", {"path": "n"}),
    ]
    for name, arguments in calls:
        desk.changes.clear()
        before = desk.files()
        shown = await desk.box.preview(ToolCall("c", name, arguments), arguments, desk.ctx)
        assert (desk.files(), desk.changes) == (before, [])
        await desk.said(name, **arguments)
        assert shown == "".join(change[3] for change in desk.changes)
    arguments = {"path": "f", "old_text": "nope", "new_text": ""}
    found = await desk.box.preview(ToolCall("c", "edit_file", arguments), arguments, desk.ctx)
    assert isinstance(found, Problem)
    assert found.text.startswith("old_text is not in f")
