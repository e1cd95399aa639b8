"""Clocks of a tree: who is waited for, and when everyone must end."""

from __future__ import annotations

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime.limits.clock import Clocks, Deadline


def team(root: float | None, child: float | None = None) -> Clocks:
    """A root that waits for its only child, from second 0."""
    clocks = Clocks()
    clocks.start("r", None, root, 0.0)
    clocks.start("r/0", "r", child, 0.0)
    clocks.pause("r", 0.0)
    return clocks


def test_a_clock_stands_still_while_everyone_below_waits_for_a_human() -> None:
    """A child asks a human for 50 seconds: neither its clock nor its parent's moves."""
    clocks = team(600)
    clocks.pause("r/0", 10.0)
    assert not clocks.runs("r")
    assert (10.0, 10.0) == (clocks.elapsed("r", 60.0), clocks.elapsed("r/0", 60.0))
    assert clocks.deadline("r", 60.0) is None
    clocks.resume("r/0", 60.0)
    assert 15.0 == clocks.elapsed("r", 65.0)
    assert Deadline(650.0, 620.0, "r", 600) == clocks.deadline("r", 65.0)


def test_a_clock_runs_while_one_of_several_children_works() -> None:
    """One child waits for a human, another works: the parent's clock runs, the waiting child's does not."""
    clocks = team(600, 100)
    clocks.start("r/1", "r", None, 0.0)
    clocks.pause("r/0", 10.0)
    assert (30.0, 10.0, 30.0) == tuple(clocks.elapsed(path, 30.0) for path in ("r", "r/0", "r/1"))
    assert 30.0 == clocks.finish("r/1", 30.0)
    assert 30.0 == clocks.elapsed("r", 99.0)


def test_calls_side_by_side_pause_one_by_one() -> None:
    """Of two calls in a round one asks a human: the clock runs until the other ends too."""
    clocks = Clocks()
    clocks.start("r", None, 600, 0.0)
    clocks.pause("r", 1.0)
    clocks.resume("r", 1.0, strands=2)
    clocks.pause("r", 2.0)
    assert clocks.runs("r")
    clocks.pause("r", 5.0)
    assert 5.0 == clocks.elapsed("r", 100.0)
    with pytest.raises(ValueError, match="r has 0 strands"):
        clocks.pause("r", 6.0)


def test_a_soft_deadline_leaves_time_for_the_last_turn() -> None:
    """A tenth of the timeout, thirty seconds at most."""
    clocks = Clocks()
    clocks.start("r", None, 60, 0.0)
    assert Deadline(60.0, 54.0, "r", 60) == clocks.deadline("r", 0.0)
    clocks.change("r", 6000)
    assert Deadline(6000.0, 5970.0, "r", 6000) == clocks.deadline("r", 10.0)


def test_a_child_ends_before_its_parent_must_wrap_up() -> None:
    """The parent's last turn comes after the child's, so that partial work comes up; it says whose it is."""
    clocks = team(60)
    assert Deadline(53.0, 47.0, "r", 60) == clocks.deadline("r/0", 0.0)


def test_the_tightest_deadline_of_the_chain_wins() -> None:
    """A child's own timeout counts where it comes first, else the parent's."""
    assert Deadline(10.0, 9.0, "r/0", 10) == team(60, 10).deadline("r/0", 0.0)
    deadline = team(60, 59).deadline("r/0", 0.0)
    assert deadline is not None
    assert (53.0, "r") == (deadline.at, deadline.scope)
    assert team(None).deadline("r/0", 0.0) is None


def test_clocks_stand_still_between_two_processes() -> None:
    """A snapshot keeps what the clocks show; they go on from the moment of the resume."""
    clocks = team(600, 100)
    again = Clocks.restore(json.loads(json.dumps(clocks.snapshot(20.0))), 1000.0)
    assert (25.0, 25.0) == (again.elapsed("r", 1005.0), again.elapsed("r/0", 1005.0))
    assert 1080.0 == (again.deadline("r/0", 1000.0) or Deadline(0, 0, "", 0)).at


