"""May this call run? The strictest answer of the fixed rules, the ceiling handed down, and the agent's own rules.

The ceiling is what a parent's children may never exceed: the run's mode, every explicit deny and ask above, the levels
of sandbox and network, the workspace. Tool lists, defaults and allow rules are not handed down, so a parent's lack of a
right does not take away one a child was given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, TypeVar

import attrs

from .rules import Permissions, Rule, Words, applies, speaks_of_commands
from .subjects import AgentSubject, HostSubject, McpSubject, PathSubject, PathUse, PlainSubject, ShellSubject, Subject

Verdict: TypeAlias = Literal["allow", "ask", "deny"]
Mode: TypeAlias = Literal["plan", "default", "accept-edits"]
Sandbox: TypeAlias = Literal["read-only", "workspace-write", "unsandboxed"]
Network: TypeAlias = Literal["none", "tools", "all"]

Level = TypeVar("Level", bound=str)

MODES: tuple[Mode, ...] = ("plan", "default", "accept-edits")
SANDBOXES: tuple[Sandbox, ...] = ("read-only", "workspace-write", "unsandboxed")
NETWORKS: tuple[Network, ...] = ("none", "tools", "all")
_STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}

PROTECTED_ANYWHERE = frozenset(
    {".git", ".claude", ".agents", ".opencode", ".mcp.json", "agents.md", "claude.md", "context.md"}
)
PROTECTED_AT_TOP = frozenset({"agents", "skills", "elenco.yaml"})


@attrs.frozen
class Decision:
    """The verdict, the rule that decided (`deny: write_file(secrets/**)`, or a built-in one in words), and whose it is.

    `by` is own or ceiling (with the rule's origin after a colon, if it has one), built-in, mode, protected, workspace,
    sandbox, network or --yes.
    """

    verdict: Verdict
    rule: str
    by: str


@attrs.frozen
class Ceiling:
    """What no call below may exceed. `network`: `tools` lets our own tools out but no command, `all` both.

    `closed` are the places in the workspace, relative to it, where Elenco keeps records, settings and trust: no tool
    that names paths reads or changes them, whatever is allowed.
    """

    mode: Mode = "default"
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    sandbox: Sandbox = "workspace-write"
    network: Network = "tools"
    root: str = ""
    closed: tuple[str, ...] = ()

    def narrowed(
        self,
        own: Permissions,
        *,
        mode: Mode | None = None,
        sandbox: Sandbox | None = None,
        network: Network | None = None,
        root: str | None = None,
    ) -> Ceiling:
        """The ceiling of an agent's children: its explicit asks and denies added, every level the lower of the two.

        A `root` that is not inside the present one is not taken.
        """
        return attrs.evolve(
            self,
            mode=_lower(MODES, self.mode, mode),
            ask=self.ask + own.ask,
            deny=self.deny + own.deny,
            sandbox=_lower(SANDBOXES, self.sandbox, sandbox),
            network=_lower(NETWORKS, self.network, network),
            root=root if root is not None and _is_inside(root, self.root) else self.root,
        )


@attrs.frozen
class ShellVerdict:
    """What a judge says of a command line: the verdict, the rule or the reason, and whether it changes anything."""

    verdict: Verdict
    why: str
    changes: bool = True


class ShellJudge(Protocol):
    """Decides about a command line by one set of rules (each as words), every command in it alone."""

    def __call__(
        self, command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]
    ) -> ShellVerdict: ...


def decide(
    subject: Subject,
    own: Permissions,
    ceiling: Ceiling | None = None,
    *,
    mode: Mode | None = None,
    yes: bool = False,
    shell: ShellJudge | None = None,
) -> Decision:
    """Decide about one call: the strictest of the fixed rules, the ceiling and the agent's own rules.

    `mode` can only be stricter than the ceiling's. `yes` answers every ask with yes; it never lifts a deny. `shell`
    reads command lines; without one, a command asks unless it might be a denied one.
    """
    ceiling = ceiling or Ceiling()
    judge = shell or ask_always
    strict_mode: Mode = _lower(MODES, ceiling.mode, mode)
    answers = [
        _by_fixed_rules(subject, ceiling),
        _by_mode(subject, strict_mode, judge),
        _by_ceiling(subject, own, ceiling, judge),
        _by_own_rules(subject, own, strict_mode, judge),
    ]
    strictest = max((each for each in answers if each is not None), key=lambda each: _STRICTNESS[each.verdict])
    if yes and strictest.verdict == "ask":
        return Decision("allow", strictest.rule, "--yes")
    return strictest


def readable(path: str, own: Permissions, ceiling: Ceiling | None = None) -> bool:
    """Whether a tool that looks at many files may look at this one without a question."""
    return decide(PathSubject("read_file", (PathUse("read", path),)), own, ceiling).verdict == "allow"


def is_protected(path: str) -> bool:
    """Whether a write to this path changes what rules over agents: it asks in every mode.

    Spelling that some file systems take for the same name (case, dots or blanks at the end) counts as the same.
    """
    names = [name.casefold().rstrip(" .") for name in path.split("/")]
    return names[0] in PROTECTED_AT_TOP or not PROTECTED_ANYWHERE.isdisjoint(names)


def is_closed(use: PathUse, closed: Sequence[str]) -> bool:
    """Whether a use touches a closed place: what lies in it, or, where something goes, what it lies in."""
    if any(_is_inside(use.path, place) for place in closed):
        return True
    goes = use.use in ("write", "delete")
    return goes and any(use.path == "." or _is_inside(place, use.path) for place in closed)


def ask_always(command: str, *, allow: Sequence[Words], ask: Sequence[Words], deny: Sequence[Words]) -> ShellVerdict:
    """The judge that cannot read shell: no allow rule helps, a deny rule holds wherever its words occur in a row."""
    del allow, ask
    found = [word.rpartition("/")[2] for word in re.split(r"[\s;&|()<>{}`\"'$=\\]+", command) if word]
    for words in deny:
        fixed = words[:-1] if words[-1:] == ("*",) else words
        if any(tuple(found[at : at + len(fixed)]) == fixed for at in range(len(found) - len(fixed) + 1)):
            return ShellVerdict("deny", f"shell({' '.join(words)})")
    return ShellVerdict("ask", "commands ask")


def _by_fixed_rules(subject: Subject, ceiling: Ceiling) -> Decision | None:
    match subject:
        case PathSubject():
            for each in subject.uses:
                if each.fault:
                    return Decision("deny", each.fault, "workspace")
                if is_closed(each, ceiling.closed):
                    return Decision("deny", f"{each.path!r} holds Elenco's own records or settings", "workspace")
            if subject.writes and ceiling.sandbox == "read-only":
                return Decision("deny", "nothing is written: read-only", "sandbox")
            if any(is_protected(each.path) for each in subject.writes):
                return Decision("ask", "files that govern agents", "protected")
        case HostSubject() if ceiling.network == "none":
            return Decision("deny", "no network", "network")
        case _:
            pass
    return None


def _by_mode(subject: Subject, mode: Mode, judge: ShellJudge) -> Decision | None:
    if mode == "plan" and _changes(subject, judge):
        return Decision("deny", "nothing is changed while planning", "mode")
    return None


def _changes(subject: Subject, judge: ShellJudge) -> bool:
    match subject:
        case PathSubject():
            return subject.changes or bool(subject.writes)
        case ShellSubject():
            return judge(subject.command, allow=(), ask=(), deny=()).changes
        case McpSubject():
            return subject.changes
        case PlainSubject():
            return subject.changes and not subject.private
        case HostSubject() | AgentSubject():
            return False


def _by_ceiling(subject: Subject, own: Permissions, ceiling: Ceiling, judge: ShellJudge) -> Decision | None:
    if not isinstance(subject, ShellSubject):
        decision = _by_rules(subject, Permissions((), ceiling.ask, ceiling.deny), "ceiling", judge)
        return None if decision is not None and decision.verdict == "allow" else decision
    # A judge says ask of much that no rule forbids. What it would say with nothing forbidden is no word of the ceiling:
    # the agent's own rules ask about it as well.
    allow = (*own.allow, Rule("shell"))
    decision = _by_rules(subject, Permissions(allow, ceiling.ask, ceiling.deny), "ceiling", judge)
    free = _by_rules(subject, Permissions(allow), "ceiling", judge)
    return None if decision is None or decision.verdict == "allow" or decision == free else decision


def _by_own_rules(subject: Subject, own: Permissions, mode: Mode, judge: ShellJudge) -> Decision:
    return _by_rules(subject, own, "own", judge) or _built_in(subject, mode)


def _by_rules(subject: Subject, rules: Permissions, layer: str, judge: ShellJudge) -> Decision | None:
    denied = next((rule for rule in rules.deny if applies(rule, subject, "deny")), None)
    if denied is not None:
        return Decision("deny", f"deny: {denied}", _whose(denied, layer))
    asked = next((rule for rule in rules.ask if applies(rule, subject, "ask")), None)
    if isinstance(subject, ShellSubject):
        judged = _by_words(subject, rules, layer, judge)
        if judged is not None and (asked is None or judged.verdict == "deny"):
            return judged
    if asked is not None:
        return Decision("ask", f"ask: {asked}", _whose(asked, layer))
    allowed = next((rule for rule in rules.allow if applies(rule, subject, "allow")), None)
    if allowed is not None and not isinstance(subject, ShellSubject):
        return Decision("allow", f"allow: {allowed}", _whose(allowed, layer))
    return None


def _by_words(subject: ShellSubject, rules: Permissions, layer: str, judge: ShellJudge) -> Decision | None:
    allow, ask, deny = (
        tuple(rule.words for rule in each if speaks_of_commands(rule, subject.tool))
        for each in (rules.allow, rules.ask, rules.deny)
    )
    if not (allow or ask or deny):
        return None
    said = judge(subject.command, allow=allow, ask=ask, deny=deny)
    spoken: tuple[Rule, ...] = getattr(rules, said.verdict)
    named = (rule for rule in spoken if speaks_of_commands(rule, subject.tool))
    rule = next((rule for rule in named if f"shell({' '.join(rule.words)})" == said.why), None)
    return Decision(said.verdict, f"{said.verdict}: {said.why}", layer if rule is None else _whose(rule, layer))


def _whose(rule: Rule, layer: str) -> str:
    return f"{layer}: {rule.origin}" if rule.origin else layer


def _built_in(subject: Subject, mode: Mode) -> Decision:
    match subject:
        case PathSubject(uses=uses) if uses and not subject.changes and not subject.writes:
            return Decision("allow", "reads inside the workspace", "built-in")
        case PathSubject(uses=uses) if uses and mode == "accept-edits" and all(each.use != "delete" for each in uses):
            return Decision("allow", "edits inside the workspace", "mode")
        case PlainSubject(private=True):
            return Decision("allow", "notes and kept results", "built-in")
        case AgentSubject(declared=True):
            return Decision("allow", "declared subagents", "built-in")
        case _:
            return Decision("ask", "everything else asks", "built-in")


def _lower(levels: Sequence[Level], one: Level, other: Level | None) -> Level:
    return one if other is None or levels.index(one) <= levels.index(other) else other


def _is_inside(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(root.rstrip("/") + "/")
