"""Whether an actor may start a child: depth and width, whatever way the child would come about."""

from __future__ import annotations

from .accounts import passed
from .budget import Barred
from .limits import LimitName
from .scope import Scope


def barred(parent: Scope) -> Barred | None:
    """What forbids one more child of this parent; the message is for the parent's model."""
    depth = parent.depth + 1
    for each in parent.chain:
        most = each.limits.max_depth
        if most is not None and depth - each.depth > most:
            return _bar(each, "max_depth", most, f"{parent.path} is as deep in the tree as actors may be")
    most = parent.limits.max_children
    if most is not None and len(parent.children) >= most:
        return _bar(parent, "max_children", most, f"{parent.path} has {len(parent.children)} at work")
    for each in parent.chain:
        most = each.limits.max_total_children
        if most is not None and each.opened >= most:
            return _bar(each, "max_total_children", most, f"{each.opened} have been started")
    if (over := passed(parent)) is not None:
        return Barred(over.name, over.scope, f"no child can be started: the limit is passed, {over}")
    return None


def _bar(scope: Scope, limit: LimitName, most: int, because: str) -> Barred:
    source = f", {scope.limits.source(limit)}" if scope.limits.source(limit) else ""
    return Barred(limit, scope.path, f"no child can be started: {because} ({limit} {most} of {scope.path}{source})")
