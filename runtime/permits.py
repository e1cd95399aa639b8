"""What one actor may do: its own rules under the ceiling handed down to it, asked before every call."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import trio

from .grants import Grants
from .messages import JsonObject
from .policy.decision import Ceiling, Decision, ShellVerdict, decide, readable
from .policy.paths import Workspace
from .policy.rules import Permissions, Words, names_host, speaks_of_commands
from .policy.subjects import HostSubject, ShellSubject, Subject
from .sandbox.box import Confined, Sandbox
from .tools import Tool
from .tools.subjects import subject_of


def judge_shell(command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> ShellVerdict:
    """The judge of command lines, loaded with the first of them."""
    from .policy.shell import judge

    return judge(command, allow=allow, ask=ask, deny=deny)


@attrs.frozen
class Permits:
    """An actor's own rules, the ceiling, and what is answered with yes beforehand: every ask, or what was granted."""

    own: Permissions
    ceiling: Ceiling
    yes: bool = False
    grants: Grants = attrs.field(factory=Grants)

    async def decide(self, tool: Tool, arguments: JsonObject, workspace: Workspace) -> Decision:
        """The decision on one call, by the real paths it names. A cancelled call leaves nothing behind."""
        return self.judge(await self.subject(tool, arguments, workspace))

    async def subject(self, tool: Tool, arguments: JsonObject, workspace: Workspace) -> Subject:
        """What a call is about, by the real paths it names. A cancelled call leaves nothing behind."""
        if tool.paths:
            return await trio.to_thread.run_sync(subject_of, tool, arguments, workspace)
        return subject_of(tool, arguments, workspace)

    def judge(self, subject: Subject) -> Decision:
        """The decision on what a call is about; what was granted needs no question, files that govern agents do."""
        decision = decide(subject, self.own, self.ceiling, yes=self.yes, shell=judge_shell)
        if decision.verdict == "ask" and decision.by != "protected" and self.grants.covers(subject):
            return Decision("allow", f"granted: {decision.rule}", "you")
        return decision

    def explained(self, subject: Subject) -> str:
        """What the rules say to each command of a line, one a line, for a human who is asked; "" for other calls."""
        if not isinstance(subject, ShellSubject):
            return ""
        from .policy.shell import each_of

        allow, ask, deny = (
            tuple(rule.words for rule in rules if speaks_of_commands(rule, subject.tool))
            for rules in (self.own.allow, self.own.ask + self.ceiling.ask, self.own.deny + self.ceiling.deny)
        )
        words = {"allow": "allowed", "ask": "asks", "deny": "is denied"}
        return "\n".join(
            f"{each.command}   {words[each.verdict]}: {each.why}" if each.command else f"asks: {each.why}"
            for each in each_of(subject.command, allow=allow, ask=ask, deny=deny)
        )

    def handed_down(self) -> Ceiling:
        """The ceiling of this actor's children."""
        return self.ceiling.narrowed(self.own)

    def boxes(self, sandbox: Sandbox) -> Confined:
        """Where this actor's commands run: in plan mode nothing is written, whatever else is allowed."""
        level = "read-only" if self.ceiling.mode == "plan" else self.ceiling.sandbox
        return sandbox.under(level, self.ceiling.network)

    def readable(self, path: str) -> bool:
        """Whether a tool that looks at many files may look at this one."""
        return readable(path, self.own, self.ceiling)

    def may_fetch(self, host: str) -> bool:
        """Whether a host may be asked without a question."""
        return self.judge(HostSubject(host)).verdict == "allow"

    def may_fetch_private(self, host: str) -> bool:
        """Whether a rule names this very host, so that it may be one of a private network."""
        return any(names_host(rule, host) for rule in self.own.allow)
