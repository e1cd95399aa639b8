"""How a line is read: words, quoting, expansions, lists, redirections, and what is not shell at all."""

from __future__ import annotations

import pytest

from runtime.policy.shell import read_line

Argv = tuple[str, ...]
NONE: set[str] = set()
NO_COMMAND: set[Argv] = set()


def commands(text: str) -> tuple[Argv, ...]:
    return read_line(text).commands


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("a b  c\td", ("a", "b", "c", "d")),
        ("a'b c'd", ("ab cd",)),
        ('a "b $c" d', ("a", "b $c", "d")),
        ('a "\\$b \\" \\x \\\\"', ("a", '$b " \\x \\')),
        ("a \\b\\ c", ("a", "b c")),
        ("a \\\n b", ("a", "b")),
        ("a\\\nb", ("ab",)),
        ("a ''", ("a", "")),
        ('a ""', ("a", "")),
        ("a $'\\x41\\102\\n\\'\\u00e9'", ("a", "AB\n'é")),
        ('a $"b"', ("a", "b")),
        ("a '$(b)' \\`c\\`", ("a", "$(b)", "`c`")),
        ("a b#c", ("a", "b#c")),
        ("a # c", ("a",)),
        ("a ${b:-c d}", ("a", "${b:-c d}")),
        ("a $((1 + (2)))x", ("a", "$((1 + (2)))x")),
        ("a $ b", ("a", "$", "b")),
        ("a {} {b} b,c}", ("a", "{}", "{b}", "b,c}")),
        ("a b=c", ("a", "b=c")),
        ("[ a = b ]", ("[", "a", "=", "b", "]")),
        ("a HEAD@{1} x^ y~2", ("a", "HEAD@{1}", "x^", "y~2")),
        ("a\xa0b", ("a\xa0b",)),
        ("a\r", ("a\r",)),
    ],
)
def test_words_are_what_the_shell_makes_of_them(text: str, argv: Argv) -> None:
    """Words are what the shell makes of them."""
    assert (argv,) == commands(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a,b} c", ("a", "b", "c")),
        ("a x{b,c{d,e}}y", ("a", "xby", "xcdy", "xcey")),
        ("a {1..3}", ("a", "1", "2", "3")),
        ("a {08..10}", ("a", "08", "09", "10")),
        ("a {3..1..2}", ("a", "3", "1")),
        ("a {b..d}", ("a", "b", "c", "d")),
        ("a {b,'c,d'}", ("a", "b", "c,d")),
        ("a {b,$c}", ("a", "b", "$c")),
        ("a {b,{c}", ("a", "{b,{c}")),
        ("a {,b}", ("a", "", "b")),
    ],
)
def test_braces_are_expanded_as_the_shell_does_it(text: str, expected: Argv) -> None:
    """Braces are expanded as the shell does it."""
    assert expected == commands(text)[-1]


def test_very_many_words_from_braces_ask() -> None:
    """Very many words from braces ask."""
    for text in ("a {1..1000}", "a " + "{a,b}" * 7, "a " + "{1..1}" * 500, "a " + "{a," * 3000):
        assert read_line(text).notes or read_line(text).flags


