"""A guard restored from its snapshot goes on exactly as the one it was taken from."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.limits.loops import CallSeen, Flags, Guard, GuardSettings, StepSeen, rank

FLAGS = st.sampled_from(
    [
        Flags(read_only=True),
        Flags(mutates=True),
        Flags(),
        Flags(read_only=True, poll=True),
        Flags(mutates=True, delegates=True),
    ]
)
RESULTS = st.sampled_from(
    [
        "ok",
        "",
        "No matches found",
        "alpha\nbeta\ngamma",
        "alpha\nbeta\ndelta",
        "1 failed in 0.31s",
        "1 failed in 0.94s",
        "pending",
        "succeeded",
        "Error: old text not found",
        "429 Too Many Requests",
        "I cannot deploy: no credentials.",
        '{"ok": true, "message_id": "a81f", "sent_at": "2026-01-01T10:00:00Z"}',
        "refused: same call, same result, 6 times; it did not run",
        "\n".join(f"{n}  line {n}" for n in range(30)),
    ]
)
CALLS = st.builds(
    CallSeen,
    name=st.sampled_from(["read", "edit", "shell", "ask_agent", "job"]),
    arguments=st.sampled_from(
        [
            {},
            {"path": "a.py"},
            {"path": "b.py", "start": 1},
            {"command": "sed -n 1,9p a.py"},
            {"command": "make bench"},
            {"task": "Deploy the service and run the checks"},
            {"task": "Please run the checks after you deploy the service"},
        ]
    ),
    result=RESULTS,
    is_error=st.booleans(),
    seconds=st.sampled_from([0.1, 3.0, 30.0]),
    flags=FLAGS,
)
STEPS = st.builds(
    StepSeen,
    text=st.sampled_from(["", "Going on.", "I will wait.", "Let me look at the caller next. " * 40]),
    calls=st.lists(CALLS, max_size=4).map(tuple),
    at=st.floats(0, 1000),
    event=st.sampled_from([None, None, None, "user_message", "continuation", "compaction", "resume"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25), st.lists(STEPS, max_size=25))
def test_restored_guard_behaves_like_the_first(before: list[StepSeen], after: list[StepSeen]) -> None:
    """Whatever was seen before, both give the same verdicts, refusals and snapshots from then on."""
    options = GuardSettings(tools={"job": GuardSettings(4, 9, 12).ladder})
    guard = Guard(options)
    for step in before:
        guard.observe(step)
    kept = json.dumps(guard.snapshot())
    twin = Guard.restore(json.loads(kept), options)
    assert json.loads(kept) == json.loads(json.dumps(twin.snapshot()))
    for step in after:
        assert guard.observe(step) == twin.observe(step)
        for call in step.calls:
            assert guard.precheck(call.name, call.arguments) == twin.precheck(call.name, call.arguments)
    assert guard.snapshot() == twin.snapshot()


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_replaying_the_steps_rebuilds_the_guard(steps: list[StepSeen]) -> None:
    """The same steps give the same verdicts again: nothing depends on when or where they are seen."""
    first, second = Guard(), Guard()
    assert [first.observe(step) for step in steps] == [second.observe(step) for step in steps]


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_a_stop_stays_until_a_human_speaks(steps: list[StepSeen]) -> None:
    """After a stop every verdict is that stop, and every call is refused."""
    guard, stopped = Guard(), None
    for step in steps:
        verdict = guard.observe(step)
        if stopped is not None and step.event != "user_message":
            assert stopped == verdict
        stopped = verdict if rank(verdict) == 3 else None
        if stopped is not None:
            assert guard.precheck("read", {}) is not None


def test_snapshot_of_another_version_is_refused() -> None:
    """A guard does not guess at what it cannot read."""
    snapshot: dict[str, Any] = {**Guard().snapshot(), "version": 99}
    with pytest.raises(ValueError, match="version 99"):
        Guard.restore(snapshot)


def test_snapshot_stays_small_however_long_the_run() -> None:
    """After thousands of different calls the state is as large as after some hundreds."""
    sizes: list[int] = []
    guard = Guard()
    for place in range(3000):
        text = "\n".join(f"{place}-{n}" for n in range(12))
        guard.observe(StepSeen("", (CallSeen("read", {"n": place}, text, False, 0.1, Flags(read_only=True)),)))
        guard.observe(StepSeen("", (CallSeen("edit", {"n": place}, "ok", False, 0.1, Flags(mutates=True)),)))
        if place in (1500, 2999):
            sizes.append(len(json.dumps(guard.snapshot())))
    assert sizes[1] < sizes[0] * 1.2
    assert sizes[1] < 400_000
