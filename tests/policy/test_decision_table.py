"""The decision about a call, as a table; and the promise that a child never exceeds its ceiling, as a property."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.policy.decision import (
    MODES,
    NETWORKS,
    SANDBOXES,
    Ceiling,
    Decision,
    Mode,
    ShellVerdict,
    Verdict,
    decide,
    is_protected,
    readable,
)
from runtime.policy.rules import Permissions, Rule, Words, parse_permissions, parse_rule
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

RANK = {"allow": 0, "ask": 1, "deny": 2}


def path(tool: str, use: Use, name: str, fault: str = "") -> PathSubject:
    return PathSubject(tool, (PathUse(use, name, fault),), use in ("write", "delete"))


READ = path("read_file", "read", "src/a.py")
WRITE = path("write_file", "write", "src/a.py")
DELETE = path("delete_file", "delete", "src/a.py")
CONFIG = path("write_file", "write", ".git/hooks/pre-commit")
SHELL = ShellSubject("git push origin")
FETCH = HostSubject("example.com")
NOTES = PlainSubject("todo_write", changes=False, private=True)
MAIL = PlainSubject("send_mail")
CHILD = AgentSubject("delegate_to_writer", "writer")
STRANGER = AgentSubject("delegate_to_x", "x", declared=False)
MCP_LOOK = McpSubject("files_look", "files", "look", changes=False)
MCP_ACT = McpSubject("files_act", "files", "act")

NOTHING = parse_permissions()
BUILT_IN: list[tuple[Subject, Verdict, Verdict, Verdict]] = [
    # call, and the verdict in modes plan, default, accept-edits, with no rules at all
    (READ, "allow", "allow", "allow"),
    (path("list_files", "list", "."), "allow", "allow", "allow"),
    (WRITE, "deny", "ask", "allow"),
    (DELETE, "deny", "ask", "ask"),
    (CONFIG, "deny", "ask", "ask"),
    (SHELL, "deny", "ask", "ask"),
    (FETCH, "ask", "ask", "ask"),
    (NOTES, "allow", "allow", "allow"),
    (MAIL, "deny", "ask", "ask"),
    (CHILD, "allow", "allow", "allow"),
    (STRANGER, "ask", "ask", "ask"),
    (MCP_LOOK, "ask", "ask", "ask"),
    (MCP_ACT, "deny", "ask", "ask"),
    (path("read_file", "read", "../x", "'../x' is outside the workspace"), "deny", "deny", "deny"),
    (PathSubject("odd", ()), "ask", "ask", "ask"),
]


@pytest.mark.parametrize(("subject", "plan", "default", "edits"), BUILT_IN)
def test_without_rules_the_mode_decides(subject: Subject, plan: Verdict, default: Verdict, edits: Verdict) -> None:
    """Reading, notes and declared subagents are free, the rest asks; planning changes nothing."""
    verdicts = tuple(decide(subject, NOTHING, Ceiling(mode=mode)).verdict for mode in MODES)
    assert (plan, default, edits) == verdicts


def rules_of(**texts: list[str]) -> Permissions:
    return parse_permissions(texts.get("allow", ()), texts.get("ask", ()), texts.get("deny", ()))


RULES: list[tuple[str, Subject, dict[str, list[str]], Verdict]] = [
    ("deny wins over ask and allow", WRITE, {"allow": ["*"], "ask": ["*"], "deny": ["write_file"]}, "deny"),
    ("ask wins over allow", WRITE, {"allow": ["write_file"], "ask": ["write_file(src/**)"]}, "ask"),
    ("allow wins over the built-in ask", WRITE, {"allow": ["write_file(src/**)"]}, "allow"),
    ("an allow for another place does not help", WRITE, {"allow": ["write_file(docs/**)"]}, "ask"),
    ("a deny takes away what is built in", READ, {"deny": ["read_file(src/**)"]}, "deny"),
    ("governing files ask whatever is allowed", CONFIG, {"allow": ["*"]}, "ask"),
    ("governing files may be denied", CONFIG, {"allow": ["*"], "deny": ["write_file(.git/**)"]}, "deny"),
    ("a host may be allowed", FETCH, {"allow": ["fetch_url(example.com)"]}, "allow"),
    ("a server's tool may be allowed", MCP_ACT, {"allow": ["mcp(files/act)"]}, "allow"),
    ("a subagent may be denied", CHILD, {"deny": ["agent(writer)"]}, "deny"),
    ("without a shell parser no allow rule helps", SHELL, {"allow": ["shell(git push *)"]}, "ask"),
    ("nor does allowing everything", SHELL, {"allow": ["*"]}, "ask"),
    ("a shell deny holds", SHELL, {"deny": ["shell(git push *)"]}, "deny"),
    ("denying all commands holds", SHELL, {"allow": ["shell(git status)"], "deny": ["shell(*)"]}, "deny"),
    ("denying everything holds", SHELL, {"deny": ["*"]}, "deny"),
    ("a deny for another command does not", SHELL, {"deny": ["shell(rm *)"]}, "ask"),
    ("a denied command is found behind others", ShellSubject("ls;/bin/rm x"), {"deny": ["shell(rm *)"]}, "deny"),
    ("asking for all commands holds", SHELL, {"ask": ["shell"]}, "ask"),
]


@pytest.mark.parametrize(("why", "subject", "rules", "expected"), RULES)
def test_own_rules_decide_as_the_table_says(
    why: str, subject: Subject, rules: dict[str, list[str]], expected: Verdict
) -> None:
    """deny > ask > allow > built in."""
    assert expected == decide(subject, rules_of(**rules)).verdict, why


CEILINGS: list[tuple[str, Subject, Ceiling, list[str], Verdict, str]] = [
    ("a parent's deny binds", WRITE, Ceiling(deny=(parse_rule("write_file"),)), ["write_file"], "deny", "ceiling"),
    ("a parent's ask binds", WRITE, Ceiling(ask=(parse_rule("write_file"),)), ["write_file"], "ask", "ceiling"),
    ("a planning parent's child changes nothing", WRITE, Ceiling(mode="plan"), ["write_file"], "deny", "mode"),
    ("what a parent was not given, a child may have", WRITE, Ceiling(), ["write_file"], "allow", "own"),
    ("a read-only sandbox writes nothing", WRITE, Ceiling(sandbox="read-only"), ["write_file"], "deny", "sandbox"),
    ("no network is no network", FETCH, Ceiling(network="none"), ["fetch_url"], "deny", "network"),
    ("a parent's shell deny binds", SHELL, Ceiling(deny=(parse_rule("shell(git *)"),)), ["shell"], "deny", "ceiling"),
    ("a parent's rule leaves other calls alone", READ, Ceiling(deny=(parse_rule("shell"),)), [], "allow", "built-in"),
]


@pytest.mark.parametrize(("why", "subject", "ceiling", "allow", "expected", "by"), CEILINGS)
def test_the_ceiling_binds_and_only_the_ceiling(
    why: str, subject: Subject, ceiling: Ceiling, allow: list[str], expected: Verdict, by: str
) -> None:
    """Explicit denies and asks, mode and levels are handed down; a parent's missing rights are not."""
    decision = decide(subject, parse_permissions(allow=allow), ceiling)
    assert (expected, by) == (decision.verdict, decision.by), why


