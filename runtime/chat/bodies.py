"""The bodies of requests and responses that were kept of a run, as text to read. It blocks.

Keys that this machine knows were taken out before they were written, what has the shape of one is before it is read.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from runtime.errors import UsageError
from runtime.journal.folder import RunFolder, State

from .discreet import shown

FOLDER = "bodies"
"""In a run's folder: its exchanges with model servers, where a chat's /debug wants them kept."""
LONGEST = 100_000


KEPT = "the bodies of requests and responses are kept with each run from the next turn on, keys taken out"
NOT_KEPT = "no more bodies are kept from the next turn on"


def newest_of(state: State, turns: Sequence[str], *, on: bool) -> str:
    """The last exchange of a conversation. Raises UsageError where none is kept; `on`: they are from now on."""
    found = next((text for run in reversed(turns) if (text := newest(state.run(run)))), None)
    if found is None:
        how = "they are from the next turn on" if on else "/debug on keeps them from the next turn on"
        raise UsageError(f"no bodies are on record: {how}")
    return found


def newest(folder: RunFolder) -> str:
    """The last exchange, nothing where none is kept."""
    try:
        files = sorted(path for path in (folder.path / FOLDER).iterdir() if path.suffix == ".json")
        case: Any = json.loads(files[-1].read_text(encoding="utf-8", errors="replace")) if files else None
    except (OSError, ValueError):
        return ""
    if case is None:
        return ""
    chunks: list[str] = case["chunks"]
    if case["encoding"] == "base64":
        chunks = [base64.b64decode(chunk).decode(errors="replace") for chunk in chunks]
    request = shown(json.dumps(case["request"], indent=1, ensure_ascii=False))
    response = shown("".join(chunks))
    head = f"{files[-1].name}, {len(files)} kept in {folder.path / FOLDER}"
    return f"{head}\n\n--- request\n{_cut(request)}\n\n--- response {case['status']}\n{_cut(response)}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST} more characters"
