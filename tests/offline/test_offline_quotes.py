"""Cutting quotes, checking them, and handing them over as text."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.bm25 import Index
from runtime.context.found import read_found, render_found
from runtime.providers.offline_handover import Findings, read_findings, render_findings
from runtime.providers.offline_quotes import Quote, cut_quote, fold, is_verbatim

TEXT = st.text(st.sampled_from("ab queue job.\"'| -#>*`é\t[…]:()_"), max_size=400)


def quote(path: str, *lines: str, words: str = "") -> str | None:
    found = cut_quote(path, dict(enumerate(lines, 1)), "", dict.fromkeys(words.split(), 1.0))
    return found.text if found is not None else None


def test_a_short_paragraph_is_quoted_whole() -> None:
    """A short paragraph is quoted whole, its line breaks folded, without its bullet."""
    assert "Words are separated by blanks." == quote("a.md", "- Words are", "  separated by blanks.")


def test_of_a_long_paragraph_the_best_sentence_is_quoted() -> None:
    """Of a long paragraph the sentence that fits best is quoted, with what there is room for."""
    filler = "This sentence is about something else and rather long for what it says to anybody who reads on. "
    found = quote("a.md", filler * 2 + "The queue holds jobs. " + filler * 2, words="queue job")
    assert found is not None
    assert "The queue holds jobs." in found
    assert len(found) <= 220


def test_of_code_the_line_that_fits_is_quoted() -> None:
    """Of code one to three lines are quoted; lines that only import are not."""
    assert "return s.split()" == quote("parse.py", "def parse(s):", "    return s.split()", words="split")
    assert quote("a.py", "from queue import (", "    job,", ")", words="queue job") is None


def test_a_row_is_quoted_cell_by_cell() -> None:
    """A table row is quoted whole, each long cell cut by itself, so that none is lost."""
    found = quote("a.md", "| Ends | " + "very " * 60 + "| `tests/test_a.py` |")
    assert found is not None
    assert found.startswith("Ends | very very")
    assert found.endswith("[…] | `tests/test_a.py`")


@settings(max_examples=300)
@given(st.lists(TEXT, min_size=1, max_size=6), st.sampled_from(["a.md", "a.py", "a.toml", "README"]))
def test_every_quote_is_verbatim(lines: list[str], path: str) -> None:
    """Whatever stands in a file, what is cut out of it stands there word for word within the quote's own lines."""
    numbered = {number: line.replace("\n", " ") for number, line in enumerate(lines, 1)}
    found = cut_quote(path, numbered, "", {"queue": 1.0, "job": 2.0})
    if found is not None and found.text.replace("[…]", "").strip():
        assert is_verbatim(found.text, "\n".join(numbered[each] for each in range(found.line, found.end + 1)))


def test_a_changed_word_is_not_verbatim() -> None:
    """White space may differ; a word, an order or an empty quote may not."""
    text = "Words are\n   separated by  blanks."
    assert is_verbatim("Words are separated […] blanks.", text)
    assert not is_verbatim("Words were separated", text)
    assert not is_verbatim("blanks. […] Words", text)
    assert not is_verbatim("[…]", text)


FOLDED = TEXT.map(fold).filter(bool)
QUOTES = st.builds(
    Quote,
    path=st.sampled_from(["a.py", "docs/my page.md", "x:1.md"]),
    line=st.integers(1, 99),
    end=st.integers(100, 200),
    text=FOLDED,
    heading=st.sampled_from(["", "A > B", "promise | test", "They are:"]),
    weak=st.booleans(),
)
FINDINGS = st.builds(
    Findings,
    question=st.sampled_from(["How are words split?", "x"]),
    quotes=st.lists(QUOTES, max_size=4).map(tuple),
    files_read=st.integers(0, 9),
    missing=st.sampled_from([(), ("quoting",), ("quoting", "OAuth")]),
    reread=st.one_of(st.none(), st.integers(0, 9)),
    left_out=st.integers(0, 2),
)


@settings(max_examples=200)
@given(FINDINGS, st.integers(0, 5))
def test_findings_survive_being_handed_over(findings: Findings, dropped: int) -> None:
    """Findings come back from their text as they were, whatever is quoted, also after a sentence in front."""
    given_away = attrs.evolve(findings, dropped=dropped if findings.reread is not None else 0, closed=True)
    assert given_away == read_findings(render_findings(given_away, "Check these."))
    partial = f"researcher-1 was stopped (max_steps): 3 of 3\n\nIts partial work:\n{render_findings(given_away)}"
    assert given_away == read_findings(partial)


def test_any_other_text_is_the_question_itself() -> None:
    """A task that is no hand-over is itself the question."""
    assert Findings("How are words split?") == read_findings("How are\nwords split?")


FILES = st.dictionaries(st.sampled_from(["a.md", "b c.py", "d:1-2.md"]), TEXT, max_size=3)


@settings(max_examples=150)
@given(FILES, st.sampled_from(["queue job", "zebra", "what is this?"]))
def test_a_search_survives_being_shown(files: dict[str, str], query: str) -> None:
    """What a search found comes back from its text: passages, counts and totals."""
    index = Index.build(files.items())
    found = index.search(query)
    text = render_found(found, index.frequencies(query), index.passage_count, len(index.files))
    back = read_found(text)
    places = [(each.path, each.start_line, each.end_line, each.text) for each in back.passages]
    assert [(each.path, each.start_line, each.end_line, each.text) for each in found] == places
    assert [count for _, count in index.frequencies(query)] == [count for _, count in back.counts]
    assert len(index.files) == back.file_count


@pytest.mark.parametrize("noise", ["", "\n\nnote: you have asked this before", "\n[... 9 characters left out ...]"])
def test_a_note_behind_a_search_does_no_harm(noise: str) -> None:
    """What the runtime adds behind a result does no harm."""
    index = Index.build([("a.md", "words\n")])
    text = render_found(index.search("words"), index.frequencies("words"), 1, 1)
    assert read_found(text) == read_found(text + noise)
