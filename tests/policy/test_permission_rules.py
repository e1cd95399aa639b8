"""How permission rules are read, and which calls each speaks about."""

from __future__ import annotations

import pytest

from runtime.policy.rules import Rule, RuleError, applies, parse_permissions, parse_rule
from runtime.policy.subjects import (
    AgentSubject,
    HostSubject,
    McpSubject,
    PathSubject,
    PathUse,
    PlainSubject,
    ShellSubject,
    Subject,
    Use,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("read_file", Rule("read_file")),
        (" write_file( secrets/** ) ", Rule("write_file", "secrets/**")),
        ("shell(git push *)", Rule("shell", "git push *")),
        ("shell(find . -name '(x)')", Rule("shell", "find . -name '(x)'")),
        ("fetch_url(*.example.com)", Rule("fetch_url", "*.example.com")),
        ("mcp(files/read_*)", Rule("mcp", "files/read_*")),
        ("agent(writer)", Rule("agent", "writer")),
        ("*", Rule("*")),
    ],
)
def test_a_rule_is_a_tool_and_perhaps_a_pattern(text: str, expected: Rule) -> None:
    """TOOL and TOOL(PATTERN) are read, with blanks around either."""
    assert expected == parse_rule(text)
    assert str(expected) == str(parse_rule(str(expected)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("shell(rm *", "closing ')' is missing"),
        ("shell rm *)", "')' without '('"),
        ("(rm *)", "tool name is missing"),
        ("shell(ls) x", "after the closing"),
        ("shell()", "pattern is empty; write shell alone"),
        ("rm -rf", "one word"),
        ("sh,ell", "only letters"),
        ("shell('a)", "no closing quotation"),
        ("shell('' )", None),
        ("fetch_url(https://a.b/c)", "name a host"),
        ("mcp(a/b/c)", "SERVER/TOOL"),
        ("write_file(../x)", "goes up"),
        ("shel(ls *)", "unknown tool 'shel'; did you mean 'shell'?"),
        ("serch_text", "did you mean 'search_text'?"),
    ],
)
def test_a_rule_that_cannot_be_read_says_what_would_be_right(text: str, why: str | None) -> None:
    """Each mistake has words of its own; nothing is silently taken for something else."""
    if why is None:
        assert parse_rule(text).words == ("",)
        return
    with pytest.raises(RuleError) as caught:
        parse_rule(text, known=["search_text", "write_file"])
    assert why in str(caught.value)


def test_shell_rules_are_words() -> None:
    """A shell rule's words are split as a shell would, and a bare one means every command."""
    assert ("git", "commit", "-m", "a b", "*") == parse_rule("shell(git commit -m 'a b' *)").words
    assert parse_rule("shell").words == ("*",)


def test_lists_of_rules_know_where_they_were_written() -> None:
    """Rules of several sources add up and keep their origin, which does not make them different."""
    ours = parse_permissions(allow=["read_file"], deny=["shell(rm *)"], origin="--deny")
    both = ours + parse_permissions(ask=["fetch_url"])
    assert (1, 1, 1) == (len(both.allow), len(both.ask), len(both.deny))
    assert both.deny[0].origin == "--deny"
    assert both.deny[0] == parse_rule("shell(rm *)")


def paths(tool: str, use: Use, *names: str) -> PathSubject:
    return PathSubject(tool, tuple(PathUse(use, name) for name in names), use in ("write", "delete"))


APPLIES: list[tuple[str, Subject, bool, bool]] = [
    # rule, call, whether it allows the call, whether it would deny it
    ("write_file(docs/**)", paths("write_file", "write", "docs/a/b"), True, True),
    ("write_file(docs/*)", paths("write_file", "write", "docs/a/b"), False, True),
    ("write_file(docs)", paths("write_file", "write", "docs/a"), False, True),
    ("write_file(docs/**)", paths("write_file", "write", "src/a"), False, False),
    ("write_file(*)", paths("write_file", "write", "src/a.py"), True, True),
    ("write_file(docs/**)", paths("edit_file", "write", "docs/a"), False, True),
    ("write_file", paths("apply_patch", "write", "docs/a"), False, True),
    ("write_file", paths("edit_file", "read", "docs/a"), False, False),
    ("apply_patch(docs/**)", paths("apply_patch", "write", "docs/a", "src/b"), False, True),
    ("apply_patch(docs/**)", paths("apply_patch", "write", "docs/a", "docs/b"), True, True),
    ("read_file(secrets/**)", paths("search_text", "read", "secrets"), False, True),
    ("read_file(secrets/**)", paths("list_files", "list", "secrets"), False, False),
    ("list_files(**)", paths("list_files", "list", "."), True, True),
    ("*", paths("read_file", "read", "a"), True, True),
    ("read_*", paths("read_file", "read", "a"), True, True),
    ("fetch_url(example.com)", HostSubject("EXAMPLE.com."), True, True),
    ("fetch_url(*.example.com)", HostSubject("a.b.example.com"), True, True),
    ("fetch_url(*.example.com)", HostSubject("example.com.evil.org"), False, False),
    ("fetch_url", HostSubject("x"), True, True),
    ("mcp(files/read_*)", McpSubject("files_read_x", "files", "read_x"), True, True),
    ("mcp(files)", McpSubject("files_write", "files", "write"), True, True),
    ("mcp(files/read_*)", McpSubject("files_write", "files", "write"), False, False),
    ("mcp", McpSubject("t", "s", "t"), True, True),
    ("files_write", McpSubject("files_write", "files", "write"), True, True),
    ("files_write(x)", McpSubject("files_write", "files", "write"), False, True),
    ("agent(writer)", AgentSubject("delegate_to_writer", "writer"), True, True),
    ("delegate_to_writer", AgentSubject("delegate_to_writer", "writer"), True, True),
    ("agent(w*)", AgentSubject("delegate_to_reader", "reader"), False, False),
    ("todo_write", PlainSubject("todo_write"), True, True),
    ("search_web(cats)", PlainSubject("search_web"), False, True),
    ("search_web(*)", PlainSubject("search_web"), True, True),
    ("shell(*)", ShellSubject("rm x"), True, True),
    ("shell(rm *)", ShellSubject("rm x"), False, False),  # words are for the judge of command lines
]


@pytest.mark.parametrize(("text", "subject", "allows", "denies"), APPLIES)
def test_a_rule_speaks_about_the_calls_in_the_table(text: str, subject: Subject, allows: bool, denies: bool) -> None:
    """An allow rule must cover all of a call; a deny rule is enough to touch it, by whatever tool."""
    rule = parse_rule(text)
    assert allows == applies(rule, subject, "allow")
    assert denies == applies(rule, subject, "deny")
    assert denies == applies(rule, subject, "ask")