def test_finishing_takes_those_below_along() -> None:
    """An actor's clock ends with those of its subtree, and may be started anew."""
    clocks = team(600)
    clocks.finish("r/0", 5.0)
    clocks.start("r/0", "r", None, 6.0)
    clocks.finish("r", 7.0)
    with pytest.raises(KeyError):
        clocks.elapsed("r/0", 8.0)
    clocks.start("r", None, None, 9.0)
    with pytest.raises(ValueError, match="has been started"):
        clocks.start("r", None, None, 9.0)


class ClocksMachine(RuleBasedStateMachine):
    """Against a model that remembers every stretch of time with what was working in it."""

    def __init__(self) -> None:
        super().__init__()
        self.clocks = Clocks()
        self.clocks.start("r", None, 50.0, 0.0)
        self.now = 0.0
        self.strands = {"r": 1}
        self.elapsed = {"r": 0.0}
        self.timeouts: dict[str, float | None] = {"r": 50.0}
        self.count = 0

    def working(self, path: str) -> bool:
        return any(
            strands and (other == path or other.startswith(f"{path}/")) for other, strands in self.strands.items()
        )

    @rule(seconds=st.integers(0, 20))
    def pass_time(self, seconds: int) -> None:
        for path in self.elapsed:
            self.elapsed[path] += seconds if self.working(path) else 0
        self.now += seconds

    @precondition(lambda self: len(self.strands) < 6)
    @rule(data=st.data(), timeout=st.none() | st.integers(1, 60))
    def start(self, data: st.DataObject, timeout: int | None) -> None:
        parent = data.draw(st.sampled_from(sorted(self.strands)))
        self.count += 1
        path = f"{parent}/{self.count}"
        self.clocks.start(path, parent, timeout, self.now)
        self.strands[path], self.elapsed[path], self.timeouts[path] = 1, 0.0, timeout

    @rule(data=st.data(), resume=st.booleans())
    def change(self, data: st.DataObject, resume: bool) -> None:
        path = data.draw(st.sampled_from(sorted(self.strands)))
        if resume:
            self.clocks.resume(path, self.now)
            self.strands[path] += 1
        elif self.strands[path]:
            self.clocks.pause(path, self.now)
            self.strands[path] -= 1

    @precondition(lambda self: len(self.strands) > 1)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.strands)[1:]))
        assert self.elapsed[path] == self.clocks.finish(path, self.now)
        for gone in [each for each in self.strands if each == path or each.startswith(f"{path}/")]:
            del self.strands[gone], self.elapsed[gone], self.timeouts[gone]

    @rule(pause=st.integers(0, 1000))
    def restart(self, pause: int) -> None:
        data = json.loads(json.dumps(self.clocks.snapshot(self.now)))
        self.now += pause
        self.clocks = Clocks.restore(data, self.now)

    @invariant()
    def clocks_show_the_time_somebody_worked(self) -> None:
        for path in self.strands:
            assert self.elapsed[path] == self.clocks.elapsed(path, self.now)
            assert self.working(path) == self.clocks.runs(path)

    @invariant()
    def nobody_outlives_anyone_above(self) -> None:
        for path in self.strands:
            deadline = self.clocks.deadline(path, self.now)
            parts = path.split("/")
            above = ["/".join(parts[: length + 1]) for length in range(len(parts))]
            left = [
                self.now + timeout - self.elapsed[each]
                for each in above
                if (timeout := self.timeouts[each]) is not None and self.working(each)
            ]
            if deadline is None:
                assert not left
                continue
            assert deadline.at <= min(left)
            assert deadline.wrap_up_at < deadline.at
            parent = self.clocks.deadline(above[-2], self.now) if len(above) > 1 else None
            assert parent is None or deadline.at < parent.wrap_up_at


TestClocksMachine = ClocksMachine.TestCase
TestClocksMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
