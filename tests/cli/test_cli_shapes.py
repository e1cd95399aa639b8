"""What is put on a screen, as pure values: nothing obeyed, nothing wider than the terminal, nothing lost from sight."""

from __future__ import annotations

import re
import unicodedata

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.advice import ago, go_on, span
from runtime.cli.card import card, editable, edited, keys, question_card
from runtime.cli.closing import answer, waiting_line
from runtime.cli.faults import excerpt
from runtime.cli.screen import fit, laid_out, last_lines
from runtime.cli.table import columns
from runtime.cli.tally import Tally
from runtime.cli.tree import Row, bar
from runtime.cli.visible import cells, cut, one_line, visible
from runtime.cli.watcher import Watcher
from runtime.errors import Fault
from runtime.events import ActorStarted, ApprovalRequested, Event, ModelRequested, ModelRetried, QuestionAsked, Record
from runtime.journal.overview import overview
from runtime.messages import Usage
from runtime.report import Report

TEXTS = st.text(st.characters(codec=None), max_size=60)
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]"
)


@given(TEXTS)
def test_visible_text_has_nothing_a_terminal_obeys(text: str) -> None:
    """Whatever the text, no control character, direction mark or half surrogate is left; plain text stays as it is."""
    shown = visible(text)
    assert OBEYED.search(shown) is None
    assert shown.encode() is not None
    if OBEYED.search(text) is None:
        assert text == shown


@given(TEXTS, st.integers(1, 80))
def test_one_line_is_one_line_of_that_width(text: str, width: int) -> None:
    """A text on one line has no break and at most the wanted number of characters."""
    shown = one_line(text, width)
    assert "\n" not in shown
    assert len(shown) <= width


@given(TEXTS, st.integers(0, 80))
def test_cut_text_fits_its_columns(text: str, width: int) -> None:
    """However wide its characters are, a cut text needs no more columns than it may."""
    shown = cut(visible(text).replace("\n", " ").replace("\t", " "), width)
    assert sum(
        2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in shown if not unicodedata.combining(char)
    ) <= max(width, 0)


ROWS = st.builds(
    Row,
    st.sampled_from(["", "├ ", "└ ", "│ └ "]),
    st.sampled_from("●✓■✗"),
    st.text("abc-1名", min_size=1, max_size=30),
    st.text("xyz 文", max_size=90),
    st.tuples(*(st.sampled_from(["", "1 step", "90 steps", "~1.2k tokens"]) for _ in range(5))),
)


@given(st.lists(ROWS, max_size=30), st.integers(1, 120))
def test_rows_fit_the_terminal(rows: list[Row], width: int) -> None:
    """Each row is one line, no wider than the terminal, and no row is left out."""
    lines = laid_out(rows, width)
    assert len(rows) == len(lines)
    assert all(cells(line) <= width for line in lines)


@given(st.text("abc \n\t\x1b名", max_size=300), st.integers(2, 40), st.integers(0, 8))
def test_last_lines_fit_and_lose_nothing_but_the_beginning(text: str, width: int, most: int) -> None:
    """What is said is shown in at most so many lines of that width; together they are the end of it."""
    lines = last_lines(text, width, most)
    assert len(lines) <= most
    assert all(cells(line) <= width for line in lines)
    whole = visible(text.rstrip()).expandtabs(4).replace("\n", "")
    assert whole.endswith("".join(lines))


@given(st.floats(0, 2), st.integers(2, 12))
def test_bar_is_full_only_when_all_is_used(share: float, width: int) -> None:
    """A bar has its width; it shows whatever was used, and is full only when nothing is left."""
    found = bar(share, width)
    assert width == len(found)
    assert ("▰" in found) == (share > 0)
    assert ("▱" in found) == (share < 1)


@given(st.lists(ROWS, min_size=1, max_size=40), st.integers(3, 30))
def test_tall_trees_keep_the_root_and_whoever_works(rows: list[Row], most: int) -> None:
    """Where rows do not fit, ended actors go before busy ones, the root stays, and the rest is counted."""
    shown = fit(rows, most)
    assert len(shown) <= most
    assert shown[0] is rows[0]
    if len(rows) <= most:
        assert list(shown) == rows
        return
    hidden = len(rows) - (len(shown) - 1)
    assert f"{hidden} more" == shown[-1].name
    busy = [row for row in rows[1:] if row.mark == "●"]
    if len(busy) < most - 1:
        assert [row for row in shown[1:-1] if row.mark == "●"] == busy


