"""Whether a shell call only looks: then it is judged by what it shows, not as a change.

This is about progress, not about permission: a wrong guess here costs a nudge, so a short list of commands and a
look at the separators is enough. A runtime that parses commands passes better flags with the call.
"""

import re
from collections.abc import Mapping
from typing import Any

_LOOKING = frozenset(  # one word a line would be a page
    """
    cat head tail less more bat nl sed grep egrep fgrep rg ag ack find fd ls tree wc stat file pwd du df
    which awk cut sort uniq tr jq column diff cmp echo printf true
    """.split()  # noqa: SIM905
)
_GIT = frozenset(  # one word a line would be a page
    """
    log show diff status blame grep branch ls-files rev-parse describe shortlog
    """.split()  # noqa: SIM905
)
_CHANGES = re.compile(r"[<>`]|\$\(|\s-(?:i|delete|exec|execdir|ok|fprint)\b|--in-place|\bxargs\b|\btee\b")
_HARMLESS = re.compile(r"\d?>\s*/dev/null|2>&1|&>\s*/dev/null")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")


def only_reads(arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments are one command line made of nothing but commands that look."""
    command = arguments.get("command", arguments.get("cmd"))
    if not isinstance(command, str) or not command or len(command) > 1000:
        return False
    if ">" in command:
        command = _HARMLESS.sub(" ", command)
    if _CHANGES.search(command) or "&" in command.replace("&&", ""):
        return False
    return all(_looks(part.split()) for part in _SEPARATOR.split(command) if part.strip())


def _looks(words: list[str]) -> bool:
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT
    return words[0] in _LOOKING
