"""Whether a command line is known to change nothing: what may run while an agent only plans."""

from __future__ import annotations

from .behind import name_of
from .line import Executed, Line
from .words import names

_HARMLESS_FLAGS = frozenset(
    {"chain", "pipe", "background", "subshell", "control_flow", "glob", "redirect_read", "heredoc", "env_wrapper"}
)
_READERS = names(
    "ls cat head tail wc grep egrep fgrep zgrep rg ag ack find fd fdfind sort uniq cut tr diff cmp comm file"
    " stat du df pwd cd echo printf true false test [ : which type whoami id groups date uname hostname"
    " printenv env ps tree basename dirname realpath readlink seq sleep wait exit return break continue jq nl"
    " od xxd hexdump strings column fold fmt expand unexpand tac rev paste join md5sum sha1sum sha224sum"
    " sha256sum sha384sum sha512sum b2sum cksum sum base64 base32 bat pgrep uptime free nproc arch lscpu lsblk"
    " lsof tty locale getconf cal awk gawk mawk sed gsed yes factor numfmt zcat bzcat xzcat zstdcat look tsort"
    " ptx command builtin nice timeout time stdbuf ionice xargs git expr"
)
_GIT_READERS = names(
    "status log diff show rev-parse ls-files ls-tree cat-file rev-list merge-base name-rev describe blame"
    " annotate shortlog grep for-each-ref show-ref whatchanged count-objects check-ignore check-attr"
    " check-mailmap cherry diff-tree diff-index diff-files version help range-diff show-branch verify-commit"
    " verify-tag"
)
_GIT_LISTS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "branch": (frozenset(), names("--list -l --contains --no-contains --merged --no-merged --points-at")),
    "tag": (frozenset(), names("--list -l --contains --no-contains --merged --no-merged --points-at -n")),
    "remote": (frozenset({"show", "get-url"}), frozenset()),
    "stash": (frozenset({"list", "show"}), frozenset()),
    "reflog": (frozenset({"show", "exists"}), frozenset()),
    "worktree": (frozenset({"list"}), frozenset()),
    "submodule": (frozenset({"status", "summary"}), frozenset()),
    "notes": (frozenset({"list", "show"}), frozenset()),
    "config": (
        frozenset({"get", "list"}),
        names("--get --get-all --get-regexp --get-urlmatch --list -l"),
    ),
}
_EMPTY_LISTS = frozenset({"branch", "tag", "remote", "reflog", "submodule", "notes"})


def changes_nothing(line: Line) -> bool:
    """True only if every command is one of those known to read and print, and nothing else happens."""
    return (
        not line.notes
        and not line.unread
        and _HARMLESS_FLAGS.issuperset(line.flags)
        and all(_reads(each) for each in line.executed)
    )


def _reads(each: Executed) -> bool:
    argv = each.argv
    if not each.known or each.escapes or "/" in argv[0]:
        return False
    if argv[0] == "git":
        return _git_reads(argv[1:])
    return name_of(each.words) in _READERS


def _git_reads(arguments: tuple[str, ...]) -> bool:
    rest = [word for word in arguments if word not in ("--no-pager", "-P", "--no-optional-locks")]
    if not rest or rest[0] in _GIT_READERS or rest == ["--version"]:
        return True
    if rest[0] not in _GIT_LISTS:
        return False
    verbs, options = _GIT_LISTS[rest[0]]
    operands = [word for word in rest[1:] if not word.startswith("-")]
    if not operands:
        return rest[0] in _EMPTY_LISTS or not options.isdisjoint(rest[1:])
    return operands[0] in verbs or not options.isdisjoint(rest[1:])
