"""Setting one key of an agent file's front matter in its text; everything else stays as it was written. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from runtime.definitions import read
from runtime.errors import DefinitionError, UsageError

_PLAIN = re.compile(r"[A-Za-z0-9_./-]*[A-Za-z0-9]")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_KEY = re.compile(r"[A-Za-z_\"'][^#]*?:(\s|$)")


def with_tools(text: str, names: Sequence[str]) -> str:
    """The text of an agent file with exactly these tools. Raises UsageError where that cannot be done in place."""
    changed = _with_key(text, "tools", f"[{', '.join(map(_written, names))}]")
    return _checked(text, changed, "tools", tuple(names))


def with_model(text: str, name: str) -> str:
    """The same with this model, "" for none of its own. Raises UsageError where that cannot be done in place."""
    changed = _with_key(text, "model", _written(name) if name else None)
    return _checked(text, changed, "model", name or None)


def _with_key(text: str, key: str, value: str | None) -> str:
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if lines[0].removeprefix("\ufeff").rstrip() != "---" or end is None:
        raise UsageError("the file has no front matter between two lines '---'")
    ending = "\r" if lines[0].endswith("\r") else ""
    begin = next((number for number in range(1, end) if re.match(rf"{key}\s*:", lines[number])), None)
    new = [f"{key}: {value}{ending}"] if value is not None else []
    if begin is None:
        after = [number for number in range(1, end) if re.match(r"(name|description)\s*:", lines[number])]
        place = _end_of_value(lines, max(after), end) if after else end
        return "\n".join([*lines[:place], *new, *lines[place:]])
    comment = re.search(r"\s+#[^\]\"']*$", lines[begin].rstrip("\r"))
    if new and comment:
        new = [f"{key}: {value}{comment[0]}{ending}"]
    return "\n".join([*lines[:begin], *new, *lines[_end_of_value(lines, begin, end) :]])


def _end_of_value(lines: Sequence[str], begin: int, end: int) -> int:
    """The line after the value of the key at `begin`; blank lines and comments below it are not part of it."""
    last = begin
    for number in range(begin + 1, end):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "\t", "-", "]", "}", "#")) and _KEY.match(line):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            last = number
    return last + 1


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else json.dumps(name, ensure_ascii=False)


def _checked(before: str, text: str, key: str, wanted: object) -> str:
    """The text, if it now says what it should; a file that was faulty before may be so still."""
    try:
        found: object = getattr(read(text, "agent"), key)
    except DefinitionError:
        if not _readable(before):
            return text
    else:
        if found == wanted:
            return text
    raise UsageError(f"'{key}' cannot be set in this file by a click: change it in the text")


def _readable(text: str) -> bool:
    try:
        read(text, "agent")
    except DefinitionError:
        return False
    return True
