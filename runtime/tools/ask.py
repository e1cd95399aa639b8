"""The tool ask_user: a question that only a human can answer."""

from __future__ import annotations

from collections.abc import Sequence

from ._tool import Tool, ToolContext, ToolError, tool

MAX_QUESTION_CHARS = 4000
MAX_OPTIONS = 12


@tool(effects="none", private=True, timeout=None)
async def ask_user(ctx: ToolContext, question: str, options: Sequence[str] = ()) -> str:
    """Ask the human who started this run, and wait for the answer. Ask only what you cannot find out yourself.

    Args:
        question: The question, with what the human must know to answer it.
        options: Answers to choose from, the one you would take first; another answer can always be given.
    """
    choices = [option.strip() for option in options if option.strip()]
    if not question.strip():
        raise ToolError("the question is empty")
    if len(question) > MAX_QUESTION_CHARS or sum(map(len, choices)) > MAX_QUESTION_CHARS or len(choices) > MAX_OPTIONS:
        raise ToolError(f"too long: at most {MAX_QUESTION_CHARS} characters and {MAX_OPTIONS} options")
    return await ctx.ask(question.strip(), tuple(dict.fromkeys(choices)))


ASK_TOOLS: tuple[Tool, ...] = (ask_user,)
