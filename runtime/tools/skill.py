"""The tool that loads a skill: its text, the files it brings, and what was learned by using it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from runtime.skills.active import NoSkill
from runtime.skills.hired import approve

from ._tool import Output, Tool, ToolContext, ToolError, tool

if TYPE_CHECKING:
    from runtime.agent import Agent

USE_SKILL = "use_skill"


def skill_tool(agent: Agent) -> Tool:
    """The tool `use_skill` of this very actor."""
    skills = agent.skills

    @tool(effects="none", private=True, max_result_chars=60_000)
    async def use_skill(ctx: ToolContext, name: str) -> Output:
        """Load a skill: how a kind of work is done well, step by step, with the files that belong to it.

        Load the one that fits the task before you begin, then follow what it says.

        Args:
            name: The skill's name, as your instructions list it.
        """
        try:
            loaded = await trio.to_thread.run_sync(lambda: skills.read(skills.find(name)))
        except NoSkill as error:
            raise ToolError(str(error)) from error
        ctx.report(loaded.event())
        approve(agent, skills.take(loaded))
        agent.user_hooks.add(loaded.hooks)
        return Output(loaded.text, data={"skill": loaded.name, "digest": loaded.digest})

    return use_skill
