"""What hooks may answer, and what several answers and the rules come to together."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.hooks.answers import (
    MOST_CONTEXT,
    Answer,
    Failed,
    Outcome,
    read_answer,
    read_exit,
    ruled,
    stands_for,
)
from runtime.hooks.environment import hook_environment
from runtime.hooks.matchers import read_matcher
from runtime.hooks.moments import MOMENTS, Moment
from runtime.policy.decision import Decision as Permission

BEFORE = MOMENTS["before_tool"]
STRICT = {"": 0, "allow": 1, "ask": 2, "deny": 3}

moments = st.sampled_from(list(MOMENTS.values()))
words = st.text(max_size=20)
decisions = st.sampled_from(["", "allow", "ask", "deny"])
answers = st.builds(
    Answer,
    decision=decisions,
    reason=words,
    arguments=st.none() | st.dictionaries(words, words, max_size=2),
    result=st.none() | words,
    context=words,
)
permissions = st.builds(
    Permission,
    st.sampled_from(["allow", "ask", "deny"]),
    words,
    st.sampled_from(["built-in", "own: agents/a.md", "ceiling", "protected", "workspace", "--yes", "you", "mode"]),
)


def said(data: Any, moment: Moment = BEFORE) -> Any:
    return read_exit(moment, 0, json.dumps(data).encode(), b"")


def test_a_command_that_says_nothing_decides_nothing() -> None:
    """Exit code 0 without a word leaves the call as it is."""
    assert Answer() == read_exit(BEFORE, 0, b"  \n", b"noise")


def test_exit_code_2_refuses_with_what_stands_on_standard_error() -> None:
    """Exit code 2 refuses with what stands on standard error."""
    assert Answer("deny", "not on a Friday") == read_exit(BEFORE, 2, b"", b"not on a Friday\n")
    assert Answer("deny", "said here") == read_exit(BEFORE, 2, b"said here", b"")
    assert Answer("deny", "no reason given") == read_exit(BEFORE, 2, b"", b"")


@pytest.mark.parametrize("code", [1, 3, 127, 255, -9, -15])
def test_any_other_exit_code_is_a_failure_whatever_was_printed(code: int) -> None:
    """Any other exit code is a failure, whatever was printed."""
    found = read_exit(BEFORE, code, b'{"decision": "allow"}', b"cannot find it")
    assert isinstance(found, Failed)
    assert "cannot find it" in found.why


def test_an_answer_may_allow_refuse_rewrite_and_add() -> None:
    """A JSON answer may allow, refuse, rewrite the arguments and add context."""
    assert Answer("allow", "known") == said({"decision": "allow", "reason": "known"})
    assert Answer("deny", "no") == said({"decision": "block", "reason": "no"})
    assert Answer(arguments={"path": "b"}, context="moved") == said({"arguments": {"path": "b"}, "context": "moved"})


def test_the_answers_of_claude_code_hooks_are_understood() -> None:
    """Answers in the form of Claude Code's hooks mean the same here."""
    specific = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "protected file",
        "additionalContext": "see docs",
    }
    assert Answer("deny", "protected file", None, None, "see docs") == said({"hookSpecificOutput": specific})
    rewritten = {"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "ls"}}}
    assert Answer("allow", "", {"command": "ls"}) == said(rewritten)
    asked = {"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "not now"}}}
    assert Answer("deny", "not now") == said(asked, MOMENTS["approval"])
    assert Answer("deny", "enough") == said({"continue": False, "stopReason": "enough"})
    assert Answer(message="for you") == said({"systemMessage": "for you", "suppressOutput": True})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"decison": "deny"}, "unknown key 'decison'; did you mean 'decision'?"),
        ({"decision": "no"}, "allow, ask or deny"),
        ({"decision": True}, "allow, ask or deny"),
        ({"decision": ["deny"]}, "allow, ask or deny"),
        ({"arguments": "x"}, "its arguments is an object, not str"),
        ({"context": 3}, "its context is text, not int"),
        ({"continue": "no"}, "its continue is true or false"),
        ({"hookSpecificOutput": []}, "its hookSpecificOutput is an object"),
        ({"hookSpecificOutput": {"permissionDecison": "deny"}}, "did you mean 'permissionDecision'?"),
        ({"result": "x"}, "cannot give a result"),
    ],
)
def test_what_cannot_be_understood_is_a_failure_that_says_where(data: Any, words: str) -> None:
    """An answer that cannot be understood is a failure that says where; it never lets a call pass."""
    found = said(data)
    assert isinstance(found, Failed)
    assert words in found.why


