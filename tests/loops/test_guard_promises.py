"""What holds for every run: plain repetition is measured as a child would count it, and news is never punished."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.limits.loops import CallSeen, Flags, Guard, GuardSettings, Ok, StepSeen, rank

READ = Flags(read_only=True)
CHANGE = Flags(mutates=True)
NAMES = ["amber", "basin", "cedar", "delta", "ember", "fjord", "glade", "harbor", "inlet", "jetty", "kelp", "lagoon"]
LADDERS = st.tuples(st.integers(2, 6), st.integers(0, 6), st.integers(0, 6)).map(
    lambda n: GuardSettings(n[0], n[0] + n[1], n[0] + n[1] + n[2])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(LADDERS, st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.integers(1, 25))
def test_plain_repetition_is_counted_like_a_child_would(
    ladder: GuardSettings, arguments: dict[str, Any], times: int
) -> None:
    """The nth equal call with an equal two-line result gets the verdict of the ladder's nth step."""
    guard = Guard(ladder)
    call = CallSeen("read", arguments, "alpha\nbeta", False, 0.1, READ)
    for n in range(1, times + 1):
        naive = 3 if n >= ladder.stop else 2 if n >= ladder.block else 1 if n >= ladder.nudge else 0
        assert naive == rank(guard.observe(StepSeen("", (call,))))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60))
def test_a_run_that_learns_something_in_every_step_hears_nothing(kinds: list[tuple[bool, int]]) -> None:
    """However often old calls come along, a step with a new line or a new change is met with silence."""
    guard = Guard()
    for place, (reads, old) in enumerate(kinds):
        if reads:
            fresh = CallSeen("read", {"page": place}, f"page {place}\nword {place * 7919}", False, 0.1, READ)
        else:
            fresh = CallSeen("edit", {"old": f"a{place}", "new": f"b{place}"}, "ok", False, 0.1, CHANGE)
        stale = CallSeen("status", {"n": old}, "clean\nnothing to commit", False, 0.1, READ)
        assert isinstance(guard.observe(StepSeen("", (stale, fresh))), Ok)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32), st.lists(st.booleans(), min_size=12, max_size=12))
def test_every_circle_up_to_twelve_is_ended_within_six_rounds(period: int, seed: int, fails: list[bool]) -> None:
    """Whatever the calls in it, a circle without news is stopped by the end of its sixth round, or its eighth call."""
    guard = Guard()
    calls = [
        CallSeen(
            f"tool{n % 3}",
            {"n": n, "seed": seed},
            f"{NAMES[n]} said {NAMES[n][::-1]}\n{NAMES[n] * 2}",
            fails[n],
            0.1,
            READ if n % 2 else CHANGE,
        )
        for n in range(period)
    ]
    verdicts = [rank(guard.observe(StepSeen("", (call,)))) for _ in range(8) for call in calls]
    assert max(verdicts[: period * 2]) < 2 or period > 6
    assert 3 in verdicts[: max(8, 6 * period)]
    assert 1 in verdicts[: max(4, 3 * period + 1)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.01, 99, allow_nan=False), min_size=12, max_size=12), st.integers(1, 99999))
def test_times_and_ids_do_not_hide_a_repetition(took: list[float], process: int) -> None:
    """A result that differs only in durations and process ids is found out by the twelfth call."""
    guard = Guard()
    verdicts: list[int] = []
    for n, seconds in enumerate(took):
        text = f"inactive\n[exit 3, {seconds:.2f} ms, pid {process + n}]"
        call = CallSeen("shell", {"command": "service status"}, text, True, 0.1, CHANGE)
        verdicts.append(rank(guard.observe(StepSeen("", (call,)))))
    assert 1 in verdicts[:6]
    assert 3 in verdicts
