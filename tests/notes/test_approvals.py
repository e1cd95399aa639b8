"""Approvals: shown with what will happen, allowed once, for the run or for the workspace, and never by silence."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.events import ApprovalDecided, ApprovalRequested, PermissionDecided, ToolFinished, ToolStarted
from runtime.grants import Grants
from runtime.journal import MemoryJournal
from runtime.policy.grants import grants_of
from runtime.policy.subjects import (
    AgentSubject,
    HostSubject,
    McpSubject,
    PathSubject,
    PathUse,
    PlainSubject,
    ShellSubject,
    Subject,
)
from runtime.tools import tool

EDITS = """
    lead:
      - calls: [{name: read_file, arguments: {path: notes.md}}]
      - calls: [{name: edit_file, arguments: {path: notes.md, old_text: one, new_text: two}}]
      - calls: [{name: edit_file, arguments: {path: notes.md, old_text: two, new_text: three}}]
      - calls: [{name: write_file, arguments: {path: other.md, content: x}}]
      - done
"""
TOOLS = "read_file, edit_file, write_file"


def prepared(stage: Any) -> None:
    stage.cast(TOOLS)
    stage.script(EDITS)
    (stage.workspace / "notes.md").write_text("one\n")


async def test_a_change_is_shown_as_its_diff(stage: Any) -> None:
    """Who is asked sees the diff and what "always" would mean; allowed once, the next call asks again."""
    prepared(stage)
    async with stage.opened() as live:
        for number, (diff, always) in enumerate([("-one\n+two\n", "edit_file"), ("-two\n+three\n", "edit_file")], 1):
            asked = await stage.pending(live)
            assert (asked.id, asked.name) == (f"a{number}", always)
            assert asked.preview == f"--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n{diff}"
            assert asked.always == ("edit_file(notes.md)",)
            await live.approvals.decide(asked.id, "allow", "you")
            await stage.until(lambda number=number: len(stage.of(ToolFinished)) > number)
        asked = await stage.pending(live)
        assert asked.preview.startswith("--- /dev/null\n+++ b/other.md")
        await live.approvals.decide(asked.id, "deny", "you", why="use notes.md instead")
        await live.report()
    assert (stage.workspace / "notes.md").read_text() == "three\n"
    assert stage.results[-1] == "refused by you: use notes.md instead"


async def test_allowed_for_the_run_the_same_is_not_asked_again(stage: Any) -> None:
    """The same tool on the same file goes through; another file asks."""
    prepared(stage)
    async with stage.opened() as live:
        asked = await stage.pending(live)
        await live.approvals.decide(asked.id, "allow", "you", scope="run")
        await stage.until(lambda: len(stage.of(ApprovalRequested)) == 2)
        (asked,) = live.approvals.pending
        assert asked.always == ("write_file(other.md)",)
        await live.approvals.decide(asked.id, "deny", "you")
        await live.report()
    assert (stage.workspace / "notes.md").read_text() == "three\n"
    decided = [(event.verdict, event.by) for event in stage.of(PermissionDecided)]
    assert decided == [("allow", "built-in"), ("ask", "built-in"), ("allow", "you"), ("ask", "built-in")]
    assert Grants.of_workspace(stage.state, str(stage.workspace)).allowed == set()


async def test_allowed_for_the_workspace_later_runs_know_it(stage: Any) -> None:
    """The grant is in the user's state, private, for this workspace alone, and never in the workspace."""
    prepared(stage)
    before = {path.name for path in stage.workspace.rglob("*")}
    async with stage.opened() as live:
        asked = await stage.pending(live)
        await live.approvals.decide(asked.id, "allow", "you", scope="workspace")
        await stage.until(lambda: len(stage.of(ApprovalRequested)) == 2)
        live.cancel()
        await live.report()
    (file,) = (stage.state / "allowed").glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"workspace": str(stage.workspace), "allow": ["edit_file(notes.md)"]}
    assert {path.name for path in stage.workspace.rglob("*")} == before
    stage.journal = MemoryJournal()
    (stage.workspace / "notes.md").write_text("one\n")
    async with stage.opened() as live:
        asked = await stage.pending(live)
        assert asked.name == "write_file"
        live.cancel()
        await live.report()
    assert Grants.of_workspace(stage.state, "/elsewhere").allowed == set()


async def test_what_was_allowed_for_the_run_holds_after_a_restart(stage: Any) -> None:
    """Decisions made while no process worked count as much: for the run, and from then on for the workspace."""
    prepared(stage)
    stage.headless = True
    assert await stage.run() is None
    stage.journal = MemoryJournal(stage.journal.records, contents=stage.journal.contents)
    stage.journal.append(ApprovalDecided(actor="lead", id="a1", decision="allow", by="you", scope="workspace"))
    assert await stage.run(resume=True) is None
    assert (stage.workspace / "notes.md").read_text() == "three\n"
    assert [event.name for event in stage.of(ApprovalRequested)] == ["edit_file", "write_file"]
    assert Grants.of_workspace(stage.state, str(stage.workspace)).allowed == {"edit_file(notes.md)"}


