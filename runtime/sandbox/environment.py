"""The environment of a command, built anew: nothing of ours is in it but what is named here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .view import HOME

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES", "TZ")
FIXED: Mapping[str, str] = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Nobody is there to page, to edit, or to type a password."""
_SECRET = re.compile(r"(?i)(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)")


def environment(
    ours: Mapping[str, str], named: Iterable[str] = (), *, walled: bool = True, temporary: str = "/tmp"
) -> dict[str, str]:
    """The variables of a command: the language of `ours`, fixed ones, and those that the user's settings name.

    Without walls it has the real home and search path; a name that sounds like a secret is never handed on.
    """
    home = HOME if walled else ours.get("HOME", "/")
    found = {
        "PATH": PATH if walled else ours.get("PATH", PATH),
        "HOME": home,
        "TMPDIR": temporary,
        "USER": ours.get("USER") or "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
    }
    found |= {name: ours[name] for name in KEPT if ours.get(name)}
    found |= FIXED
    return found | {name: ours[name] for name in named if name in ours and not sounds_secret(name)}


def sounds_secret(name: str) -> bool:
    """Whether a variable's name says that its value is nobody else's business."""
    return _SECRET.search(name) is not None
