"""What a human is asked, on a few lines: who wants to do what, why it needs an answer, and the keys."""

from __future__ import annotations

import json
from typing import Any, cast

from runtime.events import ApprovalRequested, QuestionAsked
from runtime.messages import JsonObject

from .visible import one_line, visible

SHOWN_LINES = 12
WIDEST = 200
"""Characters of a line that are shown."""


def card(request: ApprovalRequested) -> str:
    """What is asked and how it is answered, as a person reads it; nothing in it is obeyed by a terminal."""
    return f"{asked(request, SHOWN_LINES)}\n{keys(request)}"


def asked(request: ApprovalRequested, most: int) -> str:
    """What is asked; of a long text or a preview `most` lines are shown."""
    who = request.actor.rpartition("/")[2]
    lines = [f"? {who} asks ({request.id})    {one_line(request.name, 70)}  {brief(request.arguments)}".rstrip()]
    if not request.preview:
        for name, value in request.arguments.items():
            if isinstance(value, str) and _is_long(value):
                lines += _block(f"{one_line(name, 40)}: ", value, most)
    lines.append(f"    {one_line(request.why, 100)}      the clock stands still")
    if request.preview:
        lines += _block("", request.preview, most)
    return "\n".join(lines)


def keys(request: ApprovalRequested) -> str:
    """The choices, each a letter alone on its line."""
    always = one_line(", ".join(request.always), 50)
    scopes = f"   r in this run   a always `{always}` here" if always else ""
    return f"  y once{scopes}   e edit   s stop run   or type why not"


def question_card(question: QuestionAsked) -> str:
    """A question of an agent, with its options numbered."""
    return f"{put(question)}\n{question_keys(question)}"


def put(question: QuestionAsked) -> str:
    """The question without how it is answered."""
    first, *more = visible(question.text).strip().split("\n")
    lines = [
        f"? {question.actor.rpartition('/')[2]} asks you ({question.id})    {first}",
        *(f"    {line}" for line in more),
    ]
    lines += [f"    {number}  {one_line(option, 150)}" for number, option in enumerate(question.options, 1)]
    return "\n".join(lines)


def question_keys(question: QuestionAsked) -> str:
    how = "type the number of an option or your own answer" if question.options else "type your answer"
    return f"  {how}      the clock stands still"


def editable(arguments: JsonObject) -> str:
    """The arguments as a line that can be typed again."""
    if len(arguments) == 1 and isinstance(value := next(iter(arguments.values())), str) and not _is_long(value):
        return visible(value)
    return json.dumps(arguments, ensure_ascii=True)


def edited(arguments: JsonObject, line: str) -> JsonObject:
    """The arguments a human typed in their place. Raises ValueError for what stands for none."""
    if len(arguments) == 1 and isinstance(next(iter(arguments.values())), str) and not line.startswith("{"):
        return {next(iter(arguments)): line}
    found: Any = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", found)


def brief(arguments: JsonObject) -> str:
    """The arguments on one line, without those that are long."""
    short = {name: value for name, value in arguments.items() if not (isinstance(value, str) and _is_long(value))}
    if len(arguments) == 1 and len(short) == 1:
        value = next(iter(short.values()))
        return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 300)
    return one_line(" ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in short.items()), 300)


def _is_long(value: str) -> bool:
    return "\n" in value.rstrip("\n") or len(value) > 200


def _block(head: str, value: str, most: int) -> list[str]:
    lines = visible(value).strip("\n").split("\n")
    shown = [f"      | {line if len(line) <= WIDEST else f'{line[:WIDEST]}…'}" for line in lines[:most]]
    more = [f"      | … {len(lines) - most} more lines"] if len(lines) > most else []
    title = [f"    {head}{len(lines)} lines, {len(value)} characters"] if head else []
    return [*title, *shown, *more]
