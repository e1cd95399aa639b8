"""AGENTS.md and its aliases: from root to leaf, in a fixed room, nothing from outside, nothing silently missing."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.instructions import EACH, ROOM, Instructions, read_instructions
from runtime.policy.paths import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "ws").mkdir()
    with Workspace(tmp_path / "ws") as opened:
        yield opened


def written(workspace: Workspace, **files: str) -> Instructions:
    for name, content in files.items():
        path = Path(workspace.root) / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(content)
    return read_instructions(workspace)


def test_files_stand_from_root_to_leaf_each_with_its_folder(workspace: Workspace) -> None:
    """Files stand from root to leaf, each with the folder it is for; an alias counts where no other is."""
    found = written(
        workspace,
        a__b__CONTEXT="Leaf.",
        a__AGENTS="Middle.",
        a__CLAUDE="Not this one.",
        AGENTS="Root.",
        z__CLAUDE="Alias.",
        node_modules__x__AGENTS="Somebody else's.",
    )
    assert ("AGENTS.md", "a/AGENTS.md", "z/CLAUDE.md", "a/b/CONTEXT.md") == found.files
    assert found.text.index("Root.") < found.text.index("Middle.") < found.text.index("Leaf.")
    assert "# a/b/CONTEXT.md (for what is below a/b/)" in found.text
    assert "Not this one." not in found.text
    assert "Somebody else's." not in found.text
    assert () == found.remarks


def test_nothing_there_gives_nothing(workspace: Workspace) -> None:
    """Without such files, and with empty ones, there is no part and no remark."""
    assert Instructions() == written(workspace, AGENTS=" \n")


def test_a_link_out_of_the_workspace_is_not_followed(workspace: Workspace) -> None:
    """A link out of the workspace is not followed, and told; one that stays inside is."""
    root = Path(workspace.root)
    (root.parent / "secret.md").write_text("Secret.")
    (root / "docs").mkdir()
    (root / "docs" / "rules.md").write_text("Rules.")
    (root / "AGENTS.md").symlink_to("docs/rules.md")
    (root / "docs" / "AGENTS.md").symlink_to("../../secret.md")
    (root / "loop").symlink_to(".")
    found = read_instructions(workspace)
    assert "Rules." in found.text
    assert "Secret." not in found.text
    assert ["docs/AGENTS.md was not read"] == [remark.partition(":")[0] for remark in found.remarks]


def test_what_is_cut_is_told_with_where_it_goes_on(workspace: Workspace) -> None:
    """A file that is too long is cut at a line, and the agent is told which call shows the rest."""
    lines = [f"Rule {number} of many." for number in range(3000)]
    found = written(workspace, AGENTS="\n".join(lines))
    start = int(found.text.partition('read_file(path="AGENTS.md", start=')[2].partition(")")[0])
    assert lines[start - 2] in found.text
    assert lines[start - 1] not in found.text
    assert 1 == len(found.remarks)


def test_a_pipe_and_bytes_are_told(workspace: Workspace) -> None:
    """What is no text is told and not shown; other encodings are shown as far as they can be read."""

    root = Path(workspace.root)
    os.mkfifo(root / "AGENTS.md")
    (root / "a").mkdir()
    (root / "a" / "AGENTS.md").write_bytes(b"\0\1\2")
    (root / "b").mkdir()
    (root / "b" / "AGENTS.md").write_bytes(b"\xef\xbb\xbfR\xe9sum\xe9\r\nnext")
    found = read_instructions(workspace)
    assert ("b/AGENTS.md",) == found.files
    assert "R�sum�\nnext" in found.text
    assert {"AGENTS.md was not read", "a/AGENTS.md was not read"} == {each.partition(":")[0] for each in found.remarks}


@given(st.lists(st.integers(0, 40_000), max_size=6))
@settings(max_examples=20)
def test_the_room_is_kept_and_every_file_is_shown_or_named(sizes: list[int]) -> None:
    """However many and long they are, the files keep to the room, and each is shown or named."""

    with tempfile.TemporaryDirectory() as name:
        for number, size in enumerate(sizes):
            folder = Path(name, "/".join(["d"] * number))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "AGENTS.md").write_text(("x" * 79 + "\n") * (size // 80) + "y" * (size % 80))
        with Workspace(name) as workspace:
            found = read_instructions(workspace)
    assert len(found.text) <= ROOM + 2000
    for number, size in enumerate(sizes):
        path = "/".join(["d"] * number + ["AGENTS.md"])
        assert size == 0 or path in found.text
        if size > EACH:
            assert any(path in remark for remark in found.remarks)
