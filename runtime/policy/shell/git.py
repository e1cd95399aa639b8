"""Arguments of git that run a program, obey another configuration, write a file or drop what a reader would not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import Word, names

# Before the subcommand: what governs which programs git starts, and where.
GLOBAL_VALUES = frozenset(
    {
        "-c",
        "-C",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--super-prefix",
        "--config-env",
        "--attr-source",
        "--exec-path",
    }
)
_GLOBAL_FINE = names(
    "--no-pager -P --no-optional-locks --no-replace-objects --literal-pathspecs --glob-pathspecs"
    " --noglob-pathspecs --icase-pathspecs --no-lazy-fetch --no-advice --version -v --help -h"
)
_LONGS = names("output ext-diff exec upload-pack receive-pack open-files-in-pager extcmd textconv filters")
_FINE = frozenset({"text", "filter"})
_BY_SUBCOMMAND: dict[str, tuple[str, frozenset[str]]] = {
    "branch": ("dDmMcCfu", names("delete move copy force edit-description set-upstream-to unset-upstream")),
    "tag": ("df", frozenset({"delete", "force"})),
    "grep": ("O", frozenset()),
    "rebase": ("x", frozenset()),
    "difftool": ("x", frozenset({"tool"})),
    "archive": ("o", frozenset({"remote"})),
    "clone": ("uc", frozenset({"config", "template", "separate-git-dir"})),
    "init": ("", frozenset({"template", "separate-git-dir"})),
    "send-email": ("", names("smtp-server sendmail-cmd to-cmd cc-cmd header-cmd smtp-server-option")),
    "format-patch": ("o", frozenset({"output-directory"})),
    "apply": ("", frozenset({"unsafe-paths"})),
    "blame": ("", frozenset({"contents"})),
}
_NEVER = names(
    "difftool mergetool filter-branch instaweb web--browse daemon gui citool for-each-repo hook send-email"
    " fast-import remote-ext remote-fd shell upload-pack receive-pack upload-archive http-backend"
)
_CHANGING: dict[str, frozenset[str]] = {
    "remote": names("add rename remove rm set-head set-branches set-url prune update"),
    "reflog": frozenset({"expire", "delete", "drop"}),
    "submodule": frozenset({"foreach"}),
    "bundle": frozenset({"create"}),
    "bisect": frozenset({"run"}),
}
_CONFIG_READS = names("--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list -l get list")
_CONFIG_HARMLESS = re.compile(
    r"(?i)(?:user\.(?:name|email)|color\..*|init\.defaultbranch|pull\.(?:rebase|ff)|push\.default)"
)


def dangers(words: Sequence[Word]) -> list[int]:
    """The places of such arguments."""
    found, at = _globals(words)
    if at >= len(words):
        return found
    if not words[at].static or words[at].glob:
        return [*found, at]
    sub = words[at].text
    if sub in _NEVER:
        found.append(at)
    letters, longs = _BY_SUBCOMMAND.get(sub, ("", frozenset[str]()))
    changing = _CHANGING.get(sub, frozenset[str]())
    for place, word in enumerate(words[at + 1 :], at + 1):
        text = word.text
        if text in changing or re.match(r"(?:ext|fd)::", text) or _is_risky(word, letters, longs):
            found.append(place)
    if sub == "config":
        found.extend(_config(words, at))
    return found


def _globals(words: Sequence[Word]) -> tuple[list[int], int]:
    found: list[int] = []
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text not in _GLOBAL_FINE:
            found.append(at)
        at += 2 if text in GLOBAL_VALUES else 1
    return found, at


def _is_risky(word: Word, letters: str, longs: frozenset[str]) -> bool:
    text = word.text
    if not text.startswith("-") or text in ("-", "--"):
        return False
    if (not word.static or word.glob) and re.match(r"-+[$`*?\[]", text):
        return True
    if text.startswith("--"):
        name = re.split(r"[=$`]", text[2:])[0]
        return (
            bool(name)
            and name not in _FINE
            and any(each.startswith(name) for each in _LONGS | longs if len(name) > 2 or each == name)
        )
    return any(letter in letters for letter in text[1:])


def _config(words: Sequence[Word], at: int) -> list[int]:
    """Setting a key: most of them name a program or a file."""
    if any(word.text in _CONFIG_READS for word in words[at + 1 :]):
        return []
    rest = list(range(at + 1, len(words)))
    operands = [place for place in rest if not words[place].text.startswith("-")]
    if len(operands) == 1 and len(rest) == 1:
        return []
    if operands and _CONFIG_HARMLESS.fullmatch(words[operands[0]].text):
        return []
    return rest
