"""The bodies of requests and responses that were kept of a run, as text to read; keys were taken out before they were
written. It blocks."""

from __future__ import annotations

import base64
import json
from typing import Any

from runtime.journal.folder import RunFolder

FOLDER = "bodies"
"""In a run's folder: its exchanges with model servers, where a chat's /debug wants them kept."""
LONGEST = 100_000


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
    request = json.dumps(case["request"], indent=1, ensure_ascii=False)
    head = f"{files[-1].name}, {len(files)} kept in {folder.path / FOLDER}"
    return f"{head}\n\n--- request\n{_cut(request)}\n\n--- response {case['status']}\n{_cut(''.join(chunks))}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST} more characters"
