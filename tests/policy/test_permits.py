"""Permits: what one actor may do, command lines by syntax, under the strictest of its own rules and the ceiling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.closed import closed_in
from runtime.permits import Permits, judge_shell
from runtime.policy.decision import Ceiling, Verdict, decide
from runtime.policy.paths import Workspace
from runtime.policy.rules import Permissions, RuleError, parse_permissions, parse_rule
from runtime.policy.subjects import PathSubject, PathUse, ShellSubject, Use
from runtime.tools import subject_of, tool

RANK: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


def permits(ceiling: Ceiling | None = None, *, yes: bool = False, **rules: list[str]) -> Permits:
    own = parse_permissions(rules.get("allow", ()), rules.get("ask", ()), rules.get("deny", ()))
    return Permits(own, ceiling or Ceiling(), yes)


def said(who: Permits, command: str, tool: str = "shell") -> Verdict:
    return who.judge(ShellSubject(command, tool)).verdict


SHELL: list[tuple[str, dict[str, list[str]], str, Verdict]] = [
    ("words allow themselves", {"allow": ["shell(git status)"]}, "git status", "allow"),
    ("words allow nothing longer", {"allow": ["shell(git status)"]}, "git status -s", "ask"),
    ("a star allows more words", {"allow": ["shell(git diff *)"]}, "git diff --stat HEAD", "allow"),
    ("every command of a line counts", {"allow": ["shell(git status)"]}, "git status && rm -rf x", "ask"),
    ("all of a line may be allowed", {"allow": ["shell(git *)", "shell(ls)"]}, "git status | ls", "allow"),
    ("a deny is found in a substitution", {"allow": ["shell"], "deny": ["shell(rm *)"]}, "echo $(rm x)", "deny"),
    (
        "a deny is found behind a wrapper",
        {"allow": ["shell"], "deny": ["shell(rm *)"]},
        "env -i timeout 5 rm x",
        "deny",
    ),
    ("a file that is written asks", {"allow": ["shell"]}, "echo hi > x", "ask"),
    ("what is not understood asks", {"allow": ["shell"]}, "echo 'hi", "ask"),
    ("ask wins over allow", {"allow": ["shell"], "ask": ["shell(git push *)"]}, "git push", "ask"),
    ("nothing is allowed without a rule", {}, "ls", "ask"),
    ("everything allowed is every plain command", {"allow": ["*"]}, "make test", "allow"),
]


@pytest.mark.parametrize(("why", "rules", "command", "expected"), SHELL)
def test_command_lines_are_decided_by_their_syntax(
    why: str, rules: dict[str, list[str]], command: str, expected: Verdict
) -> None:
    """Rules for shell are held against every command of a line."""
    own = parse_permissions(rules.get("allow", ()), rules.get("ask", ()), rules.get("deny", ()))
    assert expected == said(Permits(own, Ceiling()), command), why


def test_a_parents_deny_leaves_a_childs_other_commands_alone() -> None:
    """What a parent forbids is forbidden below, and everything else is the child's own rules' affair."""
    parent = permits(deny=["shell(rm *)"], ask=["shell(git push *)"])
    child = permits(parent.handed_down(), allow=["shell(ls *)", "shell(git *)", "shell(rm *)"])
    assert "allow" == said(child, "ls -la && git status")
    assert "deny" == said(child, "ls; rm x")
    assert "ask" == said(child, "git push")
    decision = child.judge(ShellSubject("git push"))
    assert ("ask: shell(git push *)", "ceiling") == (decision.rule, decision.by)
    # What asks for its own reasons is not put down to the parent.
    assert "own" == child.judge(ShellSubject("make all")).by


def test_a_child_may_be_allowed_what_a_prefix_rule_would_not_cover() -> None:
    """A parent's deny does not take a child's exact rule away."""
    parent = permits(deny=["shell(rm *)"])
    child = permits(parent.handed_down(), allow=["shell(sort -o out.txt in.txt)"])
    assert "allow" == said(child, "sort -o out.txt in.txt")
    assert "ask" == said(child, "sort -o other.txt in.txt")


def test_a_background_job_is_judged_as_a_command_line() -> None:
    """Rules for shell speak of every tool that runs commands, rules for start_job of that one alone."""

    @tool(subject=lambda arguments: ShellSubject(arguments["command"]))
    def start_job(command: str) -> str:
        return command

    with Workspace(".") as workspace:
        subject = subject_of(start_job, {"command": "npm run dev"}, workspace)
    assert ShellSubject("npm run dev", "start_job") == subject
    assert "allow" == permits(allow=["shell(npm run *)"]).judge(subject).verdict
    assert "allow" == permits(allow=["start_job(npm run *)"]).judge(subject).verdict
    assert "deny" == permits(allow=["start_job"], deny=["shell(npm *)"]).judge(subject).verdict
    assert "deny" == permits(allow=["shell"], deny=["start_job"]).judge(subject).verdict
    assert "ask" == said(permits(allow=["start_job(npm run *)"]), "npm run dev")
    with pytest.raises(RuleError, match="quotation"):
        parse_rule("start_job(npm 'run)")


def test_planning_runs_only_what_changes_nothing() -> None:
    """In plan mode a command that reads asks or runs by its rules; any other is refused."""
    who = permits(Ceiling(mode="plan"), allow=["shell"])
    assert "allow" == said(who, "git log --oneline | head")
    assert "deny" == said(who, "make")
    assert "deny" == said(permits(Ceiling(mode="plan"), yes=True), "touch x")


def test_yes_never_answers_a_deny() -> None:
    """--yes lets what asks run, a denied command never, wherever it stands in the line."""
    who = permits(yes=True, deny=["shell(rm *)"])
    assert "allow" == said(who, "make && echo $(date)")
    assert "deny" == said(who, "make && bash -c 'rm x'")


def test_a_human_sees_what_each_command_of_a_line_means() -> None:
    """Each command of a line comes with its own verdict, and what asks about the line as a whole comes last."""
    who = permits(Ceiling(deny=(parse_rule("shell(rm *)"),)), allow=["shell(ls *)"], ask=["shell(git push *)"])
    shown = who.explained(ShellSubject("touch a && ls -la; git push; rm x > y")).split("\n")
    assert [
        "touch a   asks: no rule allows it",
        "ls -la   allowed: shell(ls *)",
        "git push   asks: shell(git push *)",
        "rm x   is denied: shell(rm *)",
    ] == shown[:4]
    assert ["asks: it writes to a file: y"] == shown[4:]
    assert "" == who.explained(PathSubject("read_file", ()))


WORDS = ["git", "git status", "git push", "ls", "rm x", "ls; rm x", "git status && ls", "git push | ls", "make"]
PATTERNS = st.sampled_from(
    ["shell", "shell(git *)", "shell(git push *)", "shell(ls)", "shell(rm *)", "shell(git status)"]
)
RULES = st.lists(PATTERNS, max_size=3)
LAYER = st.tuples(RULES, RULES, RULES)


def naive(command: str, own: tuple[list[str], ...], above: list[tuple[list[str], ...]]) -> Verdict:
    """The table: each command alone; deny and ask from anywhere up the tree, allow from the actor's own rules."""
    verdicts: list[Verdict] = []
    for each in (part.strip().split() for part in command.replace("&&", ";").replace("|", ";").split(";")):

        def matches(rule: str, words: list[str] = each) -> bool:
            pattern = rule.removeprefix("shell").strip("()").split()
            if not pattern:
                return True
            if pattern[-1] == "*":
                return words[: len(pattern) - 1] == pattern[:-1]
            return words == pattern

        layers = [own, *above]
        if any(matches(rule) for _, _, deny in layers for rule in deny):
            verdicts.append("deny")
        elif any(matches(rule) for _, ask, _ in layers for rule in ask):
            verdicts.append("ask")
        else:
            verdicts.append("allow" if any(matches(rule) for rule in own[0]) else "ask")
    return max(verdicts, key=RANK.__getitem__)


