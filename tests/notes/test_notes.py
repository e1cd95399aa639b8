"""An agent's own list: kept per actor, shown as it changes, there again after a restart."""

from __future__ import annotations

from typing import Any

from runtime.events import ApprovalRequested, NotesChanged
from runtime.journal import MemoryJournal
from runtime.tools.notes import NOTE_TOOLS


async def test_a_list_is_kept_shown_and_read_again(stage: Any) -> None:
    """Each change is an event, writing the same list again is none, and nobody is asked."""
    stage.cast("todo_write, todo_read")
    stage.script("""
        lead:
          - calls: [{name: todo_write, arguments: {items: [{text: "look\\n  around", status: doing}, {text: report}]}}]
          - calls: [{name: todo_write, arguments: {items: [{text: look around, status: doing}, {text: report}]}}]
          - calls: [{name: todo_read, arguments: {}}]
          - calls: [{name: todo_write, arguments: {items: []}}, {name: todo_read, arguments: {}}]
          - done
    """)
    report = await stage.run()
    assert report is not None
    assert report.status == "completed"
    assert stage.results == [
        "kept 2 items, 0 done",
        "kept 2 items, 0 done",
        "[~] look around\n[ ] report",
        "kept 0 items, 0 done",
        "the list is empty",
    ]
    notes = [event.notes for event in stage.of(NotesChanged)]
    assert notes == [({"text": "look around", "status": "doing"}, {"text": "report", "status": "open"}), ()]
    assert stage.of(ApprovalRequested) == []
    assert {event.actor for event in stage.of(NotesChanged)} == {"lead"}


async def test_a_list_that_makes_no_sense_is_refused(stage: Any) -> None:
    """Empty items, unknown states and endless lists are errors that say what would do."""
    stage.cast("todo_write")
    many = ", ".join(["{text: x}"] * 101)
    stage.script(f"""
        lead:
          - calls: [{{name: todo_write, arguments: {{items: [{{text: "  "}}]}}}}]
          - calls: [{{name: todo_write, arguments: {{items: [{{text: a, status: later}}]}}}}]
          - calls: [{{name: todo_write, arguments: {{items: [{many}]}}}}]
          - done
    """)
    await stage.run()
    empty, unknown, endless = stage.results
    assert "1 to 500 characters" in empty
    assert 'must be one of "open", "doing", "done", "dropped"' in unknown
    assert "at most 100" in endless


async def test_the_list_is_there_after_a_restart(stage: Any) -> None:
    """A process that takes the run over knows the list."""
    stage.cast("todo_write, todo_read, ask_user")
    stage.headless = True
    stage.script("""
        lead:
          - calls: [{name: todo_write, arguments: {items: [{text: a}]}}]
          - calls: [{name: ask_user, arguments: {question: "go on?"}}]
          - calls: [{name: todo_read, arguments: {}}]
          - done
    """)
    assert await stage.run() is None
    stage.journal = MemoryJournal(stage.journal.records, contents=stage.journal.contents)
    stage.headless = False
    async with stage.opened(resume=True) as live:
        asked = await stage.pending(live)
        await live.questions.answer(asked.id, "yes", "you")
        await live.report()
    assert stage.results == ["kept 1 item, 0 done", "yes", "[ ] a"]


def test_notes_are_private_and_no_progress() -> None:
    """The guard sees no progress in notes, and rules need not allow them."""
    write, read = NOTE_TOOLS
    assert (write.private, write.progress, write.mutates) == (True, False, False)
    assert (read.private, read.read_only) == (True, True)
