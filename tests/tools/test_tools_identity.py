"""What is worked out once for an object is remembered by which object it is, not by what it says."""

from __future__ import annotations

from runtime.identity import ByIdentity


def test_the_same_object_is_worked_out_once_and_an_equal_one_for_itself() -> None:
    made: list[dict[str, int]] = []

    def make(given: dict[str, int]) -> int:
        made.append(given)
        return len(made)

    numbers = ByIdentity(make)
    first, equal = {"a": 1}, {"a": 1}
    assert [numbers(first), numbers(first), numbers(equal), numbers(first)] == [1, 1, 2, 1]


def test_only_the_newest_are_known_and_no_object_is_taken_for_a_dead_one() -> None:
    made: list[int] = []

    def length(given: list[str]) -> int:
        made.append(len(given))
        return len(given)

    lengths = ByIdentity(length, most=2)
    # Each list dies with its turn of the loop unless it is kept: the next would then have its identity.
    assert [lengths(["x"] * count) for count in range(50)] == list(range(50))
    old, new = ["x"], ["x", "x"]
    for each in (old, new, new, ["x"] * 3, old):
        lengths(each)
    assert made[50:] == [1, 2, 3, 1]
