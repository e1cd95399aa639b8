"""The wait-for graph as a pure machine, beside the naive one: a bag of edges, searched anew each time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actors import WaitCycle
from actors._waits import Node

NAMES = "abcdef"
names = st.sampled_from(NAMES)


def reaches(edges: list[tuple[str, str]], start: str, goal: str) -> bool:
    """Whether goal can be reached from start, the slow way."""
    found = {start}
    for _ in NAMES:
        found |= {target for waiter, target in edges if waiter in found}
    return goal in found


class Waits(RuleBasedStateMachine):
    """Waits begin and end in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = {name: Node(name) for name in NAMES}
        self.edges: list[tuple[str, str]] = []

    @rule(waiter=names, goal=names)
    def wait(self, waiter: str, goal: str) -> None:
        """A wait is refused exactly if its goal already waits for the waiter, at some remove."""
        closes = reaches(self.edges, goal, waiter)
        if not closes:
            self.nodes[waiter].wait_for(self.nodes[goal])
            self.edges.append((waiter, goal))
            return
        with pytest.raises(WaitCycle) as refused:
            self.nodes[waiter].wait_for(self.nodes[goal])
        first, second, *rest = refused.value.cycle
        assert (first, second, (first, second, *rest)[-1]) == (waiter, goal, waiter)
        assert all(step in self.edges for step in zip((second, *rest), rest, strict=False))

    @precondition(lambda self: self.edges)
    @rule(data=st.data())
    def stop_waiting(self, data: st.DataObject) -> None:
        """A wait that ends takes exactly its own edge away."""
        waiter, target = data.draw(st.sampled_from(self.edges))
        self.edges.remove((waiter, target))
        self.nodes[waiter].release(self.nodes[target])

    @invariant()
    def everybody_knows_whom_he_waits_for(self) -> None:
        """Each node tells exactly the targets of its open waits."""
        for name, node in self.nodes.items():
            assert {target for waiter, target in self.edges if waiter == name} == set(node.waiting_for)


TestWaits = Waits.TestCase
TestWaits.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_waiting_for_oneself_is_the_shortest_cycle() -> None:
    """Waiting for oneself is the shortest cycle."""
    node = Node("a")
    with pytest.raises(WaitCycle) as refused:
        node.wait_for(node)
    assert refused.value.cycle == ("a", "a")


def test_the_message_of_a_refusal_names_the_circle() -> None:
    """The message of a refusal names everybody in the circle, in order."""
    a, b, c = Node("a"), Node("b"), Node("c")
    a.wait_for(b)
    b.wait_for(c)
    with pytest.raises(WaitCycle, match="c would wait for a, which waits for b, which waits for c"):
        c.wait_for(a)


@given(st.lists(names, min_size=1, max_size=6, unique=True))
def test_a_held_circle_does_not_trap_the_search(circle: list[str]) -> None:
    """A circle that supervisors made for a moment does not trap the search of others."""
    nodes = [Node(name) for name in circle]
    for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        node.hold(following)
    outsider = Node("outsider")
    outsider.wait_for(nodes[0])
    assert (circle[0],) == outsider.waiting_for
