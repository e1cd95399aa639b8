"""A command line that asks: the human sees each command with its verdict, and a yes holds for that very line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.definitions import Permissions
from runtime.events import ApprovalRequested, PermissionDecided
from runtime.policy.subjects import ShellSubject, Subject

if TYPE_CHECKING:
    from runtime.messages import JsonObject
    from runtime.tools import ToolContext
    from tests.agent.conftest import Stage


def about(arguments: JsonObject) -> Subject:
    return ShellSubject(str(arguments["command"]))


def shown(ctx: ToolContext, arguments: JsonObject) -> str:
    del ctx
    return f"$ {arguments['command']}"


async def test_a_question_about_a_line_says_what_each_command_in_it_means(stage: Stage) -> None:
    """The question names the rule and shows every command of the line with its own verdict."""
    ran: list[str] = []

    @stage.tool(subject=about, preview=shown)
    async def run_line(command: str) -> str:
        """Run it."""
        ran.append(command)
        return "ran"

    line = "ls -la && touch a; git push"
    stage.agent(
        "lead", tools=["run_line"], permissions=Permissions(("shell(ls *)",), ("shell(git push *)",), ("shell(rm *)",))
    )
    stage.script(f"""
        lead:
          - calls: [{{name: run_line, arguments: {{command: "{line}"}}}}]
          - calls: [{{name: run_line, arguments: {{command: "{line}"}}}}]
          - calls: [{{name: run_line, arguments: {{command: "ls -la; rm x"}}}}]
          - calls: [{{name: run_line, arguments: {{command: "ls -la"}}}}]
          - text: done
    """)
    async with stage.opened() as live:
        async with live.stream.subscribe() as reader:
            async for record in reader:
                if isinstance(record.event, ApprovalRequested):
                    await live.approvals.decide(record.event.id, "allow", "ada", scope="run")
        await live.report()
    [asked] = stage.of(ApprovalRequested)
    assert "ask: shell(git push *) (own: agents/lead.md)" == asked.why
    assert [
        f"$ {line}",
        "ls -la   allowed: shell(ls *)",
        "touch a   asks: no rule allows it",
        "git push   asks: shell(git push *)",
    ] == asked.preview.split("\n")
    decided = [(event.verdict, event.by) for event in stage.of(PermissionDecided)]
    own = "own: agents/lead.md"
    assert [("ask", own), ("allow", "you"), ("deny", own), ("allow", own)] == decided
    assert [line, line, "ls -la"] == ran