@pytest.mark.parametrize(
    "output",
    [b'{"decision": "deny"', b'{"decision": "\xff"}', b'{"arguments": {"n": NaN}}', b"{" * 100_000,
     b'{"reason": "\\ud800", "decision": "deny"}', b'{"a": 1} {"b": 2}'],
)  # fmt: skip
def test_broken_json_is_a_failure(output: bytes) -> None:
    """An answer that begins as JSON and is none is a failure."""
    assert isinstance(read_exit(BEFORE, 0, output, b""), Failed)


def test_an_answer_that_is_too_long_is_a_failure() -> None:
    """An answer of which only a part was taken in is a failure."""
    assert isinstance(read_exit(BEFORE, 0, b'{"decision": "allow"}', b"", cut=True), Failed)
    assert isinstance(read_exit(BEFORE, 2, b"x", b"", cut=True), Answer)


def test_what_a_moment_does_not_heed_is_a_failure() -> None:
    """A moment refuses the parts of an answer that would have no effect at it."""
    for name in ("after_model", "run_finish", "compaction"):
        assert isinstance(said({"decision": "deny", "reason": "r"}, MOMENTS[name]), Failed)
        assert isinstance(said({"context": "c"}, MOMENTS[name]), Failed)
    assert isinstance(said({"arguments": {}}, MOMENTS["after_tool"]), Failed)
    assert Answer(result="new") == said({"result": "new"}, MOMENTS["after_tool"])


def test_plain_text_is_context_where_an_actor_begins_and_a_remark_elsewhere() -> None:
    """Plain text on standard output is context where an actor begins, and only a remark elsewhere."""
    assert Answer(context="It is Monday.") == read_exit(MOMENTS["actor_start"], 0, b"It is Monday.\n", b"")
    assert Answer(message="checked") == read_exit(BEFORE, 0, b"checked\n", b"")


def test_long_context_is_cut() -> None:
    """No answer adds more than MOST_CONTEXT characters."""
    assert MOST_CONTEXT + 1 == len(said({"context": "x" * 50_000}).context)


def test_a_failure_refuses_or_says_nothing_but_never_allows() -> None:
    """A failed hook refuses, or counts as if it were not there; it never allows."""
    assert "deny" == stands_for(Failed("it crashed"), "h", "deny").decision
    assert Answer() == stands_for(Failed("it crashed"), "h", "allow")


@given(moments, st.integers(-20, 300), st.binary(max_size=60), st.binary(max_size=20), st.booleans())
def test_any_bytes_are_an_answer_or_a_failure(
    moment: Moment, code: int, output: bytes, error: bytes, cut: bool
) -> None:
    """Whatever a command prints and however it ends, the answer is one this moment heeds, or a failure."""
    found = read_exit(moment, code, output, error, cut=cut)
    if isinstance(found, Answer):
        assert found.decision in ("", *moment.decisions)
        assert code in (0, 2)


@given(
    moments,
    st.recursive(
        st.none() | st.booleans() | st.integers() | words,
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *("decision", "reason", "arguments", "result", "context", "continue", "hookSpecificOutput"),
                        *("permissionDecision", "updatedInput", "behavior", "other"),
                    ]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=6,
    ),
)
def test_any_data_is_an_answer_or_a_failure(moment: Moment, data: Any) -> None:
    """Whatever a function gives back is an answer this moment heeds, or a failure."""
    found = read_answer(moment, data)
    if isinstance(found, Answer):
        assert found.decision in ("", *moment.decisions)
        assert moment.arguments or found.arguments is None
        assert moment.context or not found.context


