"""While planning, a command runs only if it is known to change nothing."""

from __future__ import annotations

import pytest

from runtime.policy.decision import Ceiling, decide
from runtime.policy.rules import parse_permissions
from runtime.policy.shell import judge
from runtime.policy.subjects import ShellSubject

READS = [
    "ls -la",
    "cat README.md | head -5",
    "git status && git log --oneline | head",
    "git branch",
    "git branch -a",
    "git tag --list 'v*'",
    "git stash list",
    "git remote -v",
    "git config --get user.name",
    "find . -name '*.py' | xargs grep -n foo",
    'for f in *.md; do wc -l "$f"; done',
    "if [ -f x ]; then cat x; fi",
    "cd src && rg foo",
    "timeout 5 grep -r foo .",
    "sed -n 1,5p f",
    "awk '{print $1}' f",
    "cat <<EOF\nx\nEOF",
    "ls 2>/dev/null",
    "[[ -f x ]] && cat x",
]
CHANGES = [
    "rm x",
    "touch x",
    "ls > f",
    "git branch new",
    "git tag v1",
    "git stash",
    "git remote add a b",
    "git config user.name x",
    "git commit -m x",
    "git -C d status",
    "sed -i s/a/b/ f",
    "sort -o x y",
    "find . -delete",
    "find . -exec rm {} +",
    "xargs rm",
    "ls $(cat f)",
    "A=1 ls",
    "./ls",
    "/bin/ls",
    "$x",
    "python x.py",
    "make",
    "npm test",
    "bash -c ls",
    "eval ls",
    "f() { ls; }; f",
    "ls; (",
    "sudo rm x",
    "sudo ls",
    "env rm x",
    "tee f",
    "curl u",
]


@pytest.mark.parametrize("command", READS)
def test_a_command_that_reads_and_prints_changes_nothing(command: str) -> None:
    """A command that reads and prints changes nothing."""
    assert not judge(command, allow=(), ask=(), deny=()).changes


@pytest.mark.parametrize("command", CHANGES)
def test_any_other_command_is_taken_to_change_something(command: str) -> None:
    """Any other command is taken to change something."""
    assert judge(command, allow=(), ask=(), deny=()).changes


@pytest.mark.parametrize(("command", "expected"), [("git status", "allow"), ("rm x", "deny"), ("git log > f", "deny")])
def test_plan_mode_denies_what_may_change_something(command: str, expected: str) -> None:
    """Plan mode denies what may change something, whatever the rules allow."""
    own = parse_permissions(["shell"])
    decision = decide(ShellSubject(command), own, Ceiling(mode="plan"), shell=judge)
    assert expected == decision.verdict


def test_a_deny_from_above_holds_for_a_command_inside_another() -> None:
    """A deny from above holds for a command inside another."""
    ceiling = Ceiling().narrowed(parse_permissions(deny=["shell(rm *)"], origin="lead"))
    own = parse_permissions(["shell(env *)", "shell(ls *)"])
    assert "deny" == decide(ShellSubject("env rm x"), own, ceiling, yes=True, shell=judge).verdict
