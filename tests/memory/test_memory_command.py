"""`elenco memory`: a person sees, searches, adds, edits and deletes what is remembered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from runtime.cli import main
from runtime.memory.store import Call

Ask: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(stage: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run the command in this process; its exit code, its output and what it said."""
    monkeypatch.chdir(stage.workspace)
    monkeypatch.setenv("ELENCO_STATE", str(stage.state))
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["memory", *words])
        out, errors = capsys.readouterr()
        return code, out, errors

    return run


def texts(stage: Any) -> list[str]:
    return [fact.text for fact in stage.store.newest()]


async def test_a_person_sees_edits_and_deletes_what_agents_note(
    stage: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fact an agent noted is listed with its run, searched, shown, edited in both ways, and forgotten."""
    stage.cast("remember")
    stage.script("lead: [{calls: [{name: remember, arguments: {fact: Tests need 3.12}}]}, done]")
    await stage.run()
    stage.store.remember("elsewhere", workspace="/other", at=1.0)
    assert (0, "", "kept as fact 3, about you\n") == ask("add", "I like tea", "--user")
    code, out, _ = ask()
    assert (0, ["3", "1"]) == (code, [line.split()[0] for line in out.splitlines()[1:]])
    assert "1   this workspace  run t1    now   Tests need 3.12" in out
    assert "/other" in ask("list", "--all")[1]
    found = [json.loads(line) for line in ask("list", "what do tests need", "--json")[1].splitlines()]
    assert [(1, "workspace", "t1", "lead")] == [(one["id"], one["scope"], one["run"], one["actor"]) for one in found]
    shown = ask("show", "1")[1]
    assert "by lead in run t1   elenco show t1\nTests need 3.12\n" in shown
    monkeypatch.setenv("EDITOR", "sed -i s/3.12/3.13/")
    assert (0, "", "fact 1 is changed\n") == ask("edit", "1")
    assert "Tests need 3.13" in ask("show", "#1")[1]
    assert (0, "", "fact 1 is changed\n") == ask("edit", "1", "Tests need 3.14")
    code, out, _ = ask("forget", "1")
    assert (0, "forgotten: 1  Tests need 3.14\n") == (code, out)
    assert ["I like tea", "elsewhere"] == texts(stage)


def test_nothing_is_forgotten_by_accident(stage: Any, ask: Ask) -> None:
    """Words that several facts hold forget none; what a run noted goes only after a look and a yes."""
    here = str(stage.workspace)
    for number in range(3):
        call = Call("k7f2", f"c{number}", "x")
        stage.store.remember(f"plum number {number}", workspace=here, at=1.0, call=call, actor="lead")
    stage.store.remember("pear", workspace=here, at=1.0)
    code, _, errors = ask("forget", "plum")
    assert code == 2
    assert "3 facts hold these words" in errors
    code, out, errors = ask("forget", "--run", "k7f2")
    assert (0, 3) == (code, out.count("would be forgotten: "))
    assert "nothing was forgotten yet: elenco memory forget --run k7f2 --yes" in errors
    assert 4 == len(texts(stage))
    assert 0 == ask("forget", "plum 1")[0]
    code, out, _ = ask("forget", "--run", "k7f2", "--yes")
    assert (0, 2) == (code, out.count("forgotten: "))
    assert ["pear"] == texts(stage)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lst",), "unknown word 'lst'; did you mean 'list'?"),
        (("plums",), "unknown word 'plums'; to search: elenco memory list \"plums\""),
        (("list", "two", "words"), 'put the words in quotes: elenco memory list "two words"'),
        (("show",), "give the id: elenco memory show ID"),
        (("show", "x"), "'x' is no id; ids are numbers"),
        (("show", "9" * 30), "is no id"),
        (("show", "99"), "there is no fact 99"),
        (("edit", "1"), "no editor is set: export EDITOR=…, or give the text"),
        (("edit", "1", ""), "no text was left, so nothing was changed; to forget it: elenco memory forget 1"),
        (("edit", "1", "password: hunter2222"), "nothing was changed: it seems to hold a password"),
        (("add", "a", "b"), 'give the text in quotes: elenco memory add "TEXT"'),
        (("forget",), "name what to forget: elenco memory forget ID…"),
        (("forget", "1", "99"), "there is no fact 99"),
        (
            ("forget", "1", "plums"),
            'give ids, or words in quotes that one fact alone holds: elenco memory forget "1 pl',
        ),
        (("forget", "…"), "no fact can be looked for: there is no word in it: '…'"),
        (("forget", "--run", "k7f2"), "run 'k7f2' has noted nothing that is still remembered"),
        (("list", "--yes"), "--yes goes with forget, not with list"),
        (("list", "--workspace", "nowhere"), "the workspace nowhere does not exist"),
        (("list", "--limit", "0"), "--limit is a number from 1"),
    ],
)
def test_a_slip_is_told_in_one_line_and_changes_nothing(
    stage: Any, ask: Ask, words: tuple[str, ...], said: str
) -> None:
    """What cannot be done is told with what to type instead, exit 2; what is remembered stays."""
    stage.store.remember("plums", workspace=str(stage.workspace), at=1.0)
    code, out, errors = ask(*words)
    assert (2, "") == (code, out)
    assert said in errors
    assert ["plums"] == texts(stage)


def test_an_editor_that_fails_changes_nothing(stage: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that cannot be started or ends badly leaves the fact as it is; so does one that changes nothing."""
    stage.store.remember("plums", workspace=str(stage.workspace), at=1.0)
    for editor, code, said in (
        ("no-such-editor", 2, "the editor 'no-such-editor' cannot be started: No such file or directory"),
        ("false", 2, "the editor ended with 1, so nothing was changed"),
        ("'", 2, "cannot be started: No closing quotation"),
        ("true", 0, "fact 1 says that already; nothing was changed"),
        ("truncate -s 0", 2, "no text was left"),
        ("rm", 2, "no text was left"),
    ):
        monkeypatch.setenv("EDITOR", editor)
        found, _, errors = ask("edit", "1")
        assert code == found
        assert said in errors
    assert ["plums"] == texts(stage)


def test_a_memory_of_a_later_version_is_refused(stage: Any, ask: Ask) -> None:
    """The command refuses a database it does not know in one line, exit 1."""
    stage.store.remember("plums", workspace=str(stage.workspace), at=1.0)
    with sqlite3.connect(stage.store.path) as db:
        db.execute("PRAGMA user_version = 7")
    db.close()
    for words in (("list",), ("add", "x")):
        code, out, errors = ask(*words)
        assert (1, "") == (code, out)
        assert "has schema version 7; this Elenco knows versions up to 1: update Elenco" in errors