def test_columns_line_up_whatever_their_characters_take() -> None:
    """Wide characters count as two cells."""
    assert "a   x\n名  y" == columns([("a", "x"), ("名", "y")])


@given(st.text(max_size=200), st.integers(1, 250), st.integers(1, 300))
def test_caret_stands_below_what_is_meant(source: str, column: int, width: int) -> None:
    """An excerpt has three lines, no control character, and its carets begin in the column of the fault."""
    source = source.replace("\n", " ").replace("\r", " ")
    lines = excerpt(Fault("a.md", 3, "wrong", min(column, len(source) + 1), source, width)).split("\n")
    if not source.strip():
        assert [f"a.md:3:{min(column, len(source) + 1)}: wrong"] == lines
        return
    assert 3 == len(lines)
    assert OBEYED.search("".join(lines)) is None
    assert "^" in lines[2]
    assert cells(lines[2]) <= max(cells(lines[1]), cells("     | ") + cells(lines[1][7:]) + 1)


def test_excerpt_is_what_a_person_expects() -> None:
    """Path, line and column, the line, a caret as wide as the word."""
    fault = Fault("agents/writer.md", 4, "unknown key 'modle'", 1, "modle: openai/x", 5)
    assert "agents/writer.md:4:1: unknown key 'modle'\n   4 | modle: openai/x\n     | ^^^^^" == excerpt(fault)


def request(**arguments: object) -> ApprovalRequested:
    return ApprovalRequested(actor="a/b-1", id="a1", call_id="c", name="tool", arguments=arguments, why="rule")


@given(st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.lists(TEXTS, max_size=3)), max_size=4), TEXTS, TEXTS)
def test_card_shows_everything_and_obeys_nothing(arguments: dict[str, object], why: str, preview: str) -> None:
    """Whatever a model puts into a call, its card ends with the keys and has nothing a terminal obeys."""
    asked = ApprovalRequested(
        actor="a/b-1", id="a1", call_id="c", name="tool", arguments=arguments, why=why, preview=preview, always=(why,)
    )
    shown = card(asked)
    assert shown.startswith("? b-1 asks (a1)    tool")
    assert shown.endswith(keys(asked))
    assert OBEYED.search(shown) is None


def test_scopes_are_offered_where_they_would_allow_something() -> None:
    """`r` and `a` are choices only for calls that a grant can cover; the card says which calls these are."""
    assert "  y once   e edit   s stop run   or type why not" == keys(request())
    always = ApprovalRequested(
        actor="a", id="a1", call_id="c", name="shell", arguments={}, why="", always=("shell(touch notes.md)",)
    )
    assert "  y once   r in this run   a always `shell(touch notes.md)` here   e edit" in keys(always)


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_question_is_shown_with_its_options_numbered(text: str, options: list[str]) -> None:
    """Who asks and what, each option by its number; nothing in it is obeyed by the terminal."""
    shown = question_card(QuestionAsked(actor="a/b-1", id="q1", call_id="c", text=text, options=tuple(options)))
    assert shown.startswith("? b-1 asks you (q1)    ")
    assert OBEYED.search(shown) is None
    assert all(f"\n    {number}  " in shown for number in range(1, len(options) + 1))


def test_long_arguments_are_folded_with_a_count() -> None:
    """A text of many lines is shown by its first lines, and the rest is counted."""
    shown = card(request(path="x", content="line\n" * 40))
    assert '    tool  path="x"' in shown.split("\n")[0]
    assert "    content: 40 lines, 200 characters" in shown
    assert "      | … 28 more lines" in shown
    assert f"      | {'x' * 200}…" in card(request(path="x", content="x" * 201)).split("\n")


@pytest.mark.parametrize(
    ("arguments", "typed", "expected"),
    [
        ({"command": "ls"}, "ls -la", {"command": "ls -la"}),
        ({"command": "ls"}, '{"command": "rm x"}', {"command": "rm x"}),
        ({"a": 1, "b": 2}, '{"a": 3}', {"a": 3}),
    ],
)
def test_arguments_can_be_typed_again(arguments: dict[str, object], typed: str, expected: dict[str, object]) -> None:
    """One text argument is typed as it is, anything else as JSON."""
    assert expected == edited(arguments, typed)
    assert arguments == edited(arguments, editable(arguments))