async def test_files_that_govern_agents_ask_every_time(stage: Any) -> None:
    """No scope takes that question away."""
    stage.cast("write_file")
    stage.script("""
        lead:
          - calls: [{name: write_file, arguments: {path: AGENTS.md, content: a}}]
          - calls: [{name: write_file, arguments: {path: AGENTS.md, content: b}}]
          - done
    """)
    async with stage.opened() as live:
        for count in (1, 2):
            asked = await stage.pending(live)
            assert asked.always == ()
            await live.approvals.decide(asked.id, "allow", "you", scope="run")
            await stage.until(lambda count=count: len(stage.of(ToolFinished)) == count)
        await live.report()
    assert len(stage.of(ApprovalRequested)) == 2


async def test_nobody_is_asked_about_what_cannot_work(stage: Any) -> None:
    """A call whose preview fails ends with the reason; nothing was started and nobody disturbed."""
    stage.cast("edit_file, apply_patch, read_file, fetch_url")
    (stage.workspace / "f").write_text("x\n")
    stage.script("""
        lead:
          - calls: [{name: edit_file, arguments: {path: f, old_text: a, new_text: b}}]
          - calls: [{name: apply_patch, arguments: {patch: "no patch"}}]
          - calls: [{name: fetch_url, arguments: {url: "http://127.0.0.1/"}}]
          - calls: [{name: fetch_url, arguments: {url: "file:///etc/passwd"}}]
          - done
    """)
    await stage.run()
    assert stage.of(ApprovalRequested) == []
    assert stage.of(ToolStarted) == []
    unread, broken, private, scheme = stage.results
    assert "you have not read f yet" in unread
    assert "names no file" in broken
    assert "private network" in private
    assert "begins with https://" in scheme


async def test_a_reason_does_not_leak_what_asks_before_it_is_read(stage: Any) -> None:
    """Where reading the file itself asks, the failing preview goes to the human, not to the model."""
    stage.cast("edit_file, read_file", 'permissions: {ask: ["read_file(secret/**)"]}\n')
    (stage.workspace / "secret").mkdir()
    (stage.workspace / "secret" / "key").write_text("swordfish\n")
    stage.script("""
        lead:
          - calls: [{name: read_file, arguments: {path: secret/key}}]
          - calls: [{name: edit_file, arguments: {path: secret/key, old_text: swordfis, new_text: ""}}]
          - calls: [{name: edit_file, arguments: {path: secret/key, old_text: swordfish!!, new_text: ""}}]
          - done
    """)
    async with stage.opened() as live:
        asked = await stage.pending(live)
        await live.approvals.decide(asked.id, "allow", "you")
        for count in (2, 3):
            await stage.until(lambda count=count: len(stage.of(ApprovalRequested)) == count)
            (asked,) = live.approvals.pending
            await live.approvals.decide(asked.id, "deny", "you")
        await live.report()
    shown = [event.preview for event in stage.of(ApprovalRequested)]
    assert "-swordfish" in shown[1]
    assert shown[2].startswith("As things stand it would fail: old_text is not in")
    assert "swordfish" in shown[2]
    assert [result for result in stage.results if "fish" in result] == stage.results[:1]


async def test_edited_arguments_stay_under_every_deny(stage: Any) -> None:
    """A human may change what is done, but what is denied stays denied."""
    stage.cast("write_file", 'permissions: {deny: ["write_file(keep/**)"]}\n')
    stage.script("""
        lead:
          - calls: [{name: write_file, arguments: {path: a, content: a}}]
          - calls: [{name: write_file, arguments: {path: b, content: b}}]
          - done
    """)
    async with stage.opened() as live:
        for count, path in ((1, "keep/a"), (2, "c")):
            asked = await stage.pending(live)
            await live.approvals.decide(asked.id, "allow", "you", arguments={"path": path, "content": "edited"})
            await stage.until(lambda count=count: len(stage.of(ToolFinished)) == count)
        await live.report()
    assert "denied by rule deny: write_file(keep/**)" in stage.results[0]
    assert sorted(path.name for path in stage.workspace.iterdir()) == ["agents", "c"]


async def test_silence_is_a_no(stage: Any, autojump_clock: MockClock) -> None:
    """With a time-out in the settings, an approval nobody decides is refused, and it says so."""
    stage.cast("risky")

    @tool
    async def risky() -> str:
        """Do it."""
        return "done"

    stage.tools.append(risky)
    stage.script("lead: [{calls: [{name: risky, arguments: {}}]}, done]")
    (stage.workspace / "elenco.yaml").write_text("approvals: {timeout: 600}\n")
    report = await stage.run_long()
    assert report.status == "completed"
    assert stage.results == ["refused by time-out: nobody decided within 600 s"]


