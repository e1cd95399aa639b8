"""apply_patch: several files, all of it or nothing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from runtime.policy.paths import PathError, Workspace, Written
from runtime.tools.edit_patch import apply_patch

PATCH = """\
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
-a1
+A1
 a2
--- /dev/null
+++ b/new/n.txt
@@ -0,0 +1,2 @@
+n1
+n2
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/old.txt b/moved.txt
rename from old.txt
rename to moved.txt
--- a/old.txt
+++ b/moved.txt
@@ -1 +1 @@
-old
+moved
"""
BEFORE = {"a.txt": b"a1\na2\n", "gone.txt": b"gone\n", "old.txt": b"old\n"}
AFTER = {"a.txt": b"A1\na2\n", "moved.txt": b"moved\n", "new/n.txt": b"n1\nn2\n"}


async def prepared(desk: Any) -> None:
    for path, content in BEFORE.items():
        await desk.known(path, content)


async def test_a_patch_changes_makes_moves_and_removes_files(desk: Any) -> None:
    """One call does all of it and tells each file."""
    await prepared(desk)
    said = await desk.said("apply_patch", patch=PATCH)
    assert said.split("\n") == [
        "patched 5 files:",
        "a.txt: +1 -1",
        "new/n.txt: new",
        "gone.txt: removed",
        "old.txt: removed",
        "moved.txt: new",
    ]
    assert desk.files() == AFTER
    assert {change[0] for change in desk.changes} == {"a.txt", "new/n.txt", "gone.txt", "old.txt", "moved.txt"}


def test_rules_see_every_path_and_what_is_done_to_it() -> None:
    """The paths are a function of the patch; one that cannot be read names none."""
    assert apply_patch.uses({"patch": PATCH}) == (
        ("a.txt", "read"),
        ("a.txt", "write"),
        ("new/n.txt", "write"),
        ("gone.txt", "read"),
        ("gone.txt", "delete"),
        ("old.txt", "read"),
        ("old.txt", "delete"),
        ("moved.txt", "write"),
    )
    assert apply_patch.uses({"patch": "nothing"}) == ()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("-old\n", "-odd\n"), "hunk 1 of 1 for moved.txt does not fit"),
        (("new/n.txt", "a.txt/n.txt"), "goes through something that is no folder"),
        (("b/new/n.txt", "b/../n.txt"), "is outside the workspace"),
        (("gone.txt", "missing.txt"), "'missing.txt' does not exist"),
        (("-gone\n", "-gone\n+still\n"), "removes gone.txt, but not all of its lines"),
    ],
)
async def test_one_part_that_does_not_fit_leaves_all_files_alone(desk: Any, change: tuple[str, str], why: str) -> None:
    """Whatever part fails, every file is as it was, and nothing was reported."""
    await prepared(desk)
    assert why in await desk.fault("apply_patch", patch=PATCH.replace(*change))
    assert desk.files() == BEFORE
    assert desk.changes == []


async def test_a_file_one_has_not_read_stops_the_whole_patch(desk: Any) -> None:
    """Read-before-write holds for each file of a patch; a new file must not be there."""
    await prepared(desk)
    desk.put("new/n.txt", "here")
    assert "new/n.txt" in await desk.fault("apply_patch", patch=PATCH)
    await desk.said("read_file", path="new/n.txt")
    assert "new/n.txt is there already" in await desk.fault("apply_patch", patch=PATCH)
    assert desk.files() == {**BEFORE, "new/n.txt": b"here"}


@attrs.define
class Stumbling:
    """A workspace whose writes fail from the given one on, until it is told to go on."""

    inner: Workspace
    fails_at: int
    writes: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write_bytes(self, path: str, content: bytes, **settings: Any) -> Written:
        self.writes += 1
        if self.writes == self.fails_at:
            raise PathError(path, "cannot be written: no space left")
        return self.inner.write_bytes(path, content, **settings)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
async def test_a_write_that_fails_takes_the_others_back(desk: Any, fails_at: int) -> None:
    """When the disk is full half-way, the files written so far are put back."""
    await prepared(desk)
    stumbling: Any = Stumbling(desk.ctx.workspace, fails_at)
    desk.ctx = attrs.evolve(desk.ctx, workspace=stumbling)
    assert "no space left" in await desk.fault("apply_patch", patch=PATCH)
    assert desk.files() == BEFORE
    assert desk.changes == []
    stumbling.fails_at = -1
    await desk.said("apply_patch", patch=PATCH)
    assert desk.files() == AFTER


async def test_a_patch_cut_off_half_way_is_finished(desk: Any) -> None:
    """A process that died between two files finds its own work and does the rest."""
    await prepared(desk)
    seen = dict(desk.ctx.memory.seen)
    for done in ({"a.txt": AFTER["a.txt"]}, {**AFTER, "old.txt": BEFORE["old.txt"]}, AFTER):
        for path in desk.files():
            (desk.folder / path).unlink()
        for path, content in {**BEFORE, **done}.items():
            if done is not AFTER or path in AFTER:
                desk.put(path, content)
        again = desk.after_restart(seen)
        if done is AFTER or "old.txt" not in done:
            await again.said("apply_patch", patch=PATCH)
            assert again.files() == AFTER


async def test_two_parts_for_one_file_are_applied_in_turn(desk: Any) -> None:
    """A later part sees what an earlier one made of the file."""
    await desk.known("f", "a\nb\n")
    patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n A\n-b\n+B\n"
    await desk.said("apply_patch", patch=patch)
    assert desk.files() == {"f": b"A\nB\n"}
    assert len(desk.changes) == 1
