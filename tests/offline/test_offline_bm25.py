"""How passages are ranked."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.context.bm25 import Index, prior
from runtime.context.passages import split_file
from runtime.context.terms import question_terms, stems_in


def first(index: Index, query: str) -> str:
    found = index.search(query, 1)[0]
    return f"{found.path}:{found.start_line}"


def test_a_heading_answers_for_the_rows_below_it() -> None:
    """Rows are found by the heading and the table header above them, without a word of the question in them."""
    table = "# Promises\n\n| promise | test |\n|---|---|\n| Ends | a.py |\n| Forgets nothing | b.py |\n"
    index = Index.build([("README.md", table), ("a.py", "# a test of the promise\nx = 1\n")])
    found = index.search("Which promises are tested?", 3)
    assert ["README.md", "README.md", "a.py"] == [passage.path for passage in found]


def test_rare_words_count_more_than_common_ones() -> None:
    """A word few passages hold counts more than one that many hold."""
    text = "\n\n".join(["the queue holds jobs"] * 9 + ["jobs lie in the morgue"])
    assert "a.md:19" == first(Index.build([("a.md", text)]), "morgue queue")


def test_licences_lock_files_and_test_data_come_last() -> None:
    """Licences, change logs, lock files and test data come after everything else, tests after what they test."""
    same = "Words are split at blanks.\n"
    paths = ["LICENSE", "CHANGELOG.md", "poetry.lock", "tests/cases/a.md", "tests/test_a.md", "docs/a.md", "README.md"]
    found = Index.build((path, same) for path in paths).search("How are words split?", 7)
    assert ["README.md", "docs/a.md", "tests/test_a.md"] == [passage.path for passage in found[:3]]
    assert prior("poetry.lock") < prior("tests/test_a.py") < prior("a.py") < prior("docs/a.md") < prior("README.md")


def test_a_named_file_comes_first() -> None:
    """A file that the question names comes first; asked for nothing but itself, it answers with its beginning."""
    index = Index.build(
        [("b.py", '"""Splits words at every single blank character."""\n'), ("README.md", "words, words\n")]
    )
    assert "b.py:1" == first(index, "How does b.py split words?")
    assert ["b.py"] == [passage.path for passage in index.search("What does b.py do?")]


def test_an_exact_name_comes_first() -> None:
    """Whoever holds the very name of a function comes before those that hold its parts."""
    index = Index.build([("a.py", "def read_a_file():\n    read(file)\n"), ("z.py", "def f():\n    read_file()\n")])
    assert "z.py:1" == first(index, "Who calls read_file?")


def test_a_question_without_a_subject_gets_the_first_page() -> None:
    """A question that names no subject is answered from the beginning of the README."""
    readme = "# Heron\n\n[![badge](x)](y)\n\nHeron is a small job queue for a single machine.\n"
    index = Index.build([("LICENSE", "You may use it for what you like, with no end.\n"), ("README.md", readme)])
    assert "README.md:5" == first(index, "What does this project do?")


def test_nothing_matches_nothing() -> None:
    """An empty index, and words nobody wrote, find nothing."""
    assert [] == Index.build([]).search("anything at all")
    assert [] == Index.build([("a.md", "words\n")]).search("zebra")


WORDS = st.sampled_from(["queue", "job", "jobs", "worker", "Lease", "the", "# queue", "- job", "\n\n", "\n"])
FILES = st.dictionaries(st.sampled_from(["a.md", "b.py", "docs/c.md"]), st.lists(WORDS, max_size=12).map(" ".join))


@settings(max_examples=150)
@given(FILES, st.permutations(["a.md", "b.py", "docs/c.md"]), st.sampled_from(["queue job", "lease", "worker jobs"]))
def test_the_order_of_files_makes_no_difference(files: dict[str, str], order: list[str], query: str) -> None:
    """The same files in any order give the same answer."""
    one = Index.build(files.items()).search(query)
    assert one == Index.build((path, files[path]) for path in order if path in files).search(query)
    assert sorted(one, key=lambda each: -each.score) == one


@settings(max_examples=150)
@given(FILES)
def test_frequencies_are_a_plain_count(files: dict[str, str]) -> None:
    """A word's frequency is the number of passages with it in text or heading, and only such passages are found."""
    index = Index.build(files.items())
    every = [each for path, text in files.items() for each in split_file(path, text)]
    for term, count in index.frequencies("queue job lease"):
        assert sum(term.stem in stems_in(f"{each.text} {each.heading}") for each in every) == count
    stems = {term.stem for term in question_terms("queue job lease")}
    for passage in index.search("queue job lease", 100):
        assert stems & set(stems_in(f"{passage.text} {passage.heading}"))
