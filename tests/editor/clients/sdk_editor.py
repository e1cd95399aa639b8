"""An editor on the protocol's own Python SDK: drives the agent it is given through prompt, permission and cancel.

Run as a program: FOLDER PICK COMMAND…; prints what it was told as one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp import schema


class Editor:
    """Notes what it is told; answers permission requests with the option of one kind."""

    def __init__(self, pick: str) -> None:
        self.pick = pick
        self.updates: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.on_ask = asyncio.Event()

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
        self.asked.append(tool_call.title)
        self.on_ask.set()
        if self.pick == "never":
            await asyncio.sleep(1000)
        option = next(each for each in options if each.kind == self.pick)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        )

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))


async def main() -> None:
    folder, pick, *command = sys.argv[1:]
    editor: Any = Editor(pick)
    async with acp.spawn_agent_process(editor, *command, env=dict(os.environ)) as (agent, process):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        prompt = asyncio.ensure_future(
            agent.prompt(session_id=session.session_id, prompt=[schema.TextContentBlock(type="text", text="write")])
        )
        if pick == "never":
            await editor.on_ask.wait()
            await agent.cancel(session_id=session.session_id)
        done = await asyncio.wait_for(prompt, 40)
    said = {
        "version": hello.protocol_version,
        "modes": session.modes.current_mode_id if session.modes else None,
        "stop": done.stop_reason,
        "asked": editor.asked,
        "updates": editor.updates,
        "exit": process.returncode,
    }
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main())
