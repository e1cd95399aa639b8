"""The file tools as a model uses them: what they say, what they refuse, what they change."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.messages import ToolCall, ToolResult
from runtime.policy.paths import Workspace
from runtime.tools import ToolBox, ToolContext, ToolError
from runtime.tools.files import FILE_TOOLS
from runtime.tools.reading import MAX_LINE_CHARS, MAX_LINES, read_page

BOX = ToolBox(FILE_TOOLS)


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(Workspace(tmp_path))


async def use(ctx: ToolContext, name: str, **arguments: Any) -> ToolResult:
    return await BOX.run(ToolCall("c", name, arguments), ctx)


async def said(ctx: ToolContext, name: str, **arguments: Any) -> str:
    result = await use(ctx, name, **arguments)
    assert not result.is_error, result.content
    return result.content


async def fault(ctx: ToolContext, name: str, **arguments: Any) -> str:
    result = await use(ctx, name, **arguments)
    assert result.is_error
    assert "Traceback" not in result.content
    return result.content


async def test_a_folder_is_listed_by_kind(ctx: ToolContext, tmp_path: Path) -> None:
    """Folders end with a slash, files have a size, links and pipes are named as such and not followed."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("abc")
    (tmp_path / "l").symlink_to("/etc")
    (tmp_path / "odd\nname").write_text("")
    os.mkfifo(tmp_path / "pipe")
    expected = [
        ".: 5 entries",
        "a.txt\t3 bytes",
        "l\tlink",
        "odd\\nname\t0 bytes",
        "pipe\tpipe, socket or device",
        "sub/",
    ]
    assert expected == (await said(ctx, "list_files")).splitlines()
    assert expected == (await said(ctx, "list_files", path="")).splitlines()
    assert await said(ctx, "list_files", path="sub/") == "sub: 0 entries"
    assert "is no folder" in await fault(ctx, "list_files", path="a.txt")
    assert "through a link to outside" in await fault(ctx, "list_files", path="l")


async def test_a_crowded_folder_is_cut(ctx: ToolContext, tmp_path: Path) -> None:
    """Past a thousand entries the rest is counted."""
    for number in range(1003):
        (tmp_path / f"f{number:04}").touch()
    lines = (await said(ctx, "list_files")).splitlines()
    assert (lines[0], lines[-1], len(lines)) == (".: 1003 entries", "[3 more not shown; use find_files]", 1002)
    assert (await said(ctx, "find_files", pattern="f*")).splitlines()[-1].startswith("[503 more")