def test_yes_answers_asks_and_nothing_else() -> None:
    """--yes turns an ask into allow and says so; a deny stays one, an allow stays whose it was."""
    assert Decision("allow", "everything else asks", "--yes") == decide(MAIL, NOTHING, yes=True)
    assert decide(CONFIG, NOTHING, yes=True).by == "--yes"
    assert decide(MAIL, parse_permissions(deny=["send_mail"]), yes=True).verdict == "deny"
    assert decide(WRITE, NOTHING, Ceiling(sandbox="read-only"), yes=True).verdict == "deny"
    assert decide(READ, NOTHING, yes=True).by == "built-in"


def test_a_decision_names_the_rule_and_whose_it_is() -> None:
    """Who asks why gets the rule as written and where it was written."""
    own = parse_permissions(deny=["write_file(src/**)"], origin="agents/writer.md")
    assert Decision("deny", "deny: write_file(src/**)", "own: agents/writer.md") == decide(WRITE, own)


def test_a_judge_of_command_lines_decides_each_layer() -> None:
    """With a shell parser plugged in, its verdict counts for own rules and for the ceiling."""

    def judge(command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> ShellVerdict:
        words = tuple(command.split())
        for verdict, rules in (("deny", deny), ("ask", ask), ("allow", allow)):
            if any(words[: len(rule) - 1] == rule[:-1] for rule in rules):
                return ShellVerdict(verdict, "judged", changes=words[0] != "ls")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        return ShellVerdict("ask", "no rule", changes=words[0] != "ls")

    own = parse_permissions(allow=["shell(git *)", "shell(ls *)"])
    assert decide(SHELL, own, shell=judge).verdict == "allow"
    assert decide(SHELL, own, Ceiling(deny=(parse_rule("shell(git push *)"),)), shell=judge).verdict == "deny"
    assert decide(SHELL, own, Ceiling(mode="plan"), shell=judge).verdict == "deny"
    assert decide(ShellSubject("ls x"), own, Ceiling(mode="plan"), shell=judge).verdict == "allow"
    assert decide(ShellSubject("ls x"), own + parse_permissions(ask=["shell"]), shell=judge).verdict == "ask"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".git/config", True),
        ("sub/.git/hooks/x", True),
        (".GIT/x", True),
        (".git ./x", True),
        (".claude/settings.json", True),
        (".agents/agents/x.md", True),
        (".opencode/x", True),
        (".mcp.json", True),
        ("agents/writer.md", True),
        ("agents", True),
        ("skills/x/SKILL.md", True),
        ("docs/AGENTS.md", True),
        ("claude.md", True),
        ("CONTEXT.md", True),
        ("elenco.yaml", True),
        ("src/agents/a.py", False),
        (".gitignore", False),
        ("docs/elenco.yaml", False),
        ("agents.py", False),
        (".", False),
    ],
)
def test_files_that_govern_agents_are_known(name: str, expected: bool) -> None:
    """Version control, agent and skill folders, instruction files and our config are protected, whatever their case."""
    assert expected == is_protected(name)