@pytest.mark.parametrize("typed", ["{", "[1]", "nonsense", '"x"'])
def test_what_is_no_object_is_no_argument(typed: str) -> None:
    """Typing anything but an object in place of several arguments is refused."""
    with pytest.raises(ValueError):
        edited({"a": 1, "b": 2}, typed)


def test_tally_says_what_was_done() -> None:
    """Files count once each, delegations not at all, failures apart."""
    tally = Tally()
    for name, path in (("read_file", "a"), ("read_file", "a"), ("read_file", "b"), ("write_file", "c")):
        tally.count(name, {"path": path}, False)
    for name in ("search_text", "search_passages", "delegate_to_writer", "await_agent", "shell", "other"):
        tally.count(name, None, False)
    tally.count("shell", None, True)
    assert "2 files, 2 searches, 1 file changed, 1 command, 1 other call, 1 failed" == str(tally)
    assert "" == str(Tally())


def test_times_are_said_as_people_say_them() -> None:
    """Spans and moments in the unit that fits."""
    assert ["0.4 s", "38 s", "2:05 min", "1:02:05 h"] == [span(seconds) for seconds in (0.4, 38, 125, 3725)]
    now = 1_000_000.0
    moments = [ago(now - back, now) for back in (5, 120, 7200, 90_000, 400_000)]
    assert ["now", "2 min ago", "2 h ago", "yesterday", "5 days ago"] == moments


def test_the_way_on_fits_the_reason() -> None:
    """Each limit has its flag; what has none is simply resumed."""
    assert "elenco resume k7f2 --max-steps +20" == go_on("k7f2", "max_steps")
    assert "elenco resume k7f2 --timeout +600" == go_on("k7f2", "deadline")
    assert "elenco resume k7f2" == go_on("k7f2", "loop")


def test_answers_say_when_they_are_partial_or_missing() -> None:
    """A completed answer stands alone; a stopped one has its reason in front, and is never silently empty."""
    report = Report("completed", "It is so.\n", Usage(), 0.0, 1)
    assert "It is so." == answer(report)
    stopped = Report("stopped", "So far.", Usage(), 0.0, 1, "max_steps")
    assert "Partial answer (stopped by max_steps):\nSo far." == answer(stopped)
    assert "No answer (stopped by loop)." == answer(Report("stopped", "", Usage(), 0.0, 1, "loop"))
    assert "" == answer(Report("failed", "", Usage(), 0.0, 1))


def test_waiting_line_names_all_and_the_first_to_type() -> None:
    """Several questions are all named; the commands are for the first."""
    question = QuestionAsked(actor="coordinator", id="q1", call_id="c", text="Which?")
    shown = waiting_line("m3qa", (request(), question))
    assert shown.startswith('waiting: a1 (b-1, tool), q1 (coordinator, "Which?")   elenco approve m3qa a1 | ')
    assert shown.endswith("   then elenco resume m3qa")
    assert 'elenco answer m3qa q1 "…"' in waiting_line("m3qa", (question,))


def test_who_sleeps_before_a_retry_says_so() -> None:
    """Between two tries an agent waits to try again; once it has asked, it waits for its model."""
    watcher = Watcher("changes")
    begun = ActorStarted(
        actor="w", agent="w", number=0, parent=None, task="t", model="lab/x", limits={}, prompt=(), tools=()
    )

    def told(*events: Event) -> str:
        seq = watcher.state.seq
        watcher.take([Record(seq + number, 100.0, event) for number, event in enumerate(events, 1)])
        return watcher.still(100.0)

    asked = ModelRequested(actor="w", turn=0, model="lab/x")
    failed = ModelRetried(actor="w", turn=0, kind="rate_limit", wait=3.0, limit=4)
    assert "… w: waits to try again (2 of 4)" == told(begun, asked, failed)
    (actor,) = overview(watcher.state)["actors"]
    assert ("retrying", [{"kind": "retry", "id": "2 of 4"}]) == (actor["doing"], actor["waits_for"])
    assert "… w waits for the model, 0 s" == told(attrs.evolve(asked, attempt=1))
    assert "… w: waits to try again (3 of 4)" == told(attrs.evolve(failed, attempt=1))
