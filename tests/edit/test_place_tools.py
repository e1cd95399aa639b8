"""Moving, deleting and making: files go where they are sent, and nothing is lost unseen."""

from __future__ import annotations

import os
from typing import Any

from runtime.tools.places import PLACE_TOOLS


async def test_a_file_is_moved_and_never_over_another(desk: Any) -> None:
    """Folders on the way are made; what stands at the new place stays, and links and folders are not moved."""
    await desk.known("a.txt", "a\n")
    desk.put("b.txt", "b\n")
    (desk.folder / "link").symlink_to("a.txt")
    assert "is there already" in await desk.fault("move_file", path="a.txt", to="b.txt")
    assert "moved a.txt to d/e/c.txt" == await desk.said("move_file", path="a.txt", to="d/e/c.txt")
    assert "is a folder; name the file's new path in it: d/b.txt" in await desk.fault("move_file", path="b.txt", to="d")
    assert "is a folder; only files" in await desk.fault("move_file", path="d", to="x")
    assert "is a link" in await desk.fault("move_file", path="link", to="x")
    assert "does not exist" in await desk.fault("move_file", path="a.txt", to="x")
    assert "is outside the workspace" in await desk.fault("move_file", path="b.txt", to="../x")
    assert desk.files() == {"b.txt": b"b\n", "d/e/c.txt": b"a\n"}
    assert [change[:3] for change in desk.changes] == [("a.txt", b"a\n", None), ("d/e/c.txt", None, b"a\n")]
    await desk.said("edit_file", path="d/e/c.txt", old_text="a", new_text="known")


async def test_a_file_is_deleted_unless_it_changed_since(desk: Any) -> None:
    """Unread files may go; one that was read and has changed is read again first."""
    desk.put("junk.bin", b"\0\1")
    file = await desk.known("f", "a\n")
    await desk.said("delete_file", path="junk.bin")
    file.write_text("b\n")
    assert "has changed since you last read it" in await desk.fault("delete_file", path="f")
    await desk.said("read_file", path="f")
    assert "deleted f" == await desk.said("delete_file", path="f")
    assert "does not exist" in await desk.fault("delete_file", path="f")
    assert desk.files() == {}
    assert desk.changes[-1][:3] == ("f", b"b\n", None)


async def test_only_empty_folders_are_deleted(desk: Any) -> None:
    """A folder that holds anything stays; a link goes, what it points to stays."""
    desk.put("d/f", "x")
    (desk.folder / "l").symlink_to("d")
    os.mkfifo(desk.folder / "p")
    assert "made" not in await desk.said("make_folder", path="e/g")
    assert "is a folder that is not empty" in await desk.fault("delete_file", path="d")
    assert "deleted the empty folder e/g" == await desk.said("delete_file", path="e/g")
    await desk.said("delete_file", path="l")
    await desk.said("delete_file", path="p")
    assert "is a folder" in await desk.fault("delete_file", path="./")
    assert {entry.name for entry in os.scandir(str(desk.folder))} == {"d", "e"}
    assert "is there and is no folder" in await desk.fault("make_folder", path="d/f")


def test_a_move_reads_deletes_and_writes() -> None:
    """Rules that forbid reading a file also forbid moving it to where it may be read."""
    move, delete, make = PLACE_TOOLS
    assert move.uses({"path": "a", "to": "b"}) == (("a", "read"), ("a", "delete"), ("b", "write"))
    assert delete.uses({"path": "a"}) == (("a", "delete"),)
    assert make.uses({"path": "a"}) == (("a", "write"),)
