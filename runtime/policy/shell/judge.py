"""The verdict on a command line: every command in it alone, the strictest one decides.

A rule is words; a final `*` stands for zero or more of them. Deny and ask rules also look at a command's name without
its path, at guesses, and at text nobody could read. An allow rule must cover all of a command, and none ever covers a
substitution, a file written, a variable set, program text, or what is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import attrs

from runtime.policy.decision import ShellVerdict, Verdict
from runtime.policy.rules import Words

from . import git
from .line import WRITES, Executed, Line, read_line, reasons
from .readonly import changes_nothing

LONGEST_PATTERN = 200

_TOOLS_WITH_GLOBALS: dict[str, frozenset[str]] = {
    name: frozenset(values.split())
    for name, values in {
        "docker": "-H --host -c --context --config -l --log-level",
        "podman": "--url --connection --root --log-level",
        "kubectl": "-n --namespace --context --kubeconfig --cluster -s --server --user --as",
        "helm": "-n --namespace --kube-context --kubeconfig",
        "npm": "--prefix -C --loglevel --registry -w --workspace",
        "pnpm": "-C --dir --filter -F",
        "yarn": "--cwd",
        "cargo": "--config -C --color -Z",
        "go": "-C",
        "gh": "-R --repo",
        "systemctl": "-H --host -M --machine -p -t",
        "terraform": "",
        "apt": "-o -c -t",
        "apt-get": "-o -c -t",
        "pip": "--proxy --log --cert --python",
        "aws": "--profile --region --output --endpoint-url",
        "gcloud": "--project --account",
        "hg": "-R --repository --cwd --config",
        "svn": "--username --password --config-dir",
        "brew": "",
        "make": "-C -f -j -I",
    }.items()
}


def judge(command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> ShellVerdict:
    """Decide about a command line by one set of rules: the `ShellJudge` of `runtime.policy.decision`."""
    line = read_line(command)
    changes = not changes_nothing(line)
    denied = _touched(line, deny)
    if denied is not None:
        return ShellVerdict("deny", _written(denied), changes)
    asked = _touched(line, ask)
    if asked is not None:
        return ShellVerdict("ask", _written(asked), changes)
    why = _why_not(line, allow, (*deny, *ask))
    if why:
        return ShellVerdict("ask", why, changes)
    return ShellVerdict("allow", ", ".join(dict.fromkeys(map(_written, _used(line, allow)))), changes)


@attrs.frozen
class Said:
    """One command of a line, as written, with its own verdict; or a reason to ask that belongs to the line."""

    command: str
    verdict: Verdict
    why: str


def each_of(command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> tuple[Said, ...]:
    """What the rules say to each command of a line, and what else there is to ask about: for people to read."""
    line = read_line(command)
    found: dict[tuple[str, ...], Said] = {}
    for each in line.executed:
        if each.certain and each.argv not in found:
            found[each.argv] = _said(each, line, allow, ask, deny)
    to = f": {', '.join(line.writes)}" if line.writes else ""
    whole = (f"{reason}{to}" if reason == WRITES else reason for reason in reasons(line))
    return (*found.values(), *(Said("", "ask", why) for why in whole))


def _said(each: Executed, line: Line, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> Said:
    alone = attrs.evolve(line, executed=(each,), unread=())
    text = " ".join(each.shown)
    for verdict, rules in (("deny", deny), ("ask", ask)):
        touched = _touched(alone, rules)
        if touched is not None:
            return Said(text, "deny" if verdict == "deny" else "ask", _written(touched))
    rule = _allowing(each, allow)
    if rule is None:
        return Said(text, "ask", "no rule allows it" if not each.escapes else _unallowed(each, allow))
    doubt = next((strict for strict in (*deny, *ask) if _might_match(strict, each)), None)
    return Said(text, "ask", f"may be what {_written(doubt)} means") if doubt else Said(text, "allow", _written(rule))


def _written(rule: Words) -> str:
    return f"shell({' '.join(rule)})"


def _why_not(line: Line, allow: Sequence[Words], strict: Sequence[Words]) -> str:
    """Why a line is not allowed as a whole; "" if it is."""
    for reason in reasons(line):
        return reason
    certain = [each for each in line.executed if each.certain]
    if not certain:
        return "it runs no command that a rule could allow"
    for each in certain:
        if _allowing(each, allow) is None:
            return _unallowed(each, allow)
        for rule in strict:
            if _might_match(rule, each):
                return f"{_short(each.argv)} may be what {_written(rule)} means"
    return ""


def _unallowed(each: Executed, allow: Sequence[Words]) -> str:
    bare = attrs.evolve(each, escapes=())
    if each.escapes and _allowing(bare, allow) is not None:
        return f"{_short(each.argv)}: {each.argv[each.escapes[0].at]} is more than a prefix rule allows"
    return f"no rule allows {_short(each.argv)}"


def _short(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return f"`{text if len(text) <= 80 else text[:77] + '…'}`"


def _used(line: Line, allow: Sequence[Words]) -> Iterator[Words]:
    for each in line.executed:
        rule = _allowing(each, allow) if each.certain else None
        if rule is not None:
            yield rule


def _allowing(each: Executed, allow: Sequence[Words]) -> Words | None:
    if not each.known:
        return None
    for rule in allow:
        if _covers(rule, each, each.argv, 0):
            return rule
        before = len(each.wrapper)
        if before and len(_fixed(rule)) > before and _covers(rule, each, (*each.wrapper, *each.argv), before):
            return rule
    return None


def _covers(rule: Words, each: Executed, argv: Sequence[str], before: int) -> bool:
    """Whether a rule allows all of a command. Escapes must stand among the words it spells out."""
    if not _matches(rule, argv):
        return False
    if rule[-1:] != ("*",):
        return not each.open
    spelled = len(rule) - 1 - before
    return all(word.static for word in each.words[:spelled]) and all(escape.at < spelled for escape in each.escapes)


def _fixed(rule: Words) -> Words:
    return rule[:-1] if rule[-1:] == ("*",) else rule


def _matches(rule: Words, argv: Sequence[str]) -> bool:
    if rule[-1:] == ("*",):
        return tuple(argv[: len(rule) - 1]) == rule[:-1]
    return tuple(argv) == rule


def _touched(line: Line, rules: Sequence[Words]) -> Words | None:
    """The first rule that speaks of something the line executes or may execute."""
    if not rules:
        return None
    for each in line.executed:
        for argv in _forms(each.argv):
            for rule in rules:
                if each.words[0].glob and _may_become(argv[0], rule[0]):
                    return rule
                if (rule[0] == "*" or rule[0] == argv[0]) and _matches(rule, argv):
                    return rule
    for text in line.unread:
        for spelled in (text, _QUOTING.sub("", text)):
            found = [word.rpartition("/")[2] for word in _BETWEEN.split(spelled) if word]
            for rule in rules:
                if _occurs(_fixed(rule), found):
                    return rule
    return None


# Where words of a text may end that nobody could read, with its quotes and as if they were not there.
_BETWEEN = re.compile(r"[\s;|&()<>{}`\"'$=\\,]+")
_QUOTING = re.compile(r"\\\n|[\\\"']")


def _occurs(fixed: Words, found: Sequence[str]) -> bool:
    if not fixed:
        return True
    starts = (at for at, word in enumerate(found) if word == fixed[0])
    return any(tuple(found[at : at + len(fixed)]) == fixed for at in starts)


def _forms(argv: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The ways to write a command that a deny rule means: without its path, without options before a subcommand."""
    yield argv
    name = argv[0].rpartition("/")[2]
    bare = (name, *argv[1:])
    if bare != argv:
        yield bare
    start = _after_globals(bare)
    if start > 1:
        yield (name, *bare[start:])


def _after_globals(argv: Sequence[str]) -> int:
    values = git.GLOBAL_VALUES if argv[0] == "git" else _TOOLS_WITH_GLOBALS.get(argv[0])
    at = 1
    if values is not None:
        while at < len(argv) and argv[at].startswith(("-", "+")):
            at += 2 if argv[at] in values else 1
    return at


def _might_match(rule: Words, each: Executed) -> bool:
    """Whether a deny or ask rule may apply once the words are known that are not known yet."""
    fixed = _fixed(rule)
    if not fixed:
        return False
    for at, (wanted, word) in enumerate(zip(fixed, each.words, strict=False)):
        text = word.text.rpartition("/")[2] if at == 0 else word.text
        if not word.static:
            return True
        if text != wanted and not (word.glob and _may_become(text, wanted)):
            return False
    return each.open and len(each.words) < len(rule)


def _may_become(pattern: str, wanted: str) -> bool:
    """Whether a file name pattern may give a word; one that nobody would write is taken to."""
    return len(pattern) > LONGEST_PATTERN or fnmatchcase(wanted, pattern)
