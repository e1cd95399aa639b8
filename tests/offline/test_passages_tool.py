"""The tool search_passages over a real folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.context.found import Found, read_found
from runtime.messages import ToolCall, ToolResult
from runtime.policy.paths import Workspace
from runtime.tools import ToolBox, ToolContext
from runtime.tools.passages import MOST_FILE_BYTES, PassageCache, search_passages_tool


class Searcher:
    """One tool with one cache over one folder."""

    def __init__(self, workspace: Workspace) -> None:
        self.context = ToolContext(workspace)
        self.box = ToolBox([search_passages_tool(PassageCache())])

    async def result(self, query: str, **more: object) -> ToolResult:
        return await self.box.run(ToolCall("1", "search_passages", {"query": query, **more}), self.context)

    async def find(self, query: str, **more: object) -> Found:
        result = await self.result(query, **more)
        assert not result.is_error
        return read_found(result.content)


@pytest.fixture
def searcher(tmp_path: Path) -> Iterator[Searcher]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "docs" / "a.md").write_text("# Queue\n\nJobs wait in the queue.\n\nA worker takes them.\n")
    (tmp_path / "b.py").write_text('def put(job):\n    """Add a job to the queue."""\n')
    (tmp_path / "build" / "c.md").write_text("The queue, the queue, the queue.\n")
    with Workspace(tmp_path) as workspace:
        yield Searcher(workspace)


async def test_it_shows_path_lines_and_heading(searcher: Searcher) -> None:
    """A hit is shown with path, lines, score and heading, then its numbered lines; the last line counts the files."""
    lines = (await searcher.result("Where do jobs wait?")).content.split("\n")
    assert lines[0].startswith("docs/a.md:3-3  ")
    assert lines[0].endswith("  Queue")
    assert "3\tJobs wait in the queue." == lines[1]
    assert "Searched 3 files." == lines[-1]


async def test_what_git_ignores_is_not_searched(searcher: Searcher) -> None:
    """What .gitignore excludes is not searched."""
    assert {"docs/a.md", "b.py"} == {passage.path for passage in (await searcher.find("queue")).passages}


async def test_what_the_actor_may_not_read_is_not_shown(searcher: Searcher) -> None:
    """Files the actor's rules forbid are neither shown nor counted, though another actor has indexed them."""
    assert 3 == (await searcher.find("queue")).file_count
    searcher.context = ToolContext(searcher.context.workspace, readable=lambda path: not path.startswith("docs/"))
    found = await searcher.find("queue")
    assert ["b.py"] == [passage.path for passage in found.passages]
    assert 2 == found.file_count


async def test_a_changed_file_is_read_again(searcher: Searcher, tmp_path: Path) -> None:
    """A file that changed, came or went since is searched as it is now."""
    assert 0 == len((await searcher.find("zebra")).passages)
    path = tmp_path / "docs" / "a.md"
    path.write_text("A zebra.\n")
    os.utime(path, ns=(1, 1))
    (tmp_path / "d.md").write_text("Another zebra.\n")
    (tmp_path / "b.py").unlink()
    found = await searcher.find("zebra")
    assert {"docs/a.md", "d.md"} == {passage.path for passage in found.passages}
    assert 3 == found.file_count


async def test_top_bounds_what_is_shown(searcher: Searcher) -> None:
    """No more passages are shown than asked for, and at least one."""
    assert 1 == len((await searcher.find("queue", top=1)).passages)
    assert 1 == len((await searcher.find("queue", top=-3)).passages)


async def test_odd_files_do_no_harm(searcher: Searcher, tmp_path: Path) -> None:
    """Binary files are skipped, large ones counted as not searched, other encodings and names without harm."""
    (tmp_path / "x.bin").write_bytes(b"zebra\0zebra")
    (tmp_path / "large.md").write_text("zebra\n" * (MOST_FILE_BYTES // 6 + 1))
    (tmp_path / "latin.md").write_bytes("zèbra zebra".encode("latin-1"))
    (tmp_path / "wide.md").write_bytes("zebra wide".encode("utf-16"))
    (tmp_path / "line\nbreak.md").write_text("zebra\n")
    (tmp_path / "link.md").symlink_to(tmp_path / "latin.md")
    result = await searcher.result("zebra")
    found = read_found(result.content)
    assert {"latin.md", "wide.md"} == {passage.path for passage in found.passages}
    assert ["Not searched, too large: 1.", "Searched 5 files."] == result.content.split("\n")[-2:]


async def test_an_empty_query_is_refused(searcher: Searcher) -> None:
    """An empty query is an error that says what to give."""
    result = await searcher.result("  ")
    assert result.is_error
    assert "query is empty" in result.content


async def test_no_match_is_an_answer(searcher: Searcher) -> None:
    """No match is an ordinary answer, with how often each word was met."""
    result = await searcher.result("zebra crossing")
    assert "No passage matches." in result.content
    assert ["Words: zebra 0, crossing 0; of 4 passages.", "Searched 3 files."] == result.content.split("\n")[-2:]
