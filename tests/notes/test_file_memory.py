"""What an actor knows of files, and what a run keeps of results, is there again in the process that takes over."""

from __future__ import annotations

from typing import Any

from runtime.events import FileChanged, ToolFinished
from runtime.journal import MemoryJournal
from runtime.tools import tool
from runtime.tools.results import ResultStore


def restarted(stage: Any, until: int) -> None:
    """The record up to an event, as a process that was killed there leaves it."""
    stage.journal = MemoryJournal(stage.journal.records[:until], contents=stage.journal.contents)


async def test_a_run_killed_at_any_event_edits_once(stage: Any) -> None:
    """Wherever the process dies between reading and the end, the one that takes over ends with the same file."""
    stage.yes = True
    stage.cast("read_file, edit_file, insert_lines, write_file, delete_file")
    stage.script("""
        lead:
          - calls: [{name: read_file, arguments: {path: f}}]
          - calls: [{name: edit_file, arguments: {path: f, old_text: b, new_text: bb}}]
          - calls: [{name: insert_lines, arguments: {path: f, after: 2, expected: bb, content: bb}}]
          - calls: [{name: write_file, arguments: {path: g, content: "g\\n"}}]
          - calls: [{name: delete_file, arguments: {path: g}}]
          - done
    """)
    file = stage.workspace / "f"
    contents: dict[int, bytes] = {}
    file.write_text("a\nb\nc\n")
    report = await stage.run()
    assert report.status == "completed", stage.results
    whole = stage.journal
    assert file.read_text() == "a\nbb\nbb\nc\n"
    for seq, event in enumerate(stage.events, 1):
        if isinstance(event, FileChanged) and event.path == "f":
            contents[seq] = whole.contents.get(event.before or "")
    changes = [seq for seq, event in enumerate(stage.events, 1) if isinstance(event, FileChanged)]
    ends = [seq for seq, event in enumerate(stage.events, 1) if isinstance(event, ToolFinished)]
    # The effect is there, the change on record or not, the call's end not.
    for change, end in zip(changes[:2], ends[1:3], strict=True):
        for until in range(change - 1, end):
            stage.journal = whole
            restarted(stage, until)
            then = "a\nbb\nc\n" if change == changes[0] else "a\nbb\nbb\nc\n"
            file.write_text(then)
            report = await stage.run(resume=True)
            assert report.status == "completed"
            assert file.read_text() == "a\nbb\nbb\nc\n", (until, stage.results)
            assert not any(event.is_error for event in stage.of(ToolFinished)), stage.results


async def test_what_was_read_before_a_restart_may_be_changed_after_it(stage: Any) -> None:
    """The actor's knowledge is on record; a file that changed in between is still stale."""
    stage.yes = True
    stage.cast("read_file, edit_file")
    stage.script("""
        lead:
          - calls: [{name: read_file, arguments: {path: f}}]
          - calls: [{name: edit_file, arguments: {path: f, old_text: a, new_text: b}}]
          - done
    """)
    file = stage.workspace / "f"
    file.write_text("a\n")
    await stage.run()
    whole = stage.journal
    read = next(seq for seq, event in enumerate(stage.events, 1) if isinstance(event, ToolFinished))
    for now, result in (("a\n", "changed f; lines 1-1 of 1 now:\n1\tb"), ("a\na2\n", "f has changed since")):
        stage.journal = whole
        restarted(stage, read)
        file.write_text(now)
        await stage.run(resume=True)
        assert stage.results[-1].startswith(result)


async def test_diff_shows_what_the_run_has_changed(stage: Any) -> None:
    """The beginning is what stood there before the first change, also for a process that takes over."""
    stage.yes = True
    stage.cast("write_file, delete_file, diff, read_file")
    stage.script("""
        lead:
          - calls: [{name: read_file, arguments: {path: f}}]
          - calls: [{name: write_file, arguments: {path: f, content: "two\\n"}}]
          - calls: [{name: write_file, arguments: {path: f, content: "three\\n"}}]
          - calls: [{name: diff, arguments: {path: f}}]
          - calls: [{name: delete_file, arguments: {path: f}}]
          - calls: [{name: diff, arguments: {path: f}}]
          - done
    """)
    (stage.workspace / "f").write_text("one\n")
    await stage.run()
    assert stage.results[3] == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+three\n"
    assert stage.results[5] == "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    (stage.workspace / "f").write_text("three\n")
    third = [seq for seq, event in enumerate(stage.events, 1) if isinstance(event, ToolFinished)][2]
    restarted(stage, third)
    await stage.run(resume=True)
    assert stage.results[3] == "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+three\n"


async def test_five_megabytes_reach_the_model_as_head_and_tail(stage: Any) -> None:
    """A result far above the window is cut between characters; all of it is on disk and can be paged, also later."""
    text = "".join(f"{number:07} große Ausbeute 😀\n" for number in range(200_000))
    assert len(text.encode()) > 5_000_000

    @tool(effects="none", private=True)
    async def huge(part: int) -> str:
        """Give a lot."""
        return f"{part}{text}"

    stage.cast("huge")
    stage.tools.append(huge)
    stage.script("""
        lead:
          - calls:
              - {name: huge, arguments: {part: 0}}
              - {name: huge, arguments: {part: 1}}
              - {name: huge, arguments: {part: 2}}
          - calls: [{name: read_result, arguments: {handle: a0t0c1, start: 1000, chars: 500}}]
          - done
    """)
    report = await stage.run()
    assert report.status == "completed"
    *parts, page = stage.of(ToolFinished)
    for event in parts:
        whole = f"{event.result[0]}{text}"
        head, _, rest = event.result.partition("\n[... ")
        marker, _, tail = rest.partition(" ...]\n")
        assert whole.startswith(head)
        assert whole.endswith(tail)
        assert marker.startswith(f"{len(whole) - len(head) - len(tail)} of {len(whole)} characters left out")
        assert f'handle="{event.call_id}", start={len(head)}' in marker
        assert len(event.result.encode()) < 40_000
        assert stage.journal.contents.get(event.full) == whole.encode()
    assert not page.is_error
    assert page.result.startswith(f"1{text}"[1000:1400])
    first = min(parts, key=lambda event: event.result[0])
    # Another process has nothing in memory.
    store = ResultStore(contents=stage.journal.contents)
    store.restore({first.call_id: first.full})
    assert store.get(first.call_id) is None
    assert await store.fetch(first.call_id) == f"0{text}"
    assert await store.fetch("other") is None
