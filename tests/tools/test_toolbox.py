"""How a call is run: every fault becomes a result, sync tools get a thread, long results are shortened."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.errors import JournalError
from runtime.events import Event, Warned
from runtime.messages import Image, JsonObject, ToolCall, ToolResult
from runtime.policy.paths import Workspace
from runtime.policy.subjects import HostSubject, PathSubject, PathUse, PlainSubject
from runtime.tools import Output, Problem, RunHooks, Tool, ToolBox, ToolContext, ToolError, subject_of, tool
from runtime.tools._tool import PathUses
from runtime.tools._toolbox import is_transient


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(Workspace(tmp_path), call_id="r1c0", actor="writer")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("r1c0", name, arguments)


def failing(error: Exception, **options: Any) -> Tool:
    @tool(name="fail", **options)
    async def fail() -> str:
        """Fail."""
        raise error

    return fail


async def test_a_tool_gives_text_or_an_output(ctx: ToolContext) -> None:
    """Text, None, data and an Output with images each become one result."""

    @tool
    async def give(what: str) -> Any:
        """Give."""
        return {
            "text": "hello",
            "nothing": None,
            "empty": "",
            "data": {"a": [1]},
            "broken": "x\ud800",
            "output": Output("bad", is_error=True, images=(Image("image/png", "aa"),), data={"n": 1}),
        }[what]

    box = ToolBox([give])
    data: list[JsonObject] = []
    hooks = RunHooks(data=lambda _, each: data.append(each))
    results = {
        what: await box.run(call("give", what=what), ctx, hooks)
        for what in ("text", "nothing", "empty", "data", "broken", "output")
    }
    assert {what: result.content for what, result in results.items()} == {
        "text": "hello",
        "nothing": "done",
        "empty": "(no output)",
        "data": '{"a": [1]}',
        "broken": "x?",
        "output": "bad",
    }
    assert results["output"] == ToolResult("r1c0", "give", "bad", "error", (Image("image/png", "aa"),))
    assert data == [{"n": 1}]


async def test_whatever_a_tool_raises_becomes_an_error_result(ctx: ToolContext) -> None:
    """The model reads the message, the owner gets the exception with its traceback."""
    failed: list[Exception] = []
    hooks = RunHooks(failed=lambda _, error: failed.append(error))
    errors: list[tuple[Exception, str]] = [
        (ToolError("no such thing"), "no such thing"),
        (ValueError("bad"), "ValueError: bad"),
        (KeyError(), "KeyError"),
        (ExceptionGroup("two", [OSError("one"), ToolError("other")]), "OSError: one; other"),
    ]
    for error, text in errors:
        result = await ToolBox([failing(error)]).run(call("fail"), ctx, hooks)
        assert (text, "error") == (result.content, result.kind)
        assert failed[-1].__traceback__ is not None
    assert failed == [error for error, _ in errors]


async def test_a_journal_that_cannot_be_written_is_no_fault_of_a_tool(ctx: ToolContext) -> None:
    """What must stop the run passes through."""
    with pytest.raises(JournalError):
        await ToolBox([failing(JournalError("disk full"))]).run(call("fail"), ctx)


async def test_a_call_that_does_not_fit_is_answered_not_run(ctx: ToolContext) -> None:
    """Unknown tools, unreadable arguments and wrong ones get a result that says what to do."""
    box = ToolBox([failing(AssertionError("was run"))])
    cut = ToolCall("c", "fail", None, '{"a":', "the arguments were cut off at the output limit")
    assert "did you mean 'fail'? Your tools: fail" in (await box.run(call("fial"), ctx)).content
    assert "cut off at the output limit" in (await box.run(cut, ctx)).content
    assert "- a: is unknown" in (await box.run(call("fail", a=1), ctx)).content
    assert isinstance(box.check(call("x")), Problem)
    assert box.check(call("fail")) == {}
    assert "Your tools: none" in (await ToolBox([]).run(call("fail"), ctx)).content


async def test_transient_failures_are_tried_again_as_declared(ctx: ToolContext, autojump_clock: MockClock) -> None:
    """Each further attempt waits its backoff and is reported; the last failure is the result."""
    tries: list[float] = []

    def flaky(good_at: int, **options: Any) -> Tool:
        tries.clear()

        @tool(name="fail", **options)
        async def fail() -> str:
            """Fail at first."""
            tries.append(trio.current_time())
            if len(tries) < good_at:
                raise ToolError("busy", transient=True)
            return "good"

        return fail

    retried: list[tuple[int, float, str]] = []
    hooks = RunHooks(
        retried=lambda _, attempt, wait, message: retried.append((attempt, wait, message)),
        backoff=lambda attempt: 2.0**attempt,
    )
    assert (await ToolBox([flaky(3, effects="none", retries=2)]).run(call("fail"), ctx, hooks)).content == "good"
    assert retried == [(0, 1.0, "busy"), (1, 2.0, "busy")]
    assert [each - tries[0] for each in tries] == [0.0, 1.0, 3.0]
    assert (await ToolBox([flaky(4, effects="idempotent", retries=2)]).run(call("fail"), ctx, hooks)).kind == "error"
    assert len(tries) == 3
    assert (await ToolBox([flaky(2)]).run(call("fail"), ctx, hooks)).kind == "error"
    assert len(tries) == 1


def test_only_what_may_heal_by_itself_is_transient() -> None:
    """Refused and reset connections and timeouts may heal; a missing file or a wrong value does not."""
    assert is_transient(ConnectionResetError(104, "reset"))
    assert is_transient(TimeoutError())
    assert is_transient(ToolError("x", transient=True))
    assert not is_transient(FileNotFoundError(2, "x"))
    assert not is_transient(ToolError("x"))
    assert not is_transient(ValueError())


async def test_a_sync_tool_gets_a_thread_and_reports_on_trios_own(ctx: ToolContext) -> None:
    """Blocking work does not block the runtime, and what it reports arrives in the main thread."""
    heard: list[tuple[object, bool]] = []
    main = threading.current_thread()

    def hear(what: object) -> None:
        heard.append((what, threading.current_thread() is main))

    def hear_change(path: str, before: bytes | None, after: bytes | None, diff: str) -> None:
        hear((path, before, after, diff))

    def hear_event(event: Event) -> None:
        hear(event)

    @tool
    def work(ctx: ToolContext, n: int) -> str:
        """Work."""
        ctx.output("half")
        ctx.changed("a", None, b"x", "diff")
        ctx.report(Warned(text="w"))
        hear("thread")
        return f"{ctx.call_id} {n}"

    box = ToolBox([work])
    ctx = ToolContext(ctx.workspace, "c7", output=hear, changed=hear_change, report=hear_event)
    assert (await box.run(call("work", n=3), ctx)).content == "c7 3"
    assert heard == [("half", True), (("a", None, b"x", "diff"), True), (Warned(text="w"), True), ("thread", False)]


async def test_a_cancelled_thread_that_looks_up_ends_and_is_waited_for(ctx: ToolContext) -> None:
    """A sync tool that checks for cancellation is gone before the call is."""
    ended = threading.Event()
    started = trio.Event()

    @tool
    def work(ctx: ToolContext) -> str:
        """Work until stopped."""
        ctx.output("started")
        try:
            while True:
                trio.from_thread.check_cancelled()
                time.sleep(0.001)
        finally:
            ended.set()

    def hear(text: str) -> None:
        del text
        started.set()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ToolBox([work]).run, call("work"), ToolContext(ctx.workspace, output=hear))
            await started.wait()
            nursery.cancel_scope.cancel()
    assert ended.is_set()


async def test_a_thread_that_hangs_does_not_hold_up_a_deadline(ctx: ToolContext, autojump_clock: MockClock) -> None:
    """A sync tool that never looks up is left behind after a grace time: the run still ends."""
    release = threading.Event()

    @tool
    def hang() -> str:
        """Hang."""
        release.wait(30)
        return ""

    try:
        with trio.move_on_after(1) as scope:
            await ToolBox([hang]).run(call("hang"), ctx)
        assert scope.cancelled_caught
    finally:
        release.set()


async def test_a_long_result_is_shortened_and_kept(ctx: ToolContext) -> None:
    """The model gets head, tail and a handle; the owner gets the whole text."""

    @tool(max_result_chars=1000)
    async def shout() -> str:
        """Shout."""
        return "é" * 5000

    kept: dict[str, str] = {}

    def keep(call_id: str, text: str) -> str:
        kept[call_id] = text
        return call_id

    result = await ToolBox([shout]).run(call("shout"), ctx, RunHooks(keep=keep))
    assert len(result.content) <= 1000
    assert 'read_result(handle="r1c0", start=' in result.content
    assert kept == {"r1c0": "é" * 5000}
    assert "read_result" not in (await ToolBox([shout]).run(call("shout"), ctx)).content


async def test_arguments_a_class_refuses_are_an_ordinary_error(ctx: ToolContext) -> None:
    """A value that fits the schema but not the type is told to the model."""

    def convert(arguments: JsonObject) -> JsonObject:
        raise ValueError(f"{len(arguments)} is not enough")

    refuse = Tool("refuse", "", {"type": "object"}, lambda: "x", convert=convert)
    assert (await ToolBox([refuse]).run(call("refuse"), ctx)).content == "refuse was not run: 0 is not enough"


def test_a_box_holds_each_name_once() -> None:
    """Two tools of one name are an error; specs come in the order given."""
    fail = failing(ValueError())
    with pytest.raises(ValueError, match="two tools are called 'fail'"):
        ToolBox([fail, fail])
    box = ToolBox([fail])
    assert [spec.name for spec in box.specs()] == ["fail"]
    assert (len(box), "fail" in box, "x" in box, list(box), box.get("x")) == (1, True, False, [fail], None)


def test_effects_decide_what_runs_together() -> None:
    """Delegations are their own kind; a tool that is not there has no effects."""
    box = ToolBox([failing(ValueError(), effects="idempotent", delegates=True)])
    assert box.effects_of(call("fail")) == "delegation"
    assert box.effects_of(call("gone")) == "none"
    assert ToolBox([failing(ValueError())]).effects_of(call("fail")) == "once"


def test_the_subject_of_a_call_is_what_its_paths_really_are(ctx: ToolContext, tmp_path: Path) -> None:
    """Rules see resolved paths, a path that leads out as a fault, and what a tool says about itself."""

    def make(**options: Any) -> Tool:
        return failing(ValueError(), **options)

    (tmp_path / ".git").mkdir()
    (tmp_path / "notes").symlink_to(".git")
    write = make(paths={"path": "write"})
    workspace = ctx.workspace
    assert PathSubject("fail", (PathUse("write", ".git/x"),), True) == subject_of(write, {"path": "notes/x"}, workspace)
    outside = subject_of(write, {"path": "../x"}, workspace)
    assert isinstance(outside, PathSubject)
    assert outside.uses[0].fault == "'../x' is outside the workspace"
    assert PlainSubject("fail", True, False) == subject_of(write, {}, workspace)
    assert PlainSubject("fail", False, True) == subject_of(make(effects="none", private=True), {}, workspace)

    def host(arguments: JsonObject) -> HostSubject:
        return HostSubject(str(arguments["url"]))

    def target(arguments: JsonObject) -> PathUses:
        return {str(arguments["to"]): "write"}

    assert HostSubject("h") == subject_of(make(subject=host), {"url": "h"}, workspace)
    computed = make(paths=target)
    assert PathSubject("fail", (PathUse("write", "a"),), True) == subject_of(computed, {"to": "a"}, workspace)
