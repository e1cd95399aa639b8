"""The wait-for graph: who waits for whom, and whether one more wait would close a circle.

Each party keeps its own outgoing edges and nothing else holds the graph, so that whoever has ended is
forgotten with its last reference. The graph has no circle as long as all waits come by `wait_for`.
"""

from ._errors import WaitCycle


class Node:
    """One party that can wait and be waited for; `path` is its name in messages."""

    __slots__ = ("__weakref__", "path", "waits")

    def __init__(self, path: str) -> None:
        self.path = path
        self.waits: dict[Node, int] | None = None

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The names of those this party waits for now."""
        return tuple(node.path for node in self.waits or ())

    def wait_for(self, target: "Node") -> None:
        """Add an edge, or refuse it. Costs O(1) while the target itself waits for nobody.

        Raises WaitCycle.
        """
        if target is self or target.waits:
            chain = _chain(target, self)
            if chain is not None:
                names = [self.path]
                names += (node.path for node in chain if node.path != names[-1])
                raise WaitCycle(names if len(names) > 1 else [self.path, self.path])
        self.hold(target)

    def hold(self, target: "Node") -> None:
        """Add an edge unasked: for a supervisor's waits, which end by cancelling whoever is waited for."""
        if self.waits is None:
            self.waits = {target: 1}
        else:
            self.waits[target] = self.waits.get(target, 0) + 1

    def release(self, target: "Node") -> None:
        """Take one edge away again; each `wait_for` and `hold` has exactly one."""
        waits = self.waits
        assert waits is not None
        if waits[target] == 1:
            del waits[target]
        else:
            waits[target] -= 1


def _chain(start: Node, goal: Node) -> list[Node] | None:
    """The shortest way along the edges from start to goal, both included."""
    came_from: dict[Node, Node | None] = {start: None}
    frontier = [start]
    for node in frontier:  # grows while we walk: breadth first
        if node is goal:
            chain = [node]
            while (before := came_from[chain[-1]]) is not None:
                chain.append(before)
            return chain[::-1]
        for onward in node.waits or ():
            if onward not in came_from:
                came_from[onward] = node
                frontier.append(onward)
    return None