@given(command=st.sampled_from(WORDS), own=LAYER, above=st.lists(LAYER, max_size=3))
@settings(max_examples=400, deadline=None)
def test_the_decision_is_that_of_the_table(
    command: str, own: tuple[list[str], ...], above: list[tuple[list[str], ...]]
) -> None:
    """However deep the tree: the strictest of all ceilings and own rules, exactly, and no allow rule is handed down."""
    ceiling = Ceiling()
    for allow, ask, deny in above:
        ceiling = Permits(parse_permissions(allow, ask, deny), ceiling).handed_down()
    who = Permits(parse_permissions(*own), ceiling)
    assert naive(command, own, above) == said(who, command)
    assert Permits(who.own, ceiling, yes=True).judge(ShellSubject(command)).verdict == (
        "deny" if naive(command, own, above) == "deny" else "allow"
    )


# --- places of our own ------------------------------------------------------------------------------------------


def path_verdict(use: Use, path: str, *, yes: bool = True) -> Verdict:
    ceiling = Ceiling(mode="accept-edits", closed=("var/state", ".config/elenco"))
    everything = parse_permissions(["*"])
    subject = PathSubject("any_tool", (PathUse(use, path),), use in ("write", "delete"))
    return decide(subject, everything, ceiling, yes=yes).verdict


@pytest.mark.parametrize("use", ["read", "write", "list", "delete"])
def test_our_own_records_and_settings_are_closed_whatever_is_allowed(use: Use) -> None:
    """State and settings folders inside the workspace are denied to tools, with every rule and --yes."""
    assert "deny" == path_verdict(use, "var/state/runs/k7f2/control.json")
    assert "deny" == path_verdict(use, "var/state")
    assert "deny" == path_verdict(use, ".config/elenco/config.yaml")
    assert "allow" == path_verdict(use, "var/states")
    moves = use in ("write", "delete")
    assert ("deny" if moves else "allow") == path_verdict(use, "var"), "a folder that holds them stays where it is"


def test_the_ceiling_hands_closed_places_down() -> None:
    """Children find the same places closed."""
    assert ("x",) == Ceiling(closed=("x",)).narrowed(Permissions()).closed


def test_the_places_are_found_where_they_really_are(tmp_path: Path) -> None:
    """Links are resolved, what lies outside is no matter, and a workspace that is such a folder has files closed."""
    root = tmp_path / "ws"
    (root / "real").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root / "real")
    environment = {"HOME": str(root), "XDG_RUNTIME_DIR": str(tmp_path / "rt"), "TMPDIR": str(root / "tmp")}
    found = closed_in(str(root), tmp_path / "link", environment)
    assert {"real", ".local/state/elenco", ".config/elenco"} <= set(found)
    assert any(each.startswith("tmp/elenco-") for each in found)
    assert () == closed_in(str(root / "real"), tmp_path / "state", {"HOME": str(tmp_path / "home")})
    assert {"runs", "allowed", "index.db"} <= set(closed_in(str(root / "real"), tmp_path / "link", {}))


def test_the_judge_is_the_one_that_debug_shows() -> None:
    """The judge of runs is that of `elenco debug shell`."""
    assert judge_shell("ls", allow=[("ls",)], ask=(), deny=()).verdict == "allow"
