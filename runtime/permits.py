"""What one actor may do: its own rules under the ceiling handed down to it, asked before every call."""

from __future__ import annotations

import attrs
import trio

from .messages import JsonObject
from .policy.decision import Ceiling, Decision, decide, readable
from .policy.paths import Workspace
from .policy.rules import Permissions
from .tools import Tool
from .tools.subjects import subject_of


@attrs.frozen
class Permits:
    """An actor's own rules, the ceiling, and whether an ask is answered with yes beforehand."""

    own: Permissions
    ceiling: Ceiling
    yes: bool = False

    async def decide(self, tool: Tool, arguments: JsonObject, workspace: Workspace) -> Decision:
        """The decision on one call, by the real paths it names. A cancelled call leaves nothing behind."""
        if tool.paths:
            subject = await trio.to_thread.run_sync(subject_of, tool, arguments, workspace)
        else:
            subject = subject_of(tool, arguments, workspace)
        return decide(subject, self.own, self.ceiling, yes=self.yes)

    def handed_down(self) -> Ceiling:
        """The ceiling of this actor's children."""
        return self.ceiling.narrowed(self.own)

    def readable(self, path: str) -> bool:
        """Whether a tool that looks at many files may look at this one."""
        return readable(path, self.own, self.ceiling)
