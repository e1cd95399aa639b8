"""`elenco debug path`: what the workspace's confinement says to an operation on a path, by really doing it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from runtime.policy.paths import PathError, Workspace

MAX_RESULT_BYTES = 1_000_000


def path(lines: Iterable[str], out: TextIO) -> int:
    """Answer each case line with one line; 0, or 2 at the first line that is no case."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            answer = {"id": case["id"], **_decide(case["workspace"], case["op"], case["path"], case.get("content"))}
        except (ValueError, KeyError, TypeError) as error:
            print(f"error: line {number} is no path case: {type(error).__name__}: {error}", file=sys.stderr)
            return 2
        out.write(json.dumps(answer) + "\n")
        out.flush()
    return 0


def _decide(folder: str, op: str, name: str, content: str | None) -> dict[str, Any]:
    try:
        with Workspace(folder) as workspace:
            result = _done(workspace, op, name, content)
    except PathError as error:
        return {"verdict": "deny", "why": str(error)}
    return {"verdict": "allow", "result": result, "why": "inside the workspace"}


def _done(workspace: Workspace, op: str, name: str, content: str | None) -> str:
    match op:
        case "read":
            return workspace.read_bytes(name, MAX_RESULT_BYTES).decode(errors="replace")
        case "write":
            data = (content or "").encode(errors="surrogatepass")
            return f"wrote {len(data)} bytes to {workspace.write_bytes(name, data).path}"
        case "list":
            entries = workspace.listdir(name)
            return "".join(f"{entry.name}{'/' if entry.kind == 'folder' else ''}\n" for entry in entries)
        case "delete":
            return f"deleted {workspace.delete(name)}"
        case _:
            raise ValueError(f"unknown op {op!r}; there is: read, write, list, delete")