@given(st.lists(answers, max_size=6))
def test_the_strictest_of_several_answers_stands(several: list[Answer]) -> None:
    """Of several answers the strictest stands, the first of those that are equally strict gives the reason, and the
    newest arguments count."""
    outcome = Outcome()
    for number, answer in enumerate(several):
        outcome = outcome.then(f"h{number}", answer)
    strictest = max((STRICT[each.decision] for each in several), default=0)
    assert strictest == STRICT[outcome.decision]
    if strictest:
        first = next(at for at, each in enumerate(several) if STRICT[each.decision] == strictest)
        assert (f"h{first}", several[first].reason) == (outcome.by, outcome.reason)
    assert next((each.arguments for each in reversed(several) if each.arguments is not None), None) == outcome.arguments
    assert tuple(each.context for each in several if each.context) == outcome.contexts


@given(permissions, answers, st.booleans())
@settings(max_examples=300)
def test_hooks_only_make_a_decision_stricter_but_for_the_built_in_question(
    permission: Permission, answer: Answer, yes: bool
) -> None:
    """Hooks make a decision stricter; the one exception is the question no rule asks for, which they may answer."""
    after = ruled(permission, Outcome().then("h", answer), yes=yes)
    if STRICT[after.verdict] < STRICT[permission.verdict]:
        assert ("ask", "built-in", "allow") == (permission.verdict, permission.by, answer.decision)
    if permission.verdict == "deny":
        assert permission == after
    if answer.decision == "deny":
        assert "deny" == after.verdict
    if answer.decision == "ask" and permission.verdict == "allow":
        assert after.verdict == ("allow" if yes else "ask")
    if not answer.decision:
        assert permission is after


@pytest.mark.parametrize("by", ["own: agents/a.md", "ceiling: flag", "protected", "hook: other"])
def test_a_hook_cannot_answer_a_question_that_a_rule_asks(by: str) -> None:
    """An ask of a rule, of the ceiling or for files that govern agents stays an ask, whatever a hook allows."""
    permission = Permission("ask", "ask: shell", by)
    assert permission is ruled(permission, Outcome("allow", "fine", "h"))


@pytest.mark.parametrize(
    ("text", "fits", "not_"),
    [
        ("write_file|edit_file", ["write_file", "edit_file"], ["read_file", "write_files"]),
        ("*", ["anything"], []),
        ("", ["anything"], []),
        ("mcp_*", ["mcp_read"], ["read"]),
        ("git_.*", ["git_status"], ["git"]),
        ("Write|Edit", ["write_file", "edit_file", "apply_patch"], ["read_file"]),
        ("Bash", ["shell"], ["Bash"]),
        ("Task", ["delegate_to_writer"], ["await_agent"]),
    ],
)
def test_a_matcher_names_tools_with_stars_and_bars(text: str, fits: list[str], not_: list[str]) -> None:
    """A matcher names tools, several with bars between them and any with stars, by their own names or those of Claude
    Code."""
    matcher = read_matcher(text)
    assert fits == [name for name in [*fits, *not_] if matcher.fits(name)]


@pytest.mark.parametrize("text", ["write file", "(a|b)", "a||b", "^x$", "a.b", "[ab]"])
def test_what_is_no_pattern_of_names_is_refused(text: str) -> None:
    """A matcher that is no pattern of names is refused with an example."""
    with pytest.raises(ValueError, match="no pattern of names"):
        read_matcher(text)


@given(st.dictionaries(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", min_size=1, max_size=12), words, max_size=6))
def test_no_key_is_in_a_hooks_environment(ours: dict[str, str]) -> None:
    """A hook's environment holds what is named as harmless, and no other variable of ours."""
    secrets = {"ANTHROPIC_API_KEY": "k1", "AWS_SECRET_ACCESS_KEY": "k2", "GITHUB_TOKEN": "k3", "MY_PASSWORD": "k4"}
    found = hook_environment(
        {**ours, **secrets, "PATH": "/bin", "LC_ALL": "C"}, run="r1", event="before_tool", workspace="/w"
    )
    assert not set(secrets) & set(found)
    assert ("/bin", "C", "r1", "before_tool", "/w") == tuple(
        found[name] for name in ("PATH", "LC_ALL", "ELENCO_RUN", "ELENCO_EVENT", "ELENCO_WORKSPACE")
    )
    assert cast("set[str]", set()) == {name for name in found if "KEY" in name or "TOKEN" in name}
