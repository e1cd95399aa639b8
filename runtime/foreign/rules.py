"""Permission patterns of other runtimes as rules of ours; where ours say less, an allow shrinks and a deny grows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runtime.policy.rules import RuleError, parse_rule

from .names import CLAUDE, COUNTERPARTS, OPENCODE, Kind

_TOKEN = re.compile(r"(?P<name>[A-Za-z_*][\w*.:-]*)(?:\((?P<inside>.*)\))?", re.DOTALL)
_PATHS = frozenset({"read", "write", "edit", "list", "grep", "glob"})


class TokenError(ValueError):
    """A list of tools that cannot be read; the message says why."""


def split_tools(text: str) -> tuple[str, ...]:
    """The entries of a list of tools, parted by blanks or commas; what stands in parentheses is not parted.

    Raises TokenError for parentheses that do not match and for what is no tool's name.
    """
    tokens: list[str] = []
    depth = 0
    current = ""
    for character in text:
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                raise TokenError("a ')' without '('")
        if depth == 0 and (character.isspace() or character == ","):
            tokens += [current] if current else []
            current = ""
        else:
            current += character
    if depth:
        raise TokenError("the closing ')' is missing")
    tokens += [current] if current else []
    for token in tokens:
        if _TOKEN.fullmatch(token) is None:
            raise TokenError(f"'{token}' is no tool's name")
    return tuple(tokens)


def name_and_pattern(token: str) -> tuple[str, str | None]:
    """`Bash(git:*)` as its name and what stands in parentheses."""
    found = _TOKEN.fullmatch(token)
    assert found is not None, token
    inside = found["inside"]
    return found["name"], inside.strip() if inside is not None and inside.strip() else None


def allow_rules(token: str) -> tuple[str, ...]:
    """The rules that allow what an entry of `allowed-tools` names; none where there is no such tool here."""
    name, pattern = name_and_pattern(token)
    if name.startswith("mcp__"):
        _, server, *rest = name.split("__")
        return _readable(f"mcp({server}/{'__'.join(rest) or '*'})")
    kind = CLAUDE.get(name) or OPENCODE.get(name)
    if kind is None:
        return () if "*" in name else _readable(token)
    if kind in ("task", "skill"):
        return ()
    found: list[str] = []
    for part in _parts(kind, pattern):
        found += allowing(kind, part)
    return tuple(dict.fromkeys(found))


def _parts(kind: Kind, pattern: str | None) -> list[str | None]:
    if pattern is None or kind in _PATHS:
        return [pattern]
    return [part.strip() for part in pattern.split(",") if part.strip()]


def allowing(kind: Kind, pattern: str | None) -> tuple[str, ...]:
    """Rules that allow no more than a pattern of another runtime means; none where that cannot be said."""
    names = COUNTERPARTS[kind].gives
    if pattern in (None, "*", "**"):
        return tuple(names)
    assert pattern is not None
    match kind:
        case "shell":
            words = _words(pattern)
            return _readable(f"shell({words})") if words else ()
        case "fetch":
            host = _host(pattern)
            return _readable(f"fetch_url({host})") if host else ()
        case "task":
            return _readable(f"agent({pattern})")
        case _ if kind in _PATHS and not pattern.startswith(("/", "~")):
            return tuple(rule for name in names for rule in _readable(f"{name}({pattern})"))
        case _:
            return ()


def forbidding(kind: Kind, pattern: str | None) -> tuple[str, ...]:
    """Rules that touch all a pattern of another runtime means, and more where it cannot be said exactly."""
    names = {"edit": ("write_file",), "write": ("write_file",), "task": ("agent",)}.get(kind) or COUNTERPARTS[
        kind
    ].takes
    if pattern in (None, "*", "**"):
        return names
    assert pattern is not None
    match kind:
        case "shell":
            return _readable(f"shell({_words(pattern) or grown(pattern)})") or ("shell",)
        case "fetch":
            host = _host(pattern)
            return _readable(f"fetch_url({host})") if host else names
        case "task":
            return _readable(f"agent({pattern})") or names
        case _ if kind in _PATHS and not pattern.startswith(("/", "~")):
            wide = re.sub(r"\*+", "**", pattern) if "/" in pattern else pattern
            found = tuple(rule for name in names for rule in _readable(f"{name}({wide})"))
            return found if len(found) == len(names) else names
        case _:
            return names


def grown(pattern: str) -> str:
    """The words before the first that holds a wildcard, with any that follow: at least all that a pattern means."""
    words = pattern.replace(":*", " *").split()
    wild = next((at for at, word in enumerate(words) if "*" in word or "?" in word), None)
    return " ".join(words) if wild is None else " ".join([*words[:wild], "*"])


def is_glued(pattern: str) -> bool:
    """Whether a star ends a word: `git push*` means more words than our rules can say."""
    words = pattern.split()
    return bool(words) and len(words[-1]) > 1 and words[-1].endswith("*") and not words[-1].endswith(":*")


def _words(pattern: str) -> str:
    """`git add:*` and `git add *` as the words of a rule; "" where a star stands elsewhere than at the end."""
    text = pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern
    words = text.split()
    if words and words[-1] != "*" and words[-1].endswith("*"):
        words[-1:] = [words[-1].rstrip("*"), "*"]
    if not words or any("*" in word for word in words[:-1]) or words == ["*"]:
        return ""
    return " ".join(words)


def _host(pattern: str) -> str:
    text = pattern.removeprefix("domain:").strip()
    text = re.sub(r"^https?://", "", text)
    host = text.partition("/")[0]
    return host if re.fullmatch(r"[A-Za-z0-9.*-]+", host) and host.strip("*.") else ""


def _readable(rule: str) -> tuple[str, ...]:
    try:
        parse_rule(rule)
    except RuleError:
        return ()
    return (rule,)


def tokens_of(entries: Iterator[str]) -> tuple[str, ...]:
    """The entries of several texts, in order. Raises TokenError."""
    return tuple(token for entry in entries for token in split_tools(entry))
