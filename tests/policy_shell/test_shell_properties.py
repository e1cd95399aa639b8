"""Properties of the verdict: deny wins wherever it might run, allowed commands may be joined, nothing breaks it."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runtime.policy.shell import judge, read_line

EVERYTHING = (("*",),)
RM = (("rm", "*"),)

Around = Callable[[str], str]

# What runs the command that is given as its arguments, and what may stand first in a simple command.
WRAPPERS = [
    *(
        "env ",
        "env -i A=b ",
        "nohup ",
        "nice -n 5 ",
        "timeout -k 1 5 ",
        "sudo -u x ",
        "command ",
        "exec ",
        "xargs -n1 ",
    ),
    *("builtin ", "stdbuf -oL ", "setsid ", "busybox ", "find . -exec ", "doas ", "ionice -c 3 ", "eval ", "npx "),
    *("taskset 1 ", "flock l ", "strace -f ", "watch -n 1 "),
]
FIRST = ["time ", "time -p ", "! ", "A=b ", "> f ", "2>&1 ", "coproc ", "", ""]
# What runs any list of commands.
AROUND_LIST: list[Around] = [
    lambda inner: f"ls; {inner}",
    lambda inner: f"{inner} && ls",
    lambda inner: f"ls || {inner}",
    lambda inner: f"ls | ( {inner} )",
    lambda inner: f"ls & {inner}",
    lambda inner: f"ls\n{inner}",
    lambda inner: f"ls # x\n{inner}",
    lambda inner: f"( {inner} )",
    lambda inner: f"{{ {inner}; }} 2>&1",
    lambda inner: f"echo $( {inner})",
    lambda inner: f'echo "a $( {inner}) b"',
    lambda inner: f"echo `{inner.replace(chr(92), chr(92) * 2).replace('`', chr(92) + '`')}`",
    lambda inner: f"cat <( {inner})",
    lambda inner: f"ls > >( {inner})",
    lambda inner: f"if {inner}; then ls; fi",
    lambda inner: f"if ls; then ls; else {inner}\nfi",
    lambda inner: f"while ls; do {inner}; done < f",
    lambda inner: f"for x in a b; do {inner}; done",
    lambda inner: f"for x in $( {inner}); do ls; done",
    lambda inner: f"case x in y) ls;; *) {inner};; esac",
    lambda inner: f"f() {{ {inner}; }}",
    lambda inner: f"[[ -n $( {inner}) ]]",
    lambda inner: f"echo ${{x:-$( {inner})}}",
    lambda inner: f"echo $((1 + $( {inner})))",
    lambda inner: f"x=$( {inner})",
    lambda inner: f"sh -c {shlex.quote(inner)}",
    lambda inner: f"bash -lc {shlex.quote(inner)}",
    lambda inner: f"eval {shlex.quote(inner)}",
    lambda inner: f"su root -c {shlex.quote(inner)}",
    lambda inner: f"trap {shlex.quote(inner)} EXIT",
    lambda inner: f"env -u A sh -c {shlex.quote(inner)}",
    lambda inner: f"echo {shlex.quote(inner)} | sh",
]

REMOVES = ["rm x", "rm -rf /", "'rm' x", "r\\m x", "/bin/rm x", "$'\\x72m' x", "rm", "r''m $y", "{rm,x}", "x=rm; $x y"]


@st.composite
def lines_that_remove(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(REMOVES))
    if not text.startswith(("{", "x=")):
        for before in draw(st.lists(st.sampled_from(WRAPPERS), max_size=2)):
            text = before + text
        text = draw(st.sampled_from(FIRST)) + text
        if text.count("find ") == 1:
            text += " \\;"
        elif "find " in text:
            text = "find . -exec rm {} +"
    for around in draw(st.lists(st.sampled_from(AROUND_LIST), max_size=4)):
        text = around(text)
    return text


@given(lines_that_remove())
@settings(max_examples=400)
def test_a_denied_command_is_never_allowed_however_it_is_composed(text: str) -> None:
    """A denied command is never allowed, however it is composed; it is denied."""
    assert "deny" == judge(text, allow=EVERYTHING, ask=(), deny=RM).verdict


HARMLESS = [
    "ls -la",
    "git status",
    "cat 'a b'",
    "grep -n 'x; rm y' f",
    "[[ -f x ]]",
    "wc -l < f",
    'echo "$x" 2>&1',
    "ls *.py",
]
ALLOWED = (*((name, "*") for name in ("ls", "cat", "grep", "wc", "echo")), ("git", "status"))
JOINTS = ["; ", ";", " && ", "&&", " || ", " | ", "|", "\n", " & ", " |\n", " &&\n  "]


@given(st.lists(st.tuples(st.sampled_from(HARMLESS), st.sampled_from(JOINTS)), min_size=1, max_size=8))
@settings(max_examples=200)
def test_allowed_commands_may_be_joined(parts: list[tuple[str, str]]) -> None:
    """Allowed commands may be joined by any operator; the line is allowed if it runs anything."""
    text = "".join(part + joint for part, joint in parts) + "ls"
    assert "allow" == judge(text, allow=ALLOWED, ask=(), deny=RM).verdict


@given(
    st.lists(st.sampled_from(HARMLESS[:4]), min_size=1, max_size=4), st.sampled_from(JOINTS), st.sampled_from(REMOVES)
)
@settings(max_examples=100)
def test_one_command_that_no_rule_allows_is_enough_to_ask(parts: list[str], joint: str, other: str) -> None:
    """One command that no rule allows is enough to ask."""
    text = joint.join([*parts, other.replace("; ", joint)])
    assert "ask" == judge(text, allow=ALLOWED, ask=(), deny=()).verdict


PIECES = [
    *(
        "rm x",
        "ls",
        "$(",
        "`",
        "'",
        '"',
        "\\",
        "\n",
        "\\\n",
        ";",
        "&",
        "&&",
        "|",
        "(",
        ")",
        "{ ",
        "; }",
        "$",
        "${x:-",
        "}",
    ),
    *(
        "[",
        "]",
        "a[",
        "x=",
        "<",
        ">",
        "<<E\n",
        "E\n",
        "\nE\n",
        "<<<",
        ">&",
        "#",
        " # ",
        "$((",
        "))",
        "((",
        "[[ ",
        " ]]",
    ),
    *(
        "if ",
        "then ",
        "fi",
        "for x in ",
        "do ",
        "done",
        "case x in ",
        "esac",
        ";;",
        "*",
        "?",
        "{a,b}",
        "$'",
        "~",
        "time ",
    ),
    *(
        "f() ",
        "<(",
        " ",
        "env ",
        "sh -c ",
        "xargs ",
        "eval ",
        "find . -exec ",
        "!",
        "@P}",
        "-c ",
        "é",
        "\r",
        "\x01",
        "1",
        "+",
    ),
]
soup = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@given(st.one_of(soup, st.text(max_size=60)))
@settings(max_examples=500)
@example("\ud800 \udcff")
@example("\0")
def test_no_text_breaks_the_judge(text: str) -> None:
    """No text breaks the judge, and what one rule allows has no other command in it."""
    verdict = judge(text, allow=(("ls", "*"),), ask=(), deny=()).verdict
    assert verdict in ("allow", "ask")
    line = read_line(text)
    if verdict == "allow":
        assert all(argv[0] == "ls" for argv in line.commands)
        assert not {"substitution", "redirect_write", "eval_like", "unparsable"} & set(line.flags)


@given(soup)
@settings(max_examples=300)
def test_what_is_denied_for_one_is_not_allowed_for_another(text: str) -> None:
    """More allow rules never turn a deny into anything else, and more deny rules never allow more."""
    order = ("allow", "ask", "deny")
    bare = order.index(judge(text, allow=(), ask=(), deny=RM).verdict)
    assert (bare == 2) == ("deny" == judge(text, allow=EVERYTHING, ask=(), deny=RM).verdict)
    free = order.index(judge(text, allow=EVERYTHING, ask=(), deny=()).verdict)
    assert free <= order.index(judge(text, allow=EVERYTHING, ask=(), deny=RM).verdict)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(st.lists(words, max_size=6), words)
@settings(max_examples=300)
def test_words_quoted_for_the_shell_come_back_as_they_were(rest: list[str], name: str) -> None:
    """Words quoted for the shell come back as they were."""
    argv = (f"x{name}", *rest)
    assert argv in read_line(shlex.join(argv)).commands


@pytest.mark.parametrize("around", AROUND_LIST)
def test_the_harmless_command_in_the_same_place_is_not_denied(around: Around) -> None:
    """The harmless command in the same place is not denied."""
    assert "deny" != judge(around("ls rmdir"), allow=EVERYTHING, ask=(), deny=RM).verdict
