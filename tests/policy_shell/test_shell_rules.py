"""What a rule covers: words, a final star, paths, wrappers; and prefix rules that let too much through elsewhere."""

from __future__ import annotations

import pytest

from runtime.policy.shell import judge

Case = tuple[str, str, list[str], list[str], list[str]]


def decided(command: str, allow: list[str], ask: list[str], deny: list[str]) -> str:
    allowed, asked, denied = (tuple(tuple(rule.split()) for rule in rules) for rules in (allow, ask, deny))
    return judge(command, allow=allowed, ask=asked, deny=denied).verdict


# Reported for several agents: a prefix rule for a harmless command let each of these through.
PREFIX_BYPASSES: list[Case] = [
    ("git status && rm x", "ask", ["git status *"], [], []),
    ("git status\nrm x", "ask", ["git status *"], [], []),
    ("git status & rm x", "ask", ["git status *"], [], []),
    ("echo x > ~/.bashrc", "ask", ["echo *"], [], []),
    ("ls <(rm x)", "ask", ["ls *"], [], []),
    ("env rm x", "ask", ["env *"], [], []),
    ("find . -exec rm {} ;", "ask", ["find *"], [], []),
    ("find . -exec rm {} \\;", "ask", ["find *"], [], []),
    ('echo "$(rm x)"', "ask", ["echo *"], [], []),
    ("git branch -D main", "ask", ["git branch *"], [], []),
    ("python -c 'import os'", "ask", ["python *"], [], []),
]


@pytest.mark.parametrize(("command", "expected", "allow", "ask", "deny"), PREFIX_BYPASSES)
def test_a_prefix_rule_is_not_the_way_around_the_rules(
    command: str, expected: str, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    """A prefix rule is not the way around the rules; with a deny rule, each is denied that runs what it forbids."""
    assert expected == decided(command, allow, ask, deny)
    if "rm" in command:
        assert "deny" == decided(command, allow, ask, ["rm *"])


RULES: list[Case] = [
    ("ls", "allow", ["ls"], [], []),
    ("ls -la", "ask", ["ls"], [], []),
    ("ls", "allow", ["ls *"], [], []),
    ("ls -la", "allow", ["ls *"], [], []),
    ("lsof", "ask", ["ls *"], [], []),
    ("ls a", "allow", ["*"], [], []),
    ("'git status'", "ask", ["git status"], [], []),
    ("git status", "ask", [], [], []),
    ("git push", "ask", ["git *"], ["git push *"], []),
    ("git push", "deny", ["git *"], ["git push *"], ["git *"]),
    ("ls; git push", "deny", ["*"], [], ["git push"]),
    ("/bin/ls", "ask", ["ls *"], [], []),
    ("/bin/ls", "allow", ["/bin/ls *"], [], []),
    ("./run a", "allow", ["./run *"], [], []),
    ("/usr/bin/git push", "deny", ["*"], [], ["git push *"]),
    ("nohup git fetch", "ask", ["nohup *"], [], []),
    ("nohup git fetch", "ask", ["git fetch"], [], []),
    ("nohup git fetch", "allow", ["nohup *", "git fetch"], [], []),
    ("uv run pytest -q", "ask", ["uv run *"], [], []),
    ("uv run pytest -q", "allow", ["uv run pytest *"], [], []),
    ("uv run python -c x", "ask", ["uv run python *"], [], []),
    ("git -C x push", "deny", ["*"], [], ["git push *"]),
    ("git --no-pager -c a=b push -f", "deny", ["*"], [], ["git push *"]),
    ("docker --context x rm y", "deny", ["*"], [], ["docker rm *"]),
    ("git $x", "ask", ["*"], [], ["git push *"]),
    ("git pus?", "ask", ["*"], [], ["git push *"]),
    ("git pull $x", "allow", ["*"], [], ["git push *"]),
    ("rm $f", "ask", ["*"], [], ["rm -rf *"]),
    ("echo x | xargs git", "ask", ["*"], [], ["git push *"]),
    ("echo x | xargs rm", "ask", ["*"], [], ["rm -rf *"]),
    ("xargs grep x < f", "ask", ["xargs *", "grep x"], [], []),
    ("xargs grep x < f", "allow", ["xargs *", "grep x *"], [], []),
    ("sed -i s/a/b/ f", "ask", ["sed *"], [], []),
    ("sed -i s/a/b/ f", "allow", ["sed -i *"], [], []),
    ("find . -delete", "allow", ["find . -delete"], [], []),
    ("sort -o x y", "ask", ["sort *"], [], []),
    ("sort {-o,x} y", "ask", ["sort *"], [], []),
    ("rm {-rf,x}", "deny", ["*"], [], ["rm -rf *"]),
    ("ls src/{a,b}", "allow", ["ls *"], [], []),
    ("cat $f", "allow", ["cat *"], [], []),
    ("$f x", "ask", ["*"], [], []),
    ("ls", "deny", ["ls *"], [], ["*"]),
    ("(ls", "deny", ["ls *"], [], ["*"]),
    ("(ls", "ask", ["*"], [], ["rm *"]),
    ("(ls; rm x", "deny", ["*"], [], ["rm *"]),
    ("", "ask", ["*"], [], []),
    ("# nothing", "ask", ["*"], [], []),
    ("bash -c ls", "ask", ["bash *", "ls"], [], []),
    ("sed 's/rm x/y/' f", "allow", ["sed *"], [], ["rm *"]),
    ("grep 'rm -rf /' f", "allow", ["grep *"], [], ["rm *"]),
]


@pytest.mark.parametrize(("command", "expected", "allow", "ask", "deny"), RULES)
def test_the_table_of_rules(command: str, expected: str, allow: list[str], ask: list[str], deny: list[str]) -> None:
    """The table of rules: what is covered, what asks, what is denied."""
    assert expected == decided(command, allow, ask, deny)


def test_the_verdict_says_which_rule_or_what_was_in_the_way() -> None:
    """The verdict says which rule or what was in the way."""
    said = judge("git log | head", allow=(("git", "log", "*"), ("head", "*")), ask=(), deny=())
    assert "shell(git log *), shell(head *)" == said.why
    assert "no rule allows `rm x`" == judge("ls; rm x", allow=(("ls",),), ask=(), deny=()).why
    escape = judge("sort -o x y", allow=(("sort", "*"),), ask=(), deny=()).why
    assert "`sort -o x y`: -o is more than a prefix rule allows" == escape
    assert "not understood: a quote that is not closed" == judge("echo 'x", allow=(("*",),), ask=(), deny=()).why
    assert "shell(rm *)" == judge("ls; rm x", allow=(), ask=(), deny=(("rm", "*"),)).why
