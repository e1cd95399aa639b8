"""The store of facts, held against the naive one; many processes, damage, other versions, and what is left on disk."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from runtime.context.terms import question_terms, subjects
from runtime.memory.fact import MOST_CHARS, MOST_FACTS, Fact, objection, tidy
from runtime.memory.store import Call, FactStore, MemoryUnusable, NoFact
from runtime.memory.words import asked, every, indexed

WORDS = ("test", "tests", "Testing", "deploy", "key", "the", "C", "naïve", "日本語", 'a"b', "AND", "NEAR(", "*", "x:y")
TEXTS = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.text(min_size=1, max_size=20)
)
PLACES = st.sampled_from(("/a", "/b", ""))


@attrs.frozen
class Known:
    text: str
    workspace: str


class Naive(RuleBasedStateMachine):
    """The store beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        # In memory where there is such a place: the disk's own slowness is not what is looked at here.
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.store = FactStore(Path(self.folder.name) / "memory.db")
        self.facts: dict[int, Known] = {}
        self.calls: dict[tuple[str, str, str], int] = {}
        self.last = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(text=TEXTS, place=PLACES, number=st.integers(0, 3))
    def remember(self, text: str, place: str, number: int) -> None:
        if not (text := tidy(text)):
            return
        call = Call("run", f"c{number}", f"{place} {text}")
        kept = self.store.remember(text, workspace=place, at=1.0, call=call, actor="lead")
        done = self.calls.get(call.key)
        same = [id for id, known in self.facts.items() if known == Known(text, place)]
        if done is not None:
            assert "again" == kept.outcome
            assert self.facts.get(done) == (kept.fact and Known(kept.fact.text, kept.fact.workspace))
            return
        assert kept.fact is not None
        assert ("known" if same else "new") == kept.outcome
        if same:
            assert same == [kept.fact.id]
        else:
            assert kept.fact.id > self.last, "an id is never used twice"
            self.last = kept.fact.id
        self.facts[kept.fact.id] = Known(text, place)
        self.calls[call.key] = kept.fact.id

    @rule(number=st.integers(0, 12), text=TEXTS)
    def edit(self, number: int, text: str) -> None:
        fact = self.store.get(number)
        if fact is None or not (text := tidy(text)):
            return
        known = Known(text, fact.workspace)
        if any(id != number and each == known for id, each in self.facts.items()):
            with pytest.raises(NoFact):
                self.store.edit(fact, text, 2.0)
            return
        assert attrs.evolve(fact, text=text, edited=2.0) == self.store.edit(fact, text, 2.0)
        self.facts[number] = known

    @rule(numbers=st.sets(st.integers(1, 12), max_size=3))
    def forget(self, numbers: set[int]) -> None:
        facts = [fact for number in numbers if (fact := self.store.get(number)) is not None]
        assert facts == self.store.forget(facts, 3.0)
        for fact in facts:
            del self.facts[fact.id]

    @rule(question=TEXTS, place=PLACES)
    def search(self, question: str, place: str) -> None:
        any_of = {
            id
            for id, known in self.facts.items()
            if known.workspace in (place, "") and set(indexed(known.text).split()) & set(asked(question))
        }
        all_of = {
            id
            for id, known in self.facts.items()
            if every(question) and set(indexed(known.text).split()) >= set(every(question))
        }
        assert any_of == {fact.id for fact in self.store.search(question, within=(place, ""))}
        assert all_of == {fact.id for fact in self.store.search(question, how="all")}
        assert len(self.store.search(question, within=(place, ""), limit=1)) == min(1, len(any_of))

    @invariant()
    def all_are_there(self) -> None:
        newest = self.store.newest()
        assert sorted(self.facts, reverse=True) == [fact.id for fact in newest]
        assert self.facts == {fact.id: Known(fact.text, fact.workspace) for fact in newest}


