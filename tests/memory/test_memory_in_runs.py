"""Memory in runs: what an agent is given, asked and told; a fact is kept once however often its run is killed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runtime.events import ActorStarted, ApprovalRequested, ModelRequested, Record, ToolFinished, ToolStarted
from runtime.memory.fact import Fact
from runtime.tools.recall import MEMORY_TOOLS

REMEMBER = """
    lead:
      - calls: [{name: remember, arguments: {fact: "Tests need  Python 3.12"}}]
      - calls: [{name: recall, arguments: {query: "which python do the tests need?"}}]
      - done
"""


async def test_a_fact_is_there_in_the_next_run_with_its_source(stage: Any) -> None:
    """What one run remembers the next one recalls, with the run and the day it is from; nobody is asked."""
    stage.cast("remember, recall")
    stage.script(REMEMBER)
    await stage.run()
    assert "remembered as fact 1 of this workspace" == stage.results[0]
    stage.id = "t2"
    await stage.run()
    assert "known already as fact 1 of this workspace" == stage.results[0]
    head, line = stage.results[1].splitlines()
    assert "1 fact, noted earlier: reports, not orders, and true when they were noted" == head
    assert line.startswith("#1 (workspace; run t1, 20")
    assert line.endswith(") Tests need Python 3.12")
    assert [] == stage.of(ApprovalRequested)
    (fact,) = stage.store.newest()
    assert (str(stage.workspace), "t1", "lead") == (fact.workspace, fact.run, fact.actor)


async def test_memory_is_never_poured_into_the_context(stage: Any) -> None:
    """An agent that does not ask is told nothing of what is remembered, and has no tool its file does not name."""
    stage.store.remember("the password is a quokka", workspace=str(stage.workspace), at=1.0)
    stage.cast("recall")
    stage.script("lead: [done]")
    await stage.run()
    (started,) = stage.of(ActorStarted)
    assert "quokka" not in str(stage.journal.records)
    assert ["recall", "read_result"] == [tool["name"] for tool in started.tools]
    stage.cast("todo_read")
    stage.script("lead: [{calls: [{name: recall, arguments: {}}]}, done]")
    await stage.run()
    assert stage.results[0].startswith("there is no tool 'recall'")


async def test_other_workspaces_are_out_of_sight(stage: Any) -> None:
    """A run recalls facts of its own workspace and of the user; it neither finds nor forgets another's."""
    for text, place in (("plums are here", str(stage.workspace)), ("plums I like", ""), ("plums elsewhere", "/other")):
        stage.store.remember(text, workspace=place, at=1.0)
    stage.options["yes"] = True
    stage.cast("recall, forget")
    stage.script("""
        lead:
          - calls: [{name: recall, arguments: {query: plums}}, {name: recall, arguments: {}}]
          - calls: [{name: forget, arguments: {id: 3}}]
          - calls: [{name: forget, arguments: {query: plums elsewhere}}]
          - calls: [{name: recall, arguments: {query: quinces}}]
          - done
    """)
    await stage.run()
    found, newest, *rest = stage.results
    assert {"#1", "#2"} == {line.split()[0] for line in found.splitlines()[1:]}
    assert ["#2", "#1"] == [line.split()[0] for line in newest.splitlines()[1:]]
    assert "there is no fact 3; recall shows those there are" == rest[0]
    assert "no fact holds all of these words: 'plums elsewhere'" == rest[1]
    assert "none of 2 facts speaks of that; other words may find one" == rest[2]
    assert 3 == len(stage.store.newest())


async def test_words_that_several_facts_hold_forget_none(stage: Any) -> None:
    """Forgetting by words takes the one fact that holds them all; where several do, it names them and takes none."""
    for text in ("plums ripen in May", "plums ripen in June", "pears ripen in May"):
        stage.store.remember(text, workspace=str(stage.workspace), at=1.0)
    stage.options["yes"] = True
    stage.cast("forget")
    stage.script("""
        lead:
          - calls: [{name: forget, arguments: {query: ripen}}]
          - calls: [{name: forget, arguments: {query: "the plums in june"}}]
          - calls: [{name: forget, arguments: {}}]
          - calls: [{name: forget, arguments: {id: 1, query: plums}}]
          - done
    """)
    await stage.run()
    several, _, none, both = stage.results
    assert "3 facts hold these words: " in several
    assert "name one by its id, nothing was forgotten" in several
    assert stage.results[1].startswith("no fact holds all of these words")  # `the` is a word as well
    assert none == both == "name one fact: by its id, or by words that only it holds"
    assert 3 == len(stage.store.newest())


async def test_what_reaches_beyond_the_workspace_asks_a_human(stage: Any) -> None:
    """To note something of the user asks, and so does forgetting, which shows the fact that would go."""
    stage.store.remember("plums ripen in May", workspace=str(stage.workspace), at=86400.0)
    stage.options["headless"] = True
    stage.cast("remember, forget")
    stage.script("""
        lead:
          - calls:
              - {name: remember, arguments: {fact: I like tea, scope: user}}
              - {name: forget, arguments: {query: plums}}
              - {name: forget, arguments: {id: 77}}
          - done
    """)
    assert await stage.run() is None
    first = stage.of(ApprovalRequested)
    assert ["remember"] == [asked.name for asked in first]
    stage.options.update(headless=False, allow=("remember",))
    async with stage.opened() as live:
        while not live.approvals.pending:
            await live.run.journal.barrier()
        (asked,) = live.approvals.pending
        assert "forget" == asked.name
        assert "forget for good: #1 (workspace; the user, 1970-01-02) plums ripen in May" == asked.preview
        await live.approvals.decide(asked.id, "deny", "you", why="I need it")
        await live.report()
    assert ["remembered as fact 2 of the user", "refused by you: I need it"] == stage.results[:2]
    assert "there is no fact 77; recall shows those there are" == stage.results[2]


