"""Which calls run together: examples, and a naive twin."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from runtime.messages import ToolCall
from runtime.tools._tool import Effects
from runtime.tools.schedule import Kind, rounds

KINDS: list[Kind] = [*get_args(Effects), "delegation"]


def split(*kinds: Kind) -> list[list[Kind]]:
    calls = [ToolCall(str(index), kind, {}) for index, kind in enumerate(kinds)]
    found = rounds(calls, lambda call: kinds[int(call.id)])
    assert [call for each in found for call in each] == calls
    return [[kinds[int(call.id)] for call in each] for each in found]


def test_readers_and_delegations_share_a_round_and_writers_are_alone() -> None:
    """Neighbouring calls without effects run together; any other waits for all before it and holds up all after it."""
    assert split() == []
    assert split("none", "delegation", "none") == [["none", "delegation", "none"]]
    assert split("none", "once", "none", "none") == [["none"], ["once"], ["none", "none"]]
    assert split("idempotent", "idempotent") == [["idempotent"], ["idempotent"]]


@given(st.lists(st.sampled_from(KINDS), max_size=8))
def test_two_calls_share_a_round_only_if_nothing_stands_between(kinds: list[Kind]) -> None:
    """Calls i and j are together exactly when all from i to j have no effects of their own."""
    free = [kind in ("none", "delegation") for kind in kinds]
    place = [number for number, each in enumerate(split(*kinds)) for _ in each]
    for i in range(len(kinds)):
        for j in range(i + 1, len(kinds)):
            assert (place[i] == place[j]) == all(free[i : j + 1])
