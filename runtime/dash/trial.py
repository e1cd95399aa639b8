"""A run of the playground: a process of its own that gets an order on standard input and tells the run's id on output.

It is an ordinary run: the same settings, rules, limits and record, steered through its socket. Its agent's file is a
draft, its own tools run in walls alone. It ends with its owner: the end of its standard input cancels it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from runtime.app import RunOptions, plan
from runtime.cli.detached import began
from runtime.cli.live import Shown, start
from runtime.errors import DefinitionError, ElencoError
from runtime.known import TOOL_NAMES, ModelFlags
from runtime.messages import JsonObject
from runtime.outline import outline, settings_of
from runtime.plugins import plugins
from runtime.reaper import open_reaper
from runtime.sandbox.box import Sandbox, SandboxError
from runtime.sandbox.places import own_folders
from runtime.sandbox.walls import Walls, composed
from runtime.tools import Tool

from .draft import AGENT_FILE, CODE_FILE, EXCHANGES, definition_of, faults_to_json, taking_part
from .own_tools import Described, describe


def main() -> int:
    """Carry out one order; what keeps it from being done is told as JSON on standard output."""
    order: dict[str, Any] = json.loads(_line())
    try:
        if order["do"] == "describe":
            found = _described(order["code"], Path(order["workspace"]), order["state"])
            print(json.dumps({"tools": [_shown(each) for each in found.tools], "faults": faults_to_json(found.faults)}))
            return 0
        return _run(order)
    except DefinitionError as error:
        return _refused(error, faults=faults_to_json(error.faults))
    except ElencoError as error:
        return _refused(error, walls=isinstance(error, SandboxError))


def _line() -> bytes:
    """The order's line; what follows it is not taken in."""
    found = b""
    while not found.endswith(b"\n") and (piece := os.read(0, 65_536)):
        found += piece
    return found


def _refused(error: ElencoError, **more: object) -> int:
    print(json.dumps({"error": str(error), **more}), flush=True)
    return error.exit_code


def _run(order: JsonObject) -> int:
    threading.Thread(target=_end_with_the_owner, daemon=True).start()
    place = Path(order["place"])
    definition = definition_of((place / AGENT_FILE).read_text(encoding="utf-8"), AGENT_FILE)
    options = RunOptions(
        agent=definition.name,
        task=order["task"],
        model=ModelFlags(definition.model or order["model"], order["base_url"], order["wire"], place / EXCHANGES),
        workspace=Path(order["workspace"]),
    )
    code = (place / CODE_FILE).read_text(encoding="utf-8")
    own = _described(code, options.workspace, order["state"]) if code.strip() else Described()
    if wrong := [fault for fault in own.faults if not fault.warning]:
        raise DefinitionError(wrong)
    names = (*TOOL_NAMES, *(tool.name for tool in own.tools))
    drafted = taking_part(definition, place / AGENT_FILE)
    ready = plan(options, own.tools, seen=outline(options, plugins().providers, names, drafted))
    writing = os.dup(1)
    shown = Shown(quiet=True, asks=False, began=lambda folder: began(folder, writing))
    return start(ready, order["state"], shown)


def _end_with_the_owner() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _described(code: str, workspace: Path, state: str) -> Described:
    """The tools of a text. Raises SandboxError where there are no walls, DefinitionError for faulty settings."""
    here, user = settings_of(workspace)
    walls = composed(here.sandbox, user.sandbox)
    taken = (*TOOL_NAMES, *(tool.name for tool in plugins().tools))
    return trio.run(_ask, code, workspace, walls, Path(state), taken)


async def _ask(code: str, workspace: Path, walls: Walls, state: Path, taken: Sequence[str]) -> Described:
    async with open_reaper() as reaper:
        root = str(await trio.Path(workspace).resolve())
        boxes = Sandbox(reaper, root, walls, own_folders(state), state / f"tmp-{os.getpid()}")
        try:
            return await describe(code, boxes, taken)
        finally:
            await boxes.aclose()


def _shown(tool: Tool) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "effects": tool.effects,
    }


if __name__ == "__main__":
    sys.exit(main())
