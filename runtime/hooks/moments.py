"""The moments at which hooks run, and what a hook may say at each. Pure: a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

Decision: TypeAlias = Literal["", "allow", "ask", "deny"]
Subject: TypeAlias = Literal["tool", "agent"]


@attrs.frozen
class Moment:
    """`subject` is what a matcher looks at; `decisions`, `arguments`, `result` and `context` what an answer may hold.

    `plain` takes text that is no JSON as context. `fails` is what a hook that fails stands for where its settings say
    nothing else. `once`: such a hook acts, and is not run a second time when nobody knows how far it came; others are
    asked again, because what they say decides.
    """

    name: str
    subject: Subject
    decisions: tuple[Decision, ...] = ()
    arguments: bool = False
    result: bool = False
    context: bool = False
    plain: bool = False
    fails: Literal["allow", "deny"] = "allow"
    once: bool = False

    @property
    def denies(self) -> bool:
        return "deny" in self.decisions


MOMENTS: Mapping[str, Moment] = {
    each.name: each
    for each in (
        Moment("run_start", "agent", ("deny",), context=True, plain=True, once=True),
        Moment("actor_start", "agent", ("deny",), context=True, plain=True, once=True),
        Moment("before_model", "agent", ("deny",), context=True),
        Moment("after_model", "agent"),
        Moment("before_tool", "tool", ("allow", "ask", "deny"), arguments=True, context=True, fails="deny"),
        Moment("approval", "tool", ("allow", "deny")),
        Moment("after_tool", "tool", ("deny",), result=True, context=True),
        Moment("compaction", "agent", once=True),
        Moment("actor_finish", "agent", ("deny",)),
        Moment("run_finish", "agent", once=True),
    )
}

ALIASES: Mapping[str, str] = {
    "SessionStart": "run_start",
    "SubagentStart": "actor_start",
    "PreToolUse": "before_tool",
    "PermissionRequest": "approval",
    "PostToolUse": "after_tool",
    "PreCompact": "compaction",
    "Stop": "actor_finish",
    "SubagentStop": "actor_finish",
    "SessionEnd": "run_finish",
}
"""The names by which Claude Code's settings know these moments."""

ELSEWHERE = frozenset(
    {
        *("UserPromptSubmit", "Notification", "PostToolUseFailure", "PostCompact", "Setup", "TeammateIdle"),
        *("TaskCompleted", "ConfigChange", "InstructionsLoaded", "WorktreeCreate", "WorktreeRemove"),
    }
)
"""Events of Claude Code that have no like here: in a file of its own they are told and passed over."""