async def test_a_preview_of_ones_own_tool_is_shown(stage: Any) -> None:
    """A tool's author says what it would do; a fault of the preview is shown as one and stops nothing."""
    stage.cast("send, broken")

    @tool(preview=lambda _, arguments: f"to {arguments['to']}")
    async def send(to: str) -> str:
        """Send it."""
        return f"sent to {to}"

    @tool(preview=lambda _, arguments: str(arguments["nothing"]))
    async def broken() -> str:
        """Do something."""
        return "worked"

    stage.tools += [send, broken]
    stage.script("""
        lead:
          - calls: [{name: send, arguments: {to: ann}}]
          - calls: [{name: broken, arguments: {}}]
          - done
    """)
    async with stage.opened() as live:
        for count in (1, 2):
            asked = await stage.pending(live)
            await live.approvals.decide(asked.id, "allow", "you")
            await stage.until(lambda count=count: len(stage.of(ToolFinished)) == count)
        await live.report()
    assert [event.preview for event in stage.of(ApprovalRequested)] == ["to ann", "no preview: KeyError: 'nothing'"]
    assert stage.results == ["sent to ann", "worked"]


@pytest.mark.parametrize(
    ("subject", "grants"),
    [
        (PathSubject("edit_file", (PathUse("read", "a"), PathUse("write", "a"))), ("edit_file(a)",)),
        (PathSubject("read_file", (PathUse("read", "a"),)), ("read_file(a)",)),
        (
            PathSubject("apply_patch", (PathUse("write", "a"), PathUse("read", "b"), PathUse("delete", "b"))),
            ("apply_patch(a)", "apply_patch delete(b)"),
        ),
        (PathSubject("edit_file", (PathUse("write", "a", fault="out"),)), ()),
        (ShellSubject("touch a && ls"), ("shell(touch a && ls)",)),
        (HostSubject("example.org"), ("fetch_url(example.org)",)),
        (HostSubject("", "search_web"), ()),
        (McpSubject("time_now", "time", "now"), ("mcp(time/now)",)),
        (AgentSubject("delegate_to_x", "x"), ("agent(x)",)),
        (PlainSubject("deploy"), ("deploy",)),
    ],
)
def test_always_means_this_and_nothing_wider(subject: Subject, grants: tuple[str, ...]) -> None:
    """A grant names the tool and the very thing it was for."""
    assert grants_of(subject) == grants
    held = Grants(allowed=set(grants))
    assert held.covers(subject) == bool(grants)
    assert not held.covers(ShellSubject("touch b"))
    assert not Grants().covers(subject)


@given(st.lists(st.text(alphabet="ab(", min_size=1, max_size=3), max_size=5))
def test_a_patch_is_covered_when_each_of_its_files_is(paths: list[str]) -> None:
    """Grants add up: files allowed one by one may be changed in one call."""
    held = Grants(allowed={f"apply_patch({path})" for path in paths})
    whole = PathSubject("apply_patch", tuple(PathUse("write", path) for path in paths))
    assert held.covers(whole) == bool(paths)
    assert not held.covers(PathSubject("apply_patch", (*whole.uses, PathUse("write", "zz"))))


def test_grants_of_several_processes_add_up(tmp_path: Path) -> None:
    """Who keeps a grant does not lose those that others have kept meanwhile; a damaged file allows nothing."""
    one, two = (Grants.of_workspace(tmp_path, "/w") for _ in range(2))
    one.keep(["a"])
    two.keep(["b", "a"])
    assert Grants.of_workspace(tmp_path, "/w").allowed == {"a", "b"}
    (file,) = (tmp_path / "allowed").glob("*.json")
    file.write_text('{"workspace": "/w", "allow": "everything"}')
    assert Grants.of_workspace(tmp_path, "/w").allowed == set()
    file.write_bytes(b"\xff[")
    assert Grants.of_workspace(tmp_path, "/w").allowed == set()


async def test_a_grant_that_cannot_be_kept_holds_for_the_run(stage: Any) -> None:
    """Where the state cannot be written, the run goes on and says so."""
    from runtime.events import Warned

    prepared(stage)
    (stage.state / "allowed").write_text("in the way")
    async with stage.opened() as live:
        asked = await stage.pending(live)
        await live.approvals.decide(asked.id, "allow", "you", scope="workspace")
        await stage.until(lambda: len(stage.of(ApprovalRequested)) == 2)
        live.cancel()
        with trio.fail_after(5):
            await live.report()
    assert ["allowed for this run only" in event.text for event in stage.of(Warned)] == [True]
    assert (stage.workspace / "notes.md").read_text() == "three\n"