TestStore = Naive.TestCase
TestStore.settings = settings(
    max_examples=int(os.environ.get("ELENCO_FULL", "0")) * 200 or 15, stateful_step_count=20, deadline=None
)


@given(st.text())
def test_a_question_asks_for_words_and_nothing_else(question: str) -> None:
    """Whatever a question holds, what is looked for are stems that a fact of that text has."""
    assert set(asked(question)) <= set(every(question)) or question_terms(question)
    assert set(every(question)) == set(indexed(question).split())
    named = subjects(question_terms(question))
    assert bool(named) <= bool(asked(question))


@given(st.text())
def test_a_fact_is_one_line(text: str) -> None:
    """A tidy text is one line that is tidy already, and nothing in it moves a cursor."""
    line = tidy(text)
    assert line == tidy(line)
    assert {"Cc", "Cs", "Zl", "Zp"}.isdisjoint(map(unicodedata.category, line))
    assert {char for char in line if unicodedata.category(char) == "Cf"} <= {"\u200c", "\u200d"}
    line.encode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs words"),
        ("x" * (MOST_CHARS + 1), "1001"),
        ("the key is sk-ant-REDACTED", "secrets are not remembered"),
        ("log in with hunter-of-words", "secrets are not remembered"),
        ("the key is [redacted]", "secrets are not remembered"),
        ("password: hunter2222", "secrets are not remembered"),
        ("the API key is 8fj3kd93kd93", "secrets are not remembered"),
        ("the database is postgres://me:hunter22@db/x", "secrets are not remembered"),
        ("-----BEGIN RSA PRIVATE KEY-----", "secrets are not remembered"),
        ("the password is in the vault, see docs/keys.md:12", ""),
        ("token budget: 200000 tokens", ""),
        ("tests run with `pytest -q`, see https://example.org/a:b", ""),
    ],
)
def test_secrets_and_walls_of_text_are_no_facts(text: str, why: str) -> None:
    """What is a secret, by value or by its shape, and what is too long is not kept; ordinary facts are."""
    text = text.replace("sk-ant-REDACTED", "sk-ant-" + "a1b2c3d4" * 3)
    said = objection(text, lambda each: each.replace("hunter-of-words", "[redacted]"))
    assert why in said
    assert bool(why) == bool(said)


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    return FactStore(tmp_path / "memory.db")


def remembered(store: FactStore, text: str, workspace: str = "/a") -> Fact:
    fact = store.remember(text, workspace=workspace, at=1.0).fact
    assert fact is not None
    return fact


def test_looking_makes_no_file(store: FactStore) -> None:
    """Where nothing was ever remembered, looking finds nothing and leaves nothing."""
    assert ([], [], None) == (store.newest(), store.search("x"), store.get(1))
    assert [] == list(store.path.parent.iterdir())


def test_what_is_forgotten_is_gone_from_the_disk(store: FactStore) -> None:
    """The database is private, and no byte of a forgotten or former text is left in any of its files."""
    for number in range(40):
        remembered(store, f"ordinary fact number{number}")
    gone = remembered(store, "Zanzibar is where the plum grows")
    changed = remembered(store, "Quokkas are kept in the cellar")
    store.edit(changed, "They are kept elsewhere", 2.0)
    assert [gone] == store.forget([gone], 3.0)
    files = sorted(store.path.parent.iterdir())
    left = b"".join(file.read_bytes() for file in files).lower()
    assert [word for word in (b"zanzibar", b"plum", b"quokka", b"cellar") if word in left] == []
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in files}
    assert ["They are kept elsewhere"] == [fact.text for fact in store.search("elsewhere")]


def test_a_newer_schema_is_refused_and_left_as_it_is(store: FactStore) -> None:
    """A database of a later version is neither read nor written, and the error says what to do."""
    remembered(store, "one")
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    before = store.path.read_bytes()
    for action in (store.newest, lambda: remembered(store, "two")):
        with pytest.raises(MemoryUnusable, match=r"memory\.db has schema version 9; .* up to 1: update Elenco"):
            action()
    assert before == store.path.read_bytes()