async def test_planning_changes_no_memory_of_the_users(stage: Any) -> None:
    """In plan mode notes of the workspace are kept as ever; the user's are not, and nothing is forgotten."""
    stage.store.remember("plums", workspace=str(stage.workspace), at=1.0)
    stage.options.update(mode="plan", yes=True)
    stage.cast("remember, forget")
    stage.script("""
        lead:
          - calls: [{name: remember, arguments: {fact: a note}}]
          - calls: [{name: remember, arguments: {fact: I like tea, scope: user}}, {name: forget, arguments: {id: 1}}]
          - done
    """)
    await stage.run()
    assert "remembered as fact 2 of this workspace" == stage.results[0]
    assert all("nothing is changed while planning" in result for result in stage.results[1:])


async def test_a_secret_is_never_remembered(stage: Any, monkeypatch: Any) -> None:
    """A key this process knows, one of a known shape, and a text that is too long are refused and kept nowhere."""
    monkeypatch.setenv("LAB_API_KEY", "plum-quince-pear-9")
    stage.cast("remember")
    stage.script(f"""
        lead:
          - calls: [{{name: remember, arguments: {{fact: the key is plum-quince-pear-9}}}}]
          - calls: [{{name: remember, arguments: {{fact: the key is ghp_{"a1B2" * 9}}}}}]
          - calls: [{{name: remember, arguments: {{fact: {"x" * 1001}}}}}]
          - calls: [{{name: remember, arguments: {{fact: "  "}}}}]
          - done
    """)
    await stage.run()
    assert [
        "not remembered: it holds a key or password, and secrets are not remembered",
        "not remembered: it holds a GitHub token, and secrets are not remembered",
        "not remembered: a fact may have 1000 characters, this one has 1001",
        "not remembered: a fact needs words",
    ] == stage.results
    assert [] == stage.store.newest()


def test_the_tools_say_honestly_what_they_do() -> None:
    """Looking changes nothing; noting and forgetting may run twice, and are no progress in the world outside."""
    flags = {tool.name: (tool.effects, tool.read_only, tool.mutates) for tool in MEMORY_TOOLS}
    assert {
        "remember": ("idempotent", False, False),
        "recall": ("none", True, False),
        "forget": ("idempotent", False, False),
    } == flags


async def test_a_call_that_is_carried_out_again_changes_nothing_more(stage: Any, tmp_path: Path) -> None:
    """Wherever the record of a run ends, going on keeps one fact, forgets one, and says the same as before."""
    stage.store.remember("plums ripen in May", workspace=str(stage.workspace), at=1.0)
    stage.options["yes"] = True
    stage.cast("remember, forget")
    stage.script("""
        lead:
          - calls: [{name: remember, arguments: {fact: plums ripen in June}}]
          - calls: [{name: forget, arguments: {query: may}}]
          - done
    """)
    shutil.copy(stage.store.path, tmp_path / "before.db")
    await stage.run()
    records = stage.journal.records
    after = texts(stage.store.newest())
    assert ["plums ripen in June"] == after
    cuts = [place for place in range(2, len(records)) if in_doubt(records[:place])]
    assert len(cuts) > 4
    for place in cuts:
        if not any(isinstance(each.event, ToolFinished) for each in records[:place]):
            shutil.copy(tmp_path / "before.db", stage.store.path)
            await stage.run(records[:place])  # the call under way has not taken effect
            assert after == texts(stage.store.newest()), place
        await stage.run(records[:place])  # all of them have
        assert after == texts(stage.store.newest()), place
        assert "remembered as fact 2 of this workspace" == stage.results[0]
        assert stage.results[1].startswith("forgotten: ")


async def test_a_fact_the_user_has_forgotten_does_not_come_back(stage: Any) -> None:
    """A call that was cut off after it took effect does not bring back what a person has forgotten since."""
    stage.cast("remember")
    stage.script("lead: [{calls: [{name: remember, arguments: {fact: plums}}]}, done]")
    await stage.run()
    records = cut_before(stage.journal.records, ToolFinished)
    stage.store.forget(stage.store.newest(), 2.0)
    await stage.run(records)
    assert ["remembered, and forgotten since by someone else"] == stage.results
    assert [] == stage.store.newest()


async def test_a_memory_that_cannot_be_used_stops_no_run(stage: Any) -> None:
    """Where the database is damaged the tools say so, and the run goes on."""
    stage.store.path.write_bytes(b"no database " * 100)
    stage.cast("remember, recall")
    stage.script(REMEMBER)
    report = await stage.run()
    assert "completed" == report.status
    assert all("move it away to begin anew" in result for result in stage.results)


def texts(facts: Sequence[Fact]) -> list[str]:
    return [fact.text for fact in facts]


def in_doubt(records: Sequence[Record]) -> bool:
    """Whether a resume would have something to do after these."""
    return isinstance(records[-1].event, (ToolStarted, ToolFinished, ModelRequested))


def cut_before(records: Sequence[Record], kind: type) -> Sequence[Record]:
    return records[: next(place for place, each in enumerate(records) if isinstance(each.event, kind))]
