"""What goes to and comes from an editor, as the protocol writes it. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from runtime.errors import UsageError
from runtime.events import ApprovalRequested
from runtime.messages import JsonObject
from runtime.report import Report

VERSION = 1
"""The protocol's."""
MOST_SHOWN = 20_000
"""Characters of one result that are shown."""

MODES: tuple[tuple[str, str, str], ...] = (
    ("default", "Default", "Asks before anything is changed."),
    ("accept-edits", "Accept edits", "Edits files of the workspace without asking; other changes ask."),
    ("plan", "Plan", "Reads and plans; changes nothing."),
)
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("read_file", "read_result", "file_outline", "diff", "todo_read", "use_skill"), "read"),
    **dict.fromkeys(("list_files", "find_files", "search_text", "search_passages"), "search"),
    **dict.fromkeys(("write_file", "edit_file", "insert_lines", "replace_lines", "delete_lines"), "edit"),
    **dict.fromkeys(("apply_patch", "make_folder"), "edit"),
    "delete_file": "delete",
    "move_file": "move",
    "shell": "execute",
    "todo_write": "think",
    **dict.fromkeys(("fetch_url", "search_web"), "fetch"),
}
_LIMITS = frozenset({"max_steps", "total_steps", "max_tool_calls", "deadline", "loop"})
_NOTES = {"open": "pending", "doing": "in_progress", "done": "completed"}


def modes(current: str) -> JsonObject:
    available = [{"id": id, "name": name, "description": about} for id, name, about in MODES]
    return {"currentModeId": current, "availableModes": available}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def chunk(kind: str, words: str, message: str = "") -> JsonObject:
    """A piece of what is said: `kind` is agent_message, agent_thought or user_message."""
    found: dict[str, Any] = {"sessionUpdate": f"{kind}_chunk", "content": text(words)}
    return {**found, "messageId": message} if message else found


def task_of(blocks: object) -> str:
    """What a prompt's blocks say, as text. Raises UsageError for a kind that was not offered, and for nothing."""
    if not isinstance(blocks, list):
        raise UsageError("a prompt is a list of content blocks")
    parts = [_block(block) for block in cast("list[object]", blocks)]
    task = "\n\n".join(part for part in parts if part.strip())
    if not task:
        raise UsageError("the prompt is empty")
    return task


def _block(block: object) -> str:
    if not isinstance(block, dict):
        raise UsageError("a content block is an object")
    found = cast("dict[str, Any]", block)
    match found.get("type"):
        case "text":
            return str(found.get("text") or "")
        case "resource_link":
            return f"(attached: {place(str(found.get('uri') or ''))})"
        case "resource" if isinstance(found.get("resource"), dict) and "text" in found["resource"]:
            inside = found["resource"]
            return f"(attached: {place(str(inside.get('uri') or ''))})\n{inside['text']}\n(end of attachment)"
        case kind:
            raise UsageError(f"content of type {kind!r} cannot be taken: send text, or a link to a file")


def place(uri: str) -> str:
    """A path where a URI names a file, else the URI."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def title(name: str, arguments: JsonObject | None, who: str = "") -> str:
    """A call in one line."""
    shown = name.replace("delegate_to_", "→ ", 1)
    first = next((str(value) for value in (arguments or {}).values() if isinstance(value, str)), "")
    words = " ".join(f"{shown} {first}".split())
    line = words if len(words) <= 100 else f"{words[:99]}…"
    return f"{who}: {line}" if who else line


def locations(root: str, arguments: JsonObject | None) -> list[JsonObject]:
    """The file a call names, with its absolute path."""
    path = (arguments or {}).get("path")
    return [{"path": posixpath.normpath(posixpath.join(root, path))}] if isinstance(path, str) and path else []


def call(id: str, name: str, arguments: JsonObject | None, root: str, who: str = "") -> JsonObject:
    """A call as it begins."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": title(name, arguments, who),
        "kind": KINDS.get(name, "other"),
        "status": "pending",
        "rawInput": dict(arguments or {}),
        "locations": locations(root, arguments),
    }


def progress(id: str, status: str, content: Iterable[JsonObject] = (), **more: Any) -> JsonObject:
    found: dict[str, Any] = {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, **more}
    contents = list(content)
    return {**found, "content": contents} if contents else found


def shown(words: str) -> JsonObject:
    """A result as content of a call."""
    cut = words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}\n[{len(words) - MOST_SHOWN} characters more]"
    return {"type": "content", "content": text(cut)}


def diff(path: str, before: str | None, after: str) -> JsonObject:
    return {"type": "diff", "path": path, "oldText": before, "newText": after}


def plan(notes: Iterable[JsonObject]) -> JsonObject:
    """An agent's list of what is to be done."""
    entries = [
        {"content": str(note.get("text", "")), "priority": "medium", "status": _NOTES[note["status"]]}
        for note in notes
        if note.get("status") in _NOTES
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def usage(used: int, window: int, cost: float | None) -> JsonObject:
    found: dict[str, Any] = {"sessionUpdate": "usage_update", "used": used, "size": window}
    return found if cost is None else {**found, "cost": {"amount": cost, "currency": "USD"}}


def permission(
    request: ApprovalRequested, id: str, root: str, who: str = ""
) -> tuple[JsonObject, Sequence[JsonObject]]:
    """The call a human is asked about, and what they may choose."""
    asked = dict(call(id, request.name, request.arguments, root, who))
    del asked["sessionUpdate"]
    about = "\n".join(part for part in (f"It asks because of: {request.why}", request.preview) if part)
    asked["content"] = [shown(about)]
    options = [{"optionId": "once", "name": "Allow once", "kind": "allow_once"}]
    if request.always:
        always = f"Always allow {', '.join(request.always)} here"
        options.append({"optionId": "always", "name": always, "kind": "allow_always"})
    options.append({"optionId": "no", "name": "Refuse", "kind": "reject_once"})
    return asked, options


def stop_reason(report: Report) -> str:
    """Why a turn ended, in the protocol's words; a failed one is an error and has none."""
    match report.status:
        case "cancelled":
            return "cancelled"
        case "stopped" if report.reason in _LIMITS:
            return "max_turn_requests"
        case "stopped" if report.reason in ("refusal", "content_filter"):
            return "refusal"
        case "stopped":
            return "max_tokens"
        case _:
            return "end_turn"


def used_by(report: Report) -> JsonObject:
    """What a turn has used."""
    tokens = report.usage
    return {
        "totalTokens": tokens.total,
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "thoughtTokens": tokens.reasoning,
        "cachedReadTokens": tokens.cached_input,
        "cachedWriteTokens": tokens.cache_write,
    }