def test_files_kept_from_reading_are_kept_from_searching() -> None:
    """A tool that looks at many files passes over those a read would be refused or asked about."""
    own = parse_permissions(deny=["read_file(secrets/**)"], ask=["read_file(*.key)"])
    assert [True, False, False] == [readable(name, own) for name in ("a", "secrets/x", "sub/b.key")]
    assert not readable("a", NOTHING, Ceiling(deny=(parse_rule("read_file"),)))


TOOLS = st.sampled_from(
    ["read_file", "write_file", "edit_file", "shell", "fetch_url", "mcp", "agent", "send_mail", "*"]
)
PATTERNS = st.sampled_from([None, "*", "a", "a/**", "b", "a b"])


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    tool, pattern = draw(TOOLS), draw(PATTERNS)
    return Rule(tool, pattern)


PERMISSIONS = st.builds(Permissions, *(st.lists(rules(), max_size=3).map(tuple) for _ in range(3)))
NAMES = st.sampled_from(["a", "a/b", "b", ".git/x"])
SUBJECTS: st.SearchStrategy[Subject] = st.one_of(
    st.builds(
        path,
        st.sampled_from(["read_file", "write_file", "edit_file"]),
        st.sampled_from(get_args(Use)),
        NAMES,
    ),
    st.builds(ShellSubject, st.sampled_from(["a", "a b", "b; a", "c"])),
    st.builds(HostSubject, st.sampled_from(["a", "b"])),
    st.builds(McpSubject, st.just("t"), st.sampled_from("ab"), st.sampled_from("ab"), st.booleans()),
    st.builds(AgentSubject, st.just("delegate"), st.sampled_from("ab"), st.booleans()),
    st.builds(PlainSubject, st.sampled_from(["send_mail", "other"]), st.booleans(), st.booleans()),
)
LEVELS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from([None, *MODES]),
        "sandbox": st.sampled_from([None, *SANDBOXES]),
        "network": st.sampled_from([None, *NETWORKS]),
    }
)


@given(
    subject=SUBJECTS,
    ancestors=st.lists(st.tuples(PERMISSIONS, LEVELS), min_size=1, max_size=3),
    own=PERMISSIONS,
    yes=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_a_child_never_exceeds_its_ceiling(
    subject: Subject, ancestors: list[tuple[Permissions, dict[str, str | None]]], own: Permissions, yes: bool
) -> None:
    """However deep, and whatever it allows itself, a child stays under every ancestor's explicit rules and levels."""
    ceiling = Ceiling(mode="accept-edits", sandbox="unsandboxed", network="all", root="/w")
    everything = parse_permissions(allow=["*", "shell(*)"])
    for permissions, levels in ancestors:
        above = ceiling
        ceiling = ceiling.narrowed(permissions, **levels, root="/elsewhere")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert ceiling.root == "/w"
        for name in ("mode", "sandbox", "network"):
            order = {"mode": MODES, "sandbox": SANDBOXES, "network": NETWORKS}[name]
            assert order.index(getattr(ceiling, name)) <= order.index(getattr(above, name))
    decision = decide(subject, own, ceiling, yes=yes)
    explicit = [
        decide(subject, everything, Ceiling(mode="accept-edits", ask=p.ask, deny=p.deny), yes=yes) for p, _ in ancestors
    ]
    assert RANK[decision.verdict] >= max(RANK[each.verdict] for each in explicit)
    assert RANK[decision.verdict] >= RANK[decide(subject, everything, ceiling, yes=yes).verdict]
    without_yes = decide(subject, own, ceiling)
    assert (without_yes.verdict == "deny") == (decision.verdict == "deny")
    if yes:
        assert decision.verdict != "ask"


@given(subject=SUBJECTS, own=PERMISSIONS, ceiling=PERMISSIONS, mode=st.sampled_from(MODES))
@settings(max_examples=200, deadline=None)
def test_the_verdict_is_the_strictest_of_its_parts(
    subject: Subject, own: Permissions, ceiling: Permissions, mode: Mode
) -> None:
    """More rules in the ceiling never make a decision looser, and taking all of it away gives the agent's own."""
    alone = decide(subject, own, Ceiling(mode=mode))
    under = decide(subject, own, Ceiling(mode=mode, ask=ceiling.ask, deny=ceiling.deny))
    assert RANK[under.verdict] >= RANK[alone.verdict]
    if under.verdict != alone.verdict:
        assert re.match("ceiling", under.by)