COMMANDS: list[tuple[str, set[Argv], set[str]]] = [
    ("a && b || c; d", {("a",), ("b",), ("c",), ("d",)}, {"chain"}),
    ("a | b |& c", {("a",), ("b",), ("c",)}, {"pipe"}),
    ("a & b &", {("a",), ("b",)}, {"background"}),
    ("a;", {("a",)}, NONE),
    ("(a; b)", {("a",), ("b",)}, {"chain", "subshell"}),
    ("{ a; }", {("a",)}, NONE),
    ("if a; then b; elif c; then d; else e; fi", {(x,) for x in "abcde"}, {"control_flow"}),
    ("while a; do b; done | c", {("a",), ("b",), ("c",)}, {"control_flow", "pipe"}),
    ("for x in 1 2; do a; done", {("a",)}, {"control_flow"}),
    ("for x; { a; }", {("a",)}, {"control_flow"}),
    ("for ((i=0; i<3; i++)); do a; done", {("a",)}, {"control_flow"}),
    ("case x in a|b) c;; (d) e;& *) f; esac", {("c",), ("e",), ("f",)}, {"control_flow"}),
    ("select x in a; do b; done", {("b",)}, {"control_flow"}),
    ("f() { a; }", {("a",)}, {"function_def"}),
    ("function f { a; } > x", {("a",)}, {"function_def", "redirect_write"}),
    ("! time -p a", {("a",)}, NONE),
    ("time", NO_COMMAND, NONE),
    ("coproc a", {("a",)}, {"background"}),
    ("coproc x { a; }", {("a",)}, {"background"}),
    ("[[ a == b* && ( -n $(c) || ! d < e ) ]]", {("c",)}, {"substitution"}),
    ("[[ $x =~ ^(a|b)+$ ]] && c", {("c",)}, {"chain"}),
    ("((a > 1)) && b", {("b",)}, {"chain"}),
    ("a $(b | c)", {("a", "$(b | c)"), ("b",), ("c",)}, {"substitution", "pipe"}),
    ("a `b \\`c\\``", {("a", "`b \\`c\\``"), ("b", "`c`"), ("c",)}, {"substitution"}),
    ("a <(b) >(c)", {("a", "<(b)", ">(c)"), ("b",), ("c",)}, {"process_substitution"}),
    ("a ${x:-$(b)}", {("a", "${x:-$(b)}"), ("b",)}, {"substitution"}),
    ('a "${x:-`b`}"', {("a", "${x:-`b`}"), ("b",)}, {"substitution"}),
    ("a $((x[$(b)]))", {("a", "$((x[$(b)]))"), ("b",)}, {"substitution"}),
    ("a $[$(b)]", {("a", "$[$(b)]"), ("b",)}, {"substitution"}),
    ('a "$\\\n(b)"', {("a", "$(b)"), ("b",)}, {"substitution"}),
    ("x=1 a", {("a",)}, {"variable_assignment"}),
    ("x=(1 $(a)) y+=2 z[$(b)]=3", {("a",), ("b",)}, {"variable_assignment", "substitution"}),
    ("declare -a x=($(a))", {("declare", "-a", "x="), ("a",)}, {"variable_assignment", "substitution"}),
    ("a *.x [b]? c", {("a", "*.x", "[b]?", "c")}, {"glob"}),
    ("a '*' \\*", {("a", "*", "*")}, NONE),
    ("$(a)", {("$(a)",), ("a",)}, {"substitution"}),
    (
        "a $(case x in y) b;; esac) c",
        {("a", "$(case x in y) b;; esac)", "c"), ("b",)},
        {"substitution", "control_flow"},
    ),
    ("a $(b # )\nc)", {("a", "$(b # )\nc)"), ("b",), ("c",)}, {"substitution", "chain"}),
]


@pytest.mark.parametrize(
    ("text", "expected", "flags"),
    COMMANDS,
)
def test_every_command_is_found_wherever_it_stands(text: str, expected: set[Argv], flags: set[str]) -> None:
    """Every command is found wherever it stands."""
    assert expected == set(commands(text))
    assert flags == set(read_line(text).flags)


WRITES: list[tuple[str, Argv, set[str]]] = [
    ("a > b >> c 2>| d", ("b", "c", "d"), {"redirect_write"}),
    ("a &> b &>> c >& d", ("b", "c", "d"), {"redirect_write"}),
    ("a 2>&1 >&2 2>&- 3<&0", (), NONE),
    ("a > /dev/null 2>/dev/null", (), NONE),
    ("a >&-b", (), NONE),
    ("a < b", (), {"redirect_read"}),
    ("a <> b", ("b",), {"redirect_read", "redirect_write"}),
    ("a > $b", (), {"redirect_write"}),
    ("a > *.b", (), {"redirect_write"}),
    ("a > 'b c'", ("b c",), {"redirect_write"}),
    ("> a", ("a",), {"redirect_write"}),
    ("{ a; } > b", ("b",), {"redirect_write"}),
    ("a {x}> b", ("b",), {"redirect_write"}),
    ("[ a > b ]", ("b",), {"redirect_write"}),
    ("[[ a > b ]]", (), NONE),
    ("((a > b))", (), NONE),
    ("a '>' b", (), NONE),
    ("a > >(b)", (), {"redirect_write", "process_substitution"}),
    ("a <<< b", (), {"heredoc"}),
    ("a <<E > b\nc > d\nE", ("b",), {"heredoc", "redirect_write"}),
]


