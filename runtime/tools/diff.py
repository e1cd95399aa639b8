"""What changed in a file, as a unified diff that never takes long to make."""

from __future__ import annotations

import difflib
from itertools import takewhile

from ._text import decode

MAX_DIFF_CHARS = 100_000
_MAX_WORK = 1_000_000
_CONTEXT = 3


def unified(path: str, before: bytes | None, after: bytes | None) -> str:
    """The change as unified text; a file that was not there, or is gone, shows as /dev/null.

    Texts that differ in too much to compare line by line show as one block replaced, binary files as one sentence.
    """
    old, new = decode(before or b""), decode(after or b"")
    if old is None or new is None:
        return f"Binary file {path} changed\n"
    names = ("/dev/null" if before is None else f"a/{path}", "/dev/null" if after is None else f"b/{path}")
    text = "".join(_diff(_lines(old.text), _lines(new.text), names))
    if len(text) > MAX_DIFF_CHARS:
        return f"{text[:MAX_DIFF_CHARS]}\n[... the diff has {len(text)} characters, the rest is left out ...]\n"
    return text


def _lines(text: str) -> list[str]:
    """Lines with their ends; only a newline ends one, as for everybody who applies a diff."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _diff(old: list[str], new: list[str], names: tuple[str, str]) -> list[str]:
    same_head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    room = min(len(old), len(new)) - same_head
    tails = zip(reversed(old), reversed(new), strict=False)
    same_tail = min(room, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], tails)))
    if (len(old) - same_head - same_tail) * (len(new) - same_head - same_tail) > _MAX_WORK:
        return _block(old, new, same_head, same_tail, names)
    # difflib only sees what differs and its surroundings; the line numbers are shifted back afterwards.
    cut = max(0, same_head - _CONTEXT)
    end = max(0, same_tail - _CONTEXT)
    lines = difflib.unified_diff(
        old[cut : len(old) - end], new[cut : len(new) - end], *names, n=_CONTEXT, lineterm="\n"
    )
    return [_shifted(line, cut) if line.startswith("@@ ") else _ended(line) for line in lines]


def _block(old: list[str], new: list[str], head: int, tail: int, names: tuple[str, str]) -> list[str]:
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    return [
        f"--- {names[0]}\n",
        f"+++ {names[1]}\n",
        f"@@ -{head + 1},{len(gone)} +{head + 1},{len(come)} @@\n",
        *(_ended(f"-{line}") for line in gone),
        *(_ended(f"+{line}") for line in come),
    ]


def _shifted(header: str, by: int) -> str:
    """`@@ -1,3 +1,4 @@` for lines that really start `by` lower."""
    _, old, new, *_ = header.split(" ")
    return f"@@ -{_range(old[1:], by)} +{_range(new[1:], by)} @@\n"


def _range(text: str, by: int) -> str:
    start, comma, count = text.partition(",")
    return f"{int(start) + by}{comma}{count}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