@pytest.mark.parametrize("content", [b"this is no database at all, but long enough to be looked at" * 20, b""])
def test_what_is_no_memory_is_told_and_not_touched(store: FactStore, content: bytes) -> None:
    """A damaged or foreign file is told in one line, and is left as it is."""
    store.path.write_bytes(content)
    for action in (store.newest, lambda: remembered(store, "two")):
        with pytest.raises(MemoryUnusable, match=r"memory\.db.*move it away to begin anew"):
            action()
    assert content == store.path.read_bytes()


def test_a_full_memory_says_so(store: FactStore) -> None:
    """A workspace has a bounded number of facts; more are refused until some are forgotten."""
    first = remembered(store, "the first")
    with sqlite3.connect(store.path) as db:
        rows = ((f"fact {number}", "fact", "/a", "", "", 1.0) for number in range(MOST_FACTS - 1))
        db.executemany("INSERT INTO facts (text, stems, workspace, run, actor, at) VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.close()
    with pytest.raises(MemoryUnusable, match="memory is full: 2000 facts; forget some"):
        remembered(store, "one more")
    remembered(store, "another workspace has room", "/b")
    store.forget([first], 1.0)
    remembered(store, "one more")


def test_a_fact_that_changed_meanwhile_is_left_alone(store: FactStore) -> None:
    """An edit and a forget mean the text that was seen; another one in its place stays."""
    seen = remembered(store, "seen")
    store.edit(seen, "changed", 2.0)
    with pytest.raises(NoFact, match="has changed or gone meanwhile"):
        store.edit(seen, "mine", 3.0)
    assert [] == store.forget([seen], 3.0)
    assert ["changed"] == [fact.text for fact in store.newest()]


WRITER = """
import sys
from pathlib import Path
from runtime.memory.store import Call, FactStore
store, name = FactStore(Path(sys.argv[1])), sys.argv[2]
for number in range(int(sys.argv[3])):
    fact = store.remember(f"fact {number} of {name}", workspace="/a", at=1.0, call=Call(name, f"c{number}", "x")).fact
    store.remember("a fact that all of them know", workspace="/a", at=1.0, call=Call(name, "all", "x"))
    store.search("fact", within=("/a",), limit=3)
    print(fact.id, flush=True)
"""


def writers(store: FactStore, count: int, facts: int) -> Iterator[subprocess.Popen[str]]:
    for number in range(count):
        words = [sys.executable, "-c", WRITER, str(store.path), f"w{number}", str(facts)]
        yield subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_many_processes_write_at_once(store: FactStore) -> None:
    """Processes that begin the memory together all find it whole, and lose and double nothing."""
    told: list[str] = []
    for writer in list(writers(store, 6, 8)):
        out, errors = writer.communicate(timeout=60)
        assert "" == errors
        told += out.split()
    facts = store.newest()
    assert 6 * 8 + 1 == len(facts)
    assert len(told) == len(set(told)) == 48
    assert ["memory.db"] == [path.name for path in store.path.parent.iterdir() if "-" not in path.name]


def test_a_killed_process_leaves_what_it_was_told_is_kept(store: FactStore) -> None:
    """kill -9 in the middle of writing: every fact acknowledged is there, the index agrees, others go on."""
    acknowledged: list[int] = []
    for number, writer in enumerate(list(writers(store, 2, 10_000))):
        assert writer.stdout is not None
        assert writer.stderr is not None
        acknowledged += [int(writer.stdout.readline()) for _ in range(5 + number * 7)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        writer.stderr.close()
    assert set(acknowledged) <= {fact.id for fact in store.newest()}
    assert {fact.id for fact in store.newest()} == {fact.id for fact in store.search("fact")}
    with sqlite3.connect(store.path) as db:
        assert ("ok",) == db.execute("PRAGMA integrity_check").fetchone()
        db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    db.close()
    remembered(store, "and on it goes")