async def test_files_are_found_by_glob(ctx: ToolContext, tmp_path: Path) -> None:
    """Globs find files in any depth, in order, without ignored ones and those rules keep out."""
    for name in ("b.py", "a/c.py", "a/d.txt", ".git/x.py", "build/y.py", "secrets/z.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("build/\n")
    ctx = ToolContext(ctx.workspace, readable=lambda path: not path.startswith("secrets"))
    assert (await said(ctx, "find_files", pattern="*.py")).splitlines() == ["a/c.py", "b.py"]
    assert (await said(ctx, "find_files", pattern="a/**")).splitlines() == ["a/c.py", "a/d.txt"]
    assert await said(ctx, "find_files", pattern="*.rs") == "no file matches *.rs"
    assert "goes up" in await fault(ctx, "find_files", pattern="../*")


async def test_a_file_is_read_with_numbered_lines(ctx: ToolContext, tmp_path: Path) -> None:
    """The first line names file and range, the others are number, tab and text; ranges count from 1."""
    (tmp_path / "a.txt").write_text("one\ntwo\n\nfour\n")
    assert await said(ctx, "read_file", path="./a.txt") == "./a.txt: lines 1-4 of 4\n1\tone\n2\ttwo\n3\t\n4\tfour"
    assert await said(ctx, "read_file", path="a.txt", start=2, end=3) == "a.txt: lines 2-3 of 4\n2\ttwo\n3\t"
    assert await said(ctx, "read_file", path="a.txt", start=4, end=99) == "a.txt: lines 4-4 of 4\n4\tfour"
    assert "has only 4 lines; start=5" in await fault(ctx, "read_file", path="a.txt", start=5)
    assert "not before start" in await fault(ctx, "read_file", path="a.txt", start=3, end=2)
    assert "counted from 1" in await fault(ctx, "read_file", path="a.txt", start=0)
    (tmp_path / "empty").touch()
    assert await said(ctx, "read_file", path="empty") == "empty: empty file"


@pytest.mark.parametrize(
    ("data", "header", "text"),
    [
        (b"a\r\nb\r\n", "lines 1-2 of 2 (CRLF line ends)", "a"),
        (b"a\r\nb\nc\nd\n", "lines 1-4 of 4 (some CRLF line ends)", "a"),
        (b"a", "lines 1-1 of 1 (no newline at the end)", "a"),
        ("é\n".encode(), "lines 1-1 of 1", "é"),
        (b"\xef\xbb\xbfa\n", "lines 1-1 of 1 (UTF-8 with BOM)", "a"),
        ("ä\nb\n".encode("utf-16"), "lines 1-2 of 2 (UTF-16)", "ä"),
        (b"\xfe\xff\0a\0\n", "lines 1-1 of 1 (UTF-16)", "a"),
        (b"caf\xe9\n", "lines 1-1 of 1 (not UTF-8, shown as Latin-1)", "café"),
        (b"a\x0cb\x85c\n", "lines 1-1 of 1 (not UTF-8, shown as Latin-1)", "a\x0cb\x85c"),
        ("a\u2028b\n".encode(), "lines 1-1 of 1", "a\u2028b"),
    ],
)
async def test_what_is_unusual_about_a_text_is_told(
    ctx: ToolContext, tmp_path: Path, data: bytes, header: str, text: str
) -> None:
    """Line ends, marks and encodings are read right and named; only LF ends a line."""
    (tmp_path / "f").write_bytes(data)
    first, second, *_ = (await said(ctx, "read_file", path="f")).split("\n")
    assert first == f"f: {header}"
    assert second == f"1\t{text}"


@pytest.mark.parametrize(
    ("data", "kind"), [(b"\x89PNG\r\n\x1a\n\0", "a PNG image of 9 bytes"), (b"a\0b", "binary data of 3 bytes")]
)
async def test_binary_data_is_named_not_shown(ctx: ToolContext, tmp_path: Path, data: bytes, kind: str) -> None:
    """A file that is no text is an error that says what it seems to be."""
    (tmp_path / "f").write_bytes(data)
    assert await fault(ctx, "read_file", path="f") == f"'f' is {kind}, not text"


async def test_a_pipe_is_refused_without_hanging(ctx: ToolContext, tmp_path: Path) -> None:
    """Reading, writing and searching a FIFO come back at once."""
    os.mkfifo(tmp_path / "p")
    with trio.fail_after(5):
        assert "is a pipe, socket or device" in await fault(ctx, "read_file", path="p")
        assert "is a pipe, socket or device" in await fault(ctx, "write_file", path="p", content="x")
    assert "is a folder" in await fault(ctx, "read_file", path=".")
    assert "does not exist" in await fault(ctx, "read_file", path="nothing")


async def test_a_long_file_goes_on_where_the_page_ended(ctx: ToolContext, tmp_path: Path) -> None:
    """Pages are cut at lines, say where to go on, and together show every line."""
    lines = [f"line {number} " + "x" * (number % 50) for number in range(1, 3 * MAX_LINES)]
    (tmp_path / "f").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    start = 1
    while start:
        header, *page = (await said(ctx, "read_file", path="f", start=start)).split("\n")
        assert header.startswith(f"f: lines {start}-{start + len(page) - 1} of {len(lines)}")
        seen += [line.partition("\t")[2] for line in page]
        start = int(header.rpartition("start=")[2]) if "start=" in header else 0
    assert seen == lines


async def test_a_line_without_end_is_cut_and_never_held(ctx: ToolContext, tmp_path: Path) -> None:
    """A long line shows its beginning, cut between characters, and the lines after it keep their numbers."""
    (tmp_path / "f").write_bytes("€".encode() * 100_000 + b"\nshort\n" + b"z" * 9000 + b"\r\nend")
    header, first, second, third, last = (await said(ctx, "read_file", path="f")).split("\n")
    assert header == "f: lines 1-4 of 4 (some CRLF line ends, no newline at the end)"
    assert first.startswith("1\t" + "€" * MAX_LINE_CHARS + " [... about ")
    assert (second, last) == ("2\tshort", "4\tend")
    assert third.startswith("3\tzzz")
    assert third.endswith("7002 more characters in this line]")


@given(
    text=st.lists(st.sampled_from(["a", "é", "\n", "\r\n", "\t", "x" * 3000]), max_size=30).map("".join),
    start=st.integers(1, 12),
    length=st.integers(0, 12),
)
@settings(max_examples=150, deadline=None)
def test_a_page_shows_the_lines_that_splitting_gives(text: str, start: int, length: int) -> None:
    """For any text and range, the page is what splitting the whole at newlines gives."""
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    lines = [
        line.removesuffix("\r") if number < len(lines) or text.endswith("\n") else line
        for number, line in enumerate(lines, 1)
    ]
    end = start + length
    if start > max(1, len(lines)):
        if lines:
            with pytest.raises(ToolError):
                read_page(io.BytesIO(text.encode()), "f", start, end)
        return
    shown = read_page(io.BytesIO(text.encode()), "f", start, end).split("\n")[1:]
    expected = [f"{number}\t{line}" for number, line in enumerate(lines, 1) if start <= number <= end]
    assert [line.split(" [...")[0] for line in shown] == [
        line if len(line.partition("\t")[2]) <= MAX_LINE_CHARS else line[: line.index("\t") + 1 + MAX_LINE_CHARS]
        for line in expected
    ]


async def test_a_written_file_is_reported_with_its_diff(ctx: ToolContext, tmp_path: Path) -> None:
    """A new file makes its folders, a changed one gives both contents, an equal one changes nothing."""
    changes: list[tuple[str, bytes | None, bytes | None, str]] = []

    def hear(path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
        changes.append((path, before, after, diff))

    ctx = ToolContext(ctx.workspace, changed=hear)
    assert (
        await said(ctx, "write_file", path="a/b.txt", content="x\n") == "wrote the new file a/b.txt (1 line, 2 bytes)"
    )
    assert await said(ctx, "write_file", path="a/b.txt", content="y\r\n") == "replaced a/b.txt (1 line, 3 bytes)"
    assert "already has this content" in await said(ctx, "write_file", path="a/b.txt", content="y\r\n")
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"y\r\n"
    assert changes == [
        ("a/b.txt", None, b"x\n", "--- /dev/null\n+++ b/a/b.txt\n@@ -0,0 +1 @@\n+x\n"),
        ("a/b.txt", b"x\n", b"y\r\n", "--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1 +1 @@\n-x\n+y\r\n"),
    ]
    assert "half of a surrogate" in await fault(ctx, "write_file", path="c", content="\ud800")
    assert "outside the workspace" in await fault(ctx, "write_file", path="../c", content="")
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_each_tool_names_its_paths_and_its_effects() -> None:
    """Permission rules and the guard see what each tool does to which path."""
    listing, finding, reading, writing = FILE_TOOLS
    assert [tool.effects for tool in FILE_TOOLS] == ["none", "none", "none", "idempotent"]
    assert listing.uses({}) == ((".", "list"),)
    assert finding.uses({"pattern": "*"}) == ((".", "list"),)
    assert reading.uses({"path": "a"}) == (("a", "read"),)
    assert writing.uses({"path": "a"}) == (("a", "write"),)
