"""Bounds: a call touches the places that were decided, whatever becomes of links between decision and deed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.bounds import Bounds
from runtime.permits import Permits
from runtime.policy.decision import Ceiling
from runtime.policy.paths import PathError, Workspace
from runtime.policy.rules import parse_permissions
from runtime.policy.subjects import PathSubject, PlainSubject, Subject, Use
from runtime.tools import Tool, subject_of
from runtime.tools.files import read_file, write_file
from runtime.tools.places import delete_file, move_file

RULES = Permits(
    parse_permissions(["*"], deny=["read_file(secret/**)", "write_file(secret/**)"]), Ceiling(closed=("state",))
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with an open, a secret and a closed folder, and a link to the open one."""
    for name in ("open", "secret", "state"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    (tmp_path / "link").symlink_to("open")
    return tmp_path


@pytest.fixture
def workspace(place: Path) -> Iterator[Workspace]:
    with Workspace(place) as workspace:
        yield workspace


def turned(place: Path, target: str) -> None:
    """The link leads elsewhere from now on."""
    (place / "next").symlink_to(target)
    os.replace(place / "next", place / "link")


def within(workspace: Workspace, subject: Subject) -> Workspace:
    return workspace.bounded(Bounds(subject, RULES))


def decided(tool: Tool, workspace: Workspace, **arguments: str) -> Workspace:
    subject = subject_of(tool, arguments, workspace)
    assert "allow" == RULES.judge(subject).verdict
    return within(workspace, subject)


@pytest.mark.parametrize("elsewhere", ["secret", "state"])
def test_a_link_turned_after_the_decision_leads_nowhere(workspace: Workspace, place: Path, elsewhere: str) -> None:
    """What was decided for one place is not done in another: not a read, a write, a move or a removal."""
    reads = decided(read_file, workspace, path="link/a.txt")
    writes = decided(write_file, workspace, path="link/a.txt", content="")
    goes = decided(delete_file, workspace, path="link/a.txt")
    moves = decided(move_file, workspace, path="open/a.txt", to="link/b.txt")
    turned(place, elsewhere)
    with pytest.raises(PathError, match=r"denied by rule|leads elsewhere"):
        reads.read_bytes("link/a.txt")
    with pytest.raises(PathError, match="leads elsewhere"):
        writes.write_bytes("link/a.txt", b"x")
    with pytest.raises(PathError, match="leads elsewhere"):
        goes.unlink("link/a.txt")
    with pytest.raises(PathError, match="leads elsewhere"):
        moves.rename("open/a.txt", "link/b.txt")
    assert [elsewhere] == [path.read_text() for path in (place / elsewhere).iterdir()]
    assert {"open", "secret", "state", "link"} == {path.name for path in place.iterdir()}


def test_what_was_decided_is_done(workspace: Workspace, place: Path) -> None:
    """Through a link that stays as it was, everything decided works."""
    assert b"open" == decided(read_file, workspace, path="link/a.txt").read_bytes("link/a.txt")
    decided(write_file, workspace, path="link/n/b.txt", content="").write_bytes("link/n/b.txt", b"x")
    assert "x" == (place / "open" / "n" / "b.txt").read_text()
    decided(move_file, workspace, path="link/a.txt", to="c.txt").rename("link/a.txt", "c.txt", replace=False)
    decided(delete_file, workspace, path="link").unlink("link")
    assert not (place / "link").is_symlink()


def test_removing_a_link_is_about_the_link(workspace: Workspace, place: Path) -> None:
    """A rule for a folder speaks of removing a link in it, wherever the link leads; one that leads out stays."""
    (place / "secret" / "way").symlink_to("../open/a.txt")
    subject = subject_of(delete_file, {"path": "secret/way"}, workspace)
    assert isinstance(subject, PathSubject)
    assert ["secret/way"] == [each.path for each in subject.uses]
    assert "deny" == RULES.judge(subject).verdict
    (place / "out").symlink_to("/etc/hostname")
    assert "deny" == RULES.judge(subject_of(delete_file, {"path": "out"}, workspace)).verdict


@pytest.mark.parametrize(
    ("use", "path", "refused"), [("read", "secret/a", True), ("write", "state/a", True), ("write", "x", False)]
)
def test_a_tool_without_paths_is_held_to_what_is_denied(use: Use, path: str, refused: bool) -> None:
    """A tool that does not say which paths it uses may not use those that are denied."""
    assert refused == (Bounds(PlainSubject("mine"), RULES)(use, path) is not None)


def test_no_race_opens_what_is_denied(workspace: Workspace, place: Path) -> None:
    """While a link is turned to and fro as fast as it goes, reads give the open file or an error, writes likewise."""
    stop = threading.Event()

    def turn() -> None:
        while not stop.is_set():
            turned(place, "secret")
            turned(place, "open")

    thread = threading.Thread(target=turn)
    thread.start()
    seen: set[bytes] = set()
    try:
        for _ in range(400):
            subject = subject_of(read_file, {"path": "link/a.txt"}, workspace)
            if RULES.judge(subject).verdict == "allow":
                try:
                    seen.add(within(workspace, subject).read_bytes("link/a.txt"))
                except PathError:
                    seen.add(b"refused")
            subject = subject_of(write_file, {"path": "link/new.txt"}, workspace)
            if RULES.judge(subject).verdict == "allow":
                try:
                    within(workspace, subject).write_bytes("link/new.txt", b"x")
                except PathError:
                    seen.add(b"refused")
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"open", b"refused"}
    assert b"open" in seen
    assert ["a.txt"] == [path.name for path in (place / "secret").iterdir()]
