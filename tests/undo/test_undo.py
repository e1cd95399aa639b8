"""What a run did to files can be taken back, as a whole or not at all."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import JournalError, UsageError
from runtime.events import Event, FileChanged, FileChanging, FilesRestored, Record
from runtime.journal import Blobs, MemoryJournal, RunFolder, RunReader, create_run, open_journal, open_state
from runtime.journal.folder import State
from runtime.library import open_runtime
from runtime.policy.paths import KEPT_BYTES, Change, PathError, Workspace
from runtime.tools import ToolError
from runtime.undo import CannotUndo, Restore, restores, undo

AGENT = """\
---
name: writer
description: Writes.
tools: [read_file, write_file, move_file]
---
Write.
"""


@attrs.define
class Place:
    """A workspace with an agent, and the state its runs are kept in."""

    workspace: Path
    state: State

    async def run(self, *writes: tuple[str, str]) -> RunFolder:
        """A run that writes these files, one call after the other."""
        calls = [f"{{name: read_file, arguments: {{path: {path}}}}}" for path in self.files()]
        calls += [f"{{name: write_file, arguments: {{path: {path}, content: {text!r}}}}}" for path, text in writes]
        return await self._run(calls)

    async def call(self, name: str, **arguments: str) -> RunFolder:
        """A run that makes one call."""
        return await self._run([json.dumps({"name": name, "arguments": arguments})])

    async def _run(self, calls: list[str]) -> RunFolder:
        script = self.workspace.parent / "script.yaml"
        script.write_text("writer:\n" + "".join(f"  - calls: [{call}]\n" for call in calls) + "  - done\n")
        runtime = open_runtime(self.workspace, model=f"scripted/{script}", state=str(self.state.path))
        async with runtime as opened, opened.run("writer", "write", yes=True) as run:
            report = await run.report()
        assert report.status == "completed", report
        return self.state.run(run.id)

    def files(self) -> Mapping[str, str]:
        return {
            str(path.relative_to(self.workspace)): path.read_text()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file() and path.parent.name != "agents"
        }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    workspace = tmp_path / "workspace"
    (workspace / "agents").mkdir(parents=True)
    (workspace / "agents" / "writer.md").write_text(AGENT)
    return Place(workspace, open_state(str(tmp_path / "state")))


def records(*events: Event) -> list[Record]:
    return [Record(seq, 0.0, event) for seq, event in enumerate(events, 1)]


def changing(path: str, before: str | None, after: str | None) -> FileChanging:
    return FileChanging(call_id="c", path=path, before=before, after=after)


def seq_of(folder: RunFolder, path: str, after: str) -> int:
    """The event after which the file held that text."""
    with RunReader(folder) as reader:
        return max(
            record.seq
            for record in reader.records()
            if isinstance(record.event, FileChanged) and record.event.path == path and f"+{after}" in record.event.diff
        )


# --- the decision ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, "1", "2", "3"])), max_size=8), st.data())
def test_undo_gives_what_stood_there_after_any_event(steps: list[tuple[str, str | None]], data: st.DataObject) -> None:
    """Whatever was written and removed in whatever order, undo gives the files as they were after the event named."""
    files: dict[str, str | None] = {"a": "1", "b": None}
    events: list[Event] = []
    moments = [dict(files)]
    for path, content in steps:
        events.append(changing(path, files[path], content))
        files[path] = content
        moments.append(dict(files))
    to = data.draw(st.integers(0, len(events)))
    for each in restores(records(*events), to, files.__getitem__):
        assert each.found == files[each.path]
        files[each.path] = each.content
    assert moments[to] == files


@given(st.lists(st.sampled_from(["1", "2", "3"]), min_size=1, max_size=6))
def test_a_change_that_never_came_about_stands_in_nobodys_way(contents: list[str]) -> None:
    """When the process died between the announcement and the change, undo goes by what the file really holds."""
    events: list[Event] = []
    now: str | None = None
    for content in contents:
        events.append(changing("a", now, content))
        now = content
    last = events[-1]
    assert isinstance(last, FileChanging)
    found = restores(records(*events), 0, lambda _: last.before)
    assert found == ([] if last.before is None else [Restore("a", None, last.before)])


def test_a_file_somebody_else_changed_stops_it_all() -> None:
    """A content nobody in the run left there refuses the whole, naming every such file."""
    events = records(changing("a", "1", "2"), changing("b", None, "3"), changing("c", "4", "5"))
    with pytest.raises(CannotUndo, match="a, c have changed since") as caught:
        restores(events, 0, {"a": "other", "b": "3", "c": None}.__getitem__)
    assert set(caught.value.paths) == {"a", "c"}
    in_between = records(changing("a", "1", "2"), changing("a", "other", "3"))
    with pytest.raises(CannotUndo):
        restores(in_between, 0, lambda _: "3")
    assert restores(in_between, 1, lambda _: "3") == [Restore("a", "other", "3")]


def test_what_was_undone_is_not_undone_again() -> None:
    """After an undo on record only what came later, or stood before it, is left to take back."""
    events = records(changing("a", "1", "2"), changing("a", "2", "3"), FilesRestored(to=1), changing("a", "2", "4"))
    assert restores(events, 0, lambda _: "4") == [Restore("a", "1", "4")]
    assert restores(events, 1, lambda _: "4") == [Restore("a", "2", "4")]
    assert restores(events[:3], 0, lambda _: "2") == [Restore("a", "1", "2")]
    assert restores(events[:3], 1, lambda _: "2") == []


# --- the whole ---------------------------------------------------------------------------------------------------


async def test_undo_puts_files_back_and_removes_new_ones(place: Place) -> None:
    """Undo gives a changed file its old content, removes a new one, and a second undo finds nothing to do."""
    (place.workspace / "old.txt").write_text("as it was")
    before = place.files()
    folder = await place.run(("old.txt", "first"), ("new/file.txt", "new"), ("old.txt", "second"))
    assert place.files() == {"old.txt": "second", "new/file.txt": "new"}
    done = undo(folder, Blobs(folder.blobs))
    assert (("old.txt",), ("new/file.txt",)) == (done.restored, done.removed)
    assert before == place.files()
    assert undo(folder, Blobs(folder.blobs)) == attrs.evolve(done, restored=(), removed=())


async def test_a_file_that_was_removed_comes_back_as_it_was(place: Place) -> None:
    """A removed file gets its content and its permission bits back."""
    file = place.workspace / "tool.sh"
    file.write_text("echo hi")
    file.chmod(0o750)
    script = place.workspace.parent / "script.yaml"
    (place.workspace / "agents" / "writer.md").write_text(AGENT.replace("write_file", "delete_file"))
    calls = "calls: [{name: read_file, arguments: {path: tool.sh}}, {name: delete_file, arguments: {path: tool.sh}}]"
    script.write_text(f"writer: [{{{calls}}}, done]")
    runtime = open_runtime(place.workspace, model=f"scripted/{script}", state=str(place.state.path))
    async with runtime as opened, opened.run("writer", "delete", yes=True) as run:
        await run.report()
    assert not file.exists()
    folder = place.state.run(run.id)
    undo(folder, Blobs(folder.blobs))
    assert ("echo hi", 0o750) == (file.read_text(), file.stat().st_mode & 0o777)


async def test_undo_to_an_event_keeps_what_was_before_it(place: Place) -> None:
    """With an event named, changes up to it stay."""
    folder = await place.run(("a.txt", "first"), ("a.txt", "second"), ("b.txt", "third"))
    undo(folder, Blobs(folder.blobs), seq_of(folder, "a.txt", "first"))
    assert place.files() == {"a.txt": "first"}
    undo(folder, Blobs(folder.blobs))
    assert place.files() == {}
    with pytest.raises(UsageError, match="there is no 9999"):
        undo(folder, Blobs(folder.blobs), 9999)


def test_an_undo_that_was_cut_off_can_be_made_again(tmp_path: Path) -> None:
    """Files already put back by an undo whose process died are as they should be; the rest follows."""
    events = [
        changing("a", None, "1"),
        changing("b", "0", "1"),
        changing("b", "1", "2"),
        changing("c", "0", "1"),
        changing("c", "1", None),
    ]
    whole = {"a": "1", "b": "2", "c": None}
    wanted = restores(records(*events), 0, whole.__getitem__)
    assert {"a": None, "b": "0", "c": "0"} == {each.path: each.content for each in wanted}
    for count in range(len(wanted) + 1):
        now = whole | {each.path: each.content for each in wanted[:count]}
        assert wanted[count:] == restores(records(*events), 0, now.__getitem__)


async def test_a_file_changed_since_leaves_all_files_alone(place: Place) -> None:
    """When one file was changed by hand, none is put back, the error names it, and nothing goes on record."""
    folder = await place.run(("a.txt", "a"), ("b.txt", "b"))
    (place.workspace / "a.txt").write_text("mine")
    before = place.files()
    with pytest.raises(CannotUndo, match=r"nothing was undone: a\.txt changed since: move it away or put it back"):
        undo(folder, Blobs(folder.blobs))
    assert before == place.files()
    with RunReader(folder) as reader:
        assert not any(isinstance(record.event, FilesRestored) for record in reader.records())


async def test_a_content_that_is_gone_leaves_all_files_alone(place: Place) -> None:
    """When an old content is no longer kept, none is put back and the error names the file."""
    (place.workspace / "a.txt").write_text("old")
    folder = await place.run(("a.txt", "a"), ("b.txt", "b"))
    for kept in folder.blobs.iterdir():
        kept.unlink()
    before = place.files()
    with pytest.raises(CannotUndo, match=r"a\.txt cannot be put back"):
        undo(folder, Blobs(folder.blobs))
    assert before == place.files()


async def test_a_huge_file_is_not_read_into_memory(place: Place) -> None:
    """One that was moved in the run and is too large to be kept stops the undo, without all of it in memory."""
    with (place.workspace / "huge").open("wb") as file:
        file.truncate(KEPT_BYTES + 1)
    folder = await place.call("move_file", path="huge", to="moved")
    tracemalloc.start()
    try:
        with pytest.raises(CannotUndo, match="huge cannot be put back"):
            undo(folder, Blobs(folder.blobs))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < KEPT_BYTES // 4
    assert (place.workspace / "moved").stat().st_size == KEPT_BYTES + 1


async def test_a_file_that_cannot_be_written_leaves_all_files_as_they_were(place: Place) -> None:
    """When putting back fails half-way, what was put back already is as it was before the undo."""
    (place.workspace / "a.txt").write_text("old a")
    (place.workspace / "d").mkdir()
    (place.workspace / "d" / "b.txt").write_text("old b")
    folder = await place.run(("d/b.txt", "b"), ("a.txt", "a"))

    class Failing(Blobs):
        """Contents, during whose reading somebody makes a folder of the file that is put back last."""

        def get(self, digest: str) -> bytes:
            content = super().get(digest)
            if content == b"old b":
                (place.workspace / "d" / "b.txt").write_text("b, and more")
            return content

    with pytest.raises(CannotUndo, match="changes right now"):
        undo(folder, Failing(folder.blobs))
    assert place.files() == {"a.txt": "a", "d/b.txt": "b, and more"}


async def test_a_live_run_is_not_undone(place: Place) -> None:
    """While a process owns the run, nothing is undone."""
    folder = create_run(place.state, random.Random(1))
    async with open_journal(folder):
        with pytest.raises(JournalError, match="is owned by process"):
            undo(folder, Blobs(folder.blobs))


# --- the workspace tells before it changes -----------------------------------------------------------------------


def test_every_change_is_told_before_it_happens(tmp_path: Path) -> None:
    """Writing, removing and moving files tell of each content that will be gone, while it is still there."""
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b", "d/c", "e"):
        (tmp_path / name).write_text(name)
    told: list[tuple[str, bytes | None, bool]] = []

    def keep(change: Change) -> None:
        there = (tmp_path / change.path).is_file()
        assert there == (change.before is not None)
        told.append((change.path, change.content, change.after is None))

    with Workspace(tmp_path) as workspace:
        seen = workspace.keeping(keep)
        seen.write_bytes("a", b"a")
        assert told == []
        seen.write_bytes("a", b"2")
        seen.write_bytes("n", b"3")
        with seen.open_write("a") as file:
            file.write(b"4")
        assert told == [("a", b"a", False), ("n", None, False), ("a", b"2", False)]
        told.clear()
        seen.unlink("n")
        seen.delete("d")
        assert sorted(told) == [("d/b", b"d/b", True), ("d/c", b"d/c", True), ("n", b"3", True)]
        told.clear()
        seen.rename("a", "e")
        assert told == [("e", b"e", False), ("a", b"4", True)]
        told.clear()
        workspace.write_bytes("e", b"5")
        assert told == []


def test_what_cannot_be_kept_is_not_changed(tmp_path: Path) -> None:
    """When nobody can keep the old content, the file stays as it is."""
    (tmp_path / "a").write_text("old")

    def keep(change: Change) -> None:
        raise ToolError(f"{change.path} was not changed: no space is left")

    with Workspace(tmp_path) as workspace:
        seen = workspace.keeping(keep)
        with pytest.raises(ToolError):
            seen.write_bytes("a", b"new")
        with pytest.raises(ToolError):
            seen.unlink("a")
        with pytest.raises(PathError):
            seen.write_bytes("../b", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_contents_in_memory_survive_a_crash() -> None:
    """What a journal in memory keeps is there for the process that comes after."""
    journal = MemoryJournal()
    digest = journal.contents.put(b"old")
    assert journal.crash().contents.get(digest) == b"old"
    with pytest.raises(JournalError):
        journal.contents.get("0" * 64)
