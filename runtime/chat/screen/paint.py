"""Entries of a chat as coloured text. Nothing in them is markup, and no terminal obeys anything in them."""

from __future__ import annotations

from textual.content import Content

from runtime.chat.view import Called, Entry, Said, Spoke, Thought, Told
from runtime.cli.advice import span
from runtime.cli.card import brief
from runtime.cli.tree import call_text
from runtime.cli.visible import one_line, visible

FOLDED = 3
"""Lines of a tool's output that are shown until a key asks for all."""
UNFOLDED = 400
SAID_LINES = 20
SAID_WIDEST = 2000
"""Characters of what a human said that are shown until a key asks for more."""
DIFF_LINES = 16
_MARKS = {
    "waiting": ("○", "$foreground 60%"),
    "running": ("●", "$accent"),
    "ok": ("✓", "$success"),
    "error": ("✗", "$error"),
    "refused": ("✗", "$warning"),
    "interrupted": ("■", "$warning"),
    "forked": ("■", "$warning"),
    "unknown": ("?", "$warning"),
}
_ALARMS = {"?": "$warning", "!": "$warning", "■": "$warning", "✗": "$error", "✓": "$success", ">": "$accent"}


def painted(entry: Entry, *, full: bool) -> Content:
    """An entry as a block of lines; `full`: nothing is folded."""
    match entry:
        case Said(text=text):
            return Content.assemble(("> ", "$accent bold"), *_said(visible(text), full=full))
        case Thought(text=text):
            return _folded("thought", visible(text).strip(), full=full, style="$foreground 60% italic")
        case Spoke(text=text):
            return Content(visible(text))
        case Called():
            return _call(entry, full=full)
        case Told(text=text, kind="end"):
            return Content.styled(visible(text), "$foreground 60%")
        case Told(text=text):
            return Content.styled(visible(text), _ALARMS.get(text[:1], "$foreground 60%"))


def _said(text: str, *, full: bool) -> list[tuple[str, str]]:
    """A human's words; of many there is the beginning."""
    most, longest = (UNFOLDED, 40 * SAID_WIDEST) if full else (SAID_LINES, SAID_WIDEST)
    shown = "\n".join(text[:longest].split("\n", most)[:most])
    if len(shown) == len(text):
        return [(text, "bold")]
    rest, how = text[len(shown) :].strip("\n"), "elenco show has all" if full else "Ctrl-O"
    more = f"{len(rest)} characters" if "\n" not in rest else _count(rest.count("\n") + 1)
    return [(shown, "bold"), (f"\n… {more} more ({how})", "$foreground 60%")]


def _call(call: Called, *, full: bool) -> Content:
    mark, style = _MARKS.get(call.kind, ("✗", "$error"))
    seconds = f"   {span(call.seconds)}" if call.seconds >= 0.1 else ""
    what = f"   {call.kind}" if call.kind not in ("ok", "waiting", "running") else ""
    parts: list[Content] = [Content.assemble((f"{mark} ", style), _what(call), (seconds + what, "$foreground 60%"))]
    for diff in call.diffs:
        parts.append(coloured_diff(diff, UNFOLDED if full else DIFF_LINES))
    text = visible(call.result or call.output).strip("\n")
    if text and not call.diffs:
        parts.append(_lines(text, full=full, tail=not call.result))
    return Content("\n").join(parts)


def _what(call: Called) -> str:
    """The call on one line; what it writes stands below it as a diff."""
    arguments = call.arguments or {}
    name = one_line(call.name, 70).replace("delegate_to_", "→ ", 1)
    return f"{name}  {one_line(brief(arguments), 160)}".rstrip() if call.diffs else call_text(call.name, arguments, 160)


def _folded(head: str, text: str, *, full: bool, style: str) -> Content:
    lines = text.split("\n")
    if full:
        return Content.styled(f"· {head}\n{text}", style)
    more = f"   ({_count(len(lines))}, Ctrl-O)" if len(lines) > 1 or len(text) > 100 else ""
    return Content.styled(f"· {head}: {one_line(text, 100)}{more}", style)


def _lines(text: str, *, full: bool, tail: bool) -> Content:
    lines = text.split("\n")
    most = UNFOLDED if full else FOLDED
    shown = lines[-most:] if tail else lines[:most]
    rest = len(lines) - len(shown)
    body = [f"  │ {line[:400]}" for line in shown]
    if rest:
        how = "elenco show has all" if full else "Ctrl-O"
        note = f"  │ … {_count(rest)} {'above' if tail else 'more'} ({how})"
        body = [note, *body] if tail else [*body, note]
    return Content.styled("\n".join(body), "$foreground 60%")


def coloured_diff(diff: str, most: int) -> Content:
    """A unified diff, what is added green and what is gone red."""
    lines = visible(diff).strip("\n").split("\n")
    parts = [Content.styled(f"  {line[:400]}", _diff_style(line)) for line in lines[:most]]
    if len(lines) > most:
        parts.append(Content.styled(f"  … {_count(len(lines) - most)} more (Ctrl-O)", "$foreground 60%"))
    return Content("\n").join(parts)


def coloured_card(text: str) -> Content:
    """A question as `card` writes it; in its preview what is added is green and what is gone red."""
    parts: list[Content] = []
    for number, line in enumerate(text.split("\n")):
        inside = line.removeprefix("      | ")
        if inside != line:
            parts.append(Content.assemble(("  │ ", "$foreground 60%"), (inside, _diff_style(inside))))
        else:
            parts.append(Content.styled(line, "$warning bold" if number == 0 else ""))
    return Content("\n").join(parts)


def _diff_style(line: str) -> str:
    match line[:1]:
        case "+":
            return "$success"
        case "-":
            return "$error"
        case "@":
            return "$accent"
        case _:
            return "$foreground 60%"


def _count(number: int) -> str:
    return f"{number} line{'' if number == 1 else 's'}"