@pytest.mark.parametrize(
    ("text", "writes", "flags"),
    WRITES,
)
def test_every_file_written_is_found(text: str, writes: Argv, flags: set[str]) -> None:
    """Every file written is found."""
    line = read_line(text)
    assert writes == line.writes
    assert flags == set(line.flags)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <<E\n$(b)\nE\nc", {("a",), ("b",), ("c",)}),
        ("a <<'E'\n$(b)\nE\nc", {("a",), ("c",)}),
        ("a <<\\E\n$(b)\nE", {("a",)}),
        ("a <<-E\n\t`b`\n\tE\nc", {("a",), ("b",), ("c",)}),
        ("a <<E; c\n\\$(b) \\`d\\`\nE", {("a",), ("c",)}),
        ("a <<E <<F\nx\nE\n$(b)\nF\nc", {("a",), ("b",), ("c",)}),
        ("a <<E\nx\\\nE\n$(b)\nE", {("a",), ("b",)}),
        ('a "$(b <<E\n$(c)\nE\n)"', {("a", "$(b <<E\n$(c)\nE\n)"), ("b",), ("c",)}),
    ],
)
def test_a_here_document_runs_only_what_is_expanded_in_it(text: str, expected: set[Argv]) -> None:
    """A here-document runs only what is expanded in it."""
    assert expected == set(commands(text))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "'a",
            '"a',
            "`a",
            "$(a",
            "${a",
            "$((1",
            "((1)",
            "(a",
            "{ a",
            "a )",
            "a | | b",
            "a ; ; b",
            "; a",
            "& a",
            "a && ",
        ),
        *(
            "if a; then b",
            "if a then b; fi",
            "fi",
            "while a; b; done",
            "for in a; do b; done",
            "case x in a) b",
            "esac",
        ),
        *("a <", "a > > b", "a <<E\nb", "a <<$x\nb\n$x", "f( ) a", "f() a", "a (b)", "a !(b)", "[[ a", "[[ a b ]]"),
        *("[[ ]]", "${ a; }", "a ${x@Z}", "a $'\\0'", "a\\", "a[ # ]=1; b", "a[b c]=1", "a \"${x:-'}'}\"", "a\0b"),
        *(
            "$((ls); (a))",
            "a <<E `b\nE\nc`",
            'a <<E "b\nE\n"',
            "a <<E $(b\nE\n)",
            "coproc fi",
            "a | ! b",
            "() a",
            "{}}",
        ),
    ],
)
def test_what_is_no_shell_or_not_certain_asks(text: str) -> None:
    """What is no shell or not certain asks."""
    line = read_line(text)
    assert line.notes or "unparsable" in line.flags or not commands(text) or commands(text)[0][0] == "{}}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("( ", " )"),
        ("$(", ")"),
        ('a "$(', ')"'),
        ("{ ", "; }"),
        ("if ", "; then a; fi"),
        ("a <(", ")"),
        ("a ${x:-", "}"),
        ("$((1+", "))"),
        ("[[ ( ", " ) ]]"),
        ("f() { ", "; }"),
        ("a[$(", ")]=1"),
    ],
)
def test_deep_nesting_asks(before: str, after: str) -> None:
    """Deep nesting asks."""
    assert "unparsable" in read_line(before * 100 + "a" + after * 100).flags


@pytest.mark.parametrize(
    "part", ["(", "$(", "{ ", "`", "[[ ", "${x:-", "$((", "if ", "! ", "env ", "eval ", "{a,", "((1+"]
)
def test_a_very_long_line_of_openings_is_answered(part: str) -> None:
    """A very long line of openings is answered."""
    line = read_line(part * 10_000)
    assert line.notes


def test_more_text_than_anybody_reads_asks() -> None:
    """More text than anybody reads asks."""
    assert "unparsable" in read_line("a " * 50_000).flags
