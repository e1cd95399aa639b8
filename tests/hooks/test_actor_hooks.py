"""Hooks where actors and runs begin and end, and around model calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from runtime.events import HookFinished, HookStarted, ToolFinished, Warned
from runtime.hooks.actor import INTERRUPTED, MOST_SENT_BACK
from runtime.hooks.matchers import read_matcher
from runtime.hooks.moments import MOMENTS
from runtime.hooks.settings import Function, Hook
from runtime.journal.replay import replay
from runtime.limits.limits import Limits
from runtime.messages import JsonObject, UserMessage
from tests.journal.watched import Watched

if TYPE_CHECKING:
    from .conftest import Stage
else:
    Stage = Any

PLAIN = "a: [{text: done}]"


def function(moment: str, answer: Function | JsonObject | None, matcher: str = "", **settings: Any) -> Hook:
    def constant(event: JsonObject) -> Any:
        return answer

    found: Function = answer if callable(answer) else constant
    return Hook(f"h:{moment}", MOMENTS[moment], read_matcher(matcher), function=found, **settings)


def notes(stage: Stage, actor: str = "a") -> list[str]:
    history = replay(stage.journal.records).actors[actor].history
    return [each.text for each in history if isinstance(each, UserMessage) and each.kind == "note"]


async def test_all_moments_come_in_their_order(stage: Stage) -> None:
    """A run meets its moments in order: run, actor, model, tool, model, actor, run."""
    stage.script("""
        a:
          - calls: [{name: act, arguments: {thing: x}}]
          - text: done
    """)
    stage.hooks = [function(moment, None) for moment in MOMENTS]
    await stage.run()
    assert [
        *("run_start", "actor_start", "before_model", "after_model", "before_tool", "after_tool"),
        *("before_model", "after_model", "actor_finish", "run_finish"),
    ] == [moment for moment, outcome in stage.outcomes if outcome == "none"]


async def test_a_child_has_moments_of_its_own_and_the_run_only_one_start(stage: Stage) -> None:
    """A child's start and finish are moments of their own; the run's belong to its root."""
    stage.subagents = ("b",)
    stage.script("""
        a:
          - calls: [{name: delegate_to_b, arguments: {task: help}}]
          - text: done
        b: [{text: helped}]
    """)
    stage.hooks = [function(moment, None) for moment in ("run_start", "actor_start", "actor_finish", "run_finish")]
    await stage.run()
    assert [
        *(("a", "run_start"), ("a", "actor_start"), ("a/b-1", "actor_start"), ("a/b-1", "actor_finish")),
        *(("a", "actor_finish"), ("a", "run_finish")),
    ] == [(event.actor, event.event) for event in stage.of(HookFinished)]


@pytest.mark.parametrize("hooked", [False, True])
async def test_a_child_with_hooks_begins_after_its_call_is_on_record(stage: Stage, hooked: bool) -> None:
    """A child whose hooks act before its first request waits for the record of the call; another's comes with it."""
    stage.journal = journal = Watched()
    stage.subagents = ("b",)
    stage.script("""
        a:
          - calls: [{name: delegate_to_b, arguments: {task: help}}]
          - text: done
        b: [{text: helped}]
    """)
    stage.hooks = [function("actor_start", None)] if hooked else []
    assert (await stage.run()).status == "completed"
    assert journal.recorded is hooked


async def test_a_hook_for_one_agent_is_matched_by_its_name(stage: Stage) -> None:
    """At the moments of actors and models a matcher looks at the agent's name."""
    stage.subagents = ("b",)
    stage.script("""
        a:
          - calls: [{name: delegate_to_b, arguments: {task: help}}]
          - text: done
        b: [{text: helped}]
    """)
    stage.hooks = [function("actor_start", None, "b")]
    await stage.run()
    assert ["a/b-1"] == [event.actor for event in stage.of(HookFinished)]


async def test_what_hooks_add_at_the_start_is_read_by_the_model(stage: Stage) -> None:
    """What a command prints at the start, and what a hook adds before a model call, stands in the history."""
    stage.script(PLAIN)
    stage.settings("hooks: {run_start: 'echo It is raining.'}")
    stage.hooks.append(function("before_model", {"context": "Mind the umbrella."}))
    await stage.run()
    found = notes(stage)
    assert ["It is raining.", "Mind the umbrella."] == [text.rpartition("\n")[2] for text in found]
    assert found[0].startswith("From the hook elenco.yaml:1")


@pytest.mark.parametrize("moment", ["run_start", "actor_start", "before_model"])
async def test_a_refused_start_or_model_call_ends_the_actor_as_failed(stage: Stage, moment: str) -> None:
    """A hook that refuses the start or a model call ends the actor as failed, with its reason."""
    stage.script(PLAIN)
    stage.hooks = [function(moment, {"decision": "deny", "reason": "not here"})]
    report = await stage.run()
    assert "failed" == report.status
    assert "not here" in report.detail
    assert 0 == report.steps


async def test_a_resumed_run_asks_a_hook_again_that_had_refused(stage: Stage) -> None:
    """Once what it complained of is put right, a hook that refused is asked again on resume."""
    answers: list[Any] = [{"decision": "deny", "reason": "not yet"}, None]
    stage.script(PLAIN)
    stage.hooks = [function("before_model", lambda event: answers.pop(0))]
    assert "failed" == (await stage.run()).status
    assert "completed" == (await stage.resume()).status


async def test_a_hook_sends_an_actor_back_with_its_reason(stage: Stage) -> None:
    """A hook that refuses an actor's end sends it back to work; the model reads why."""
    stage.script("a: [{text: first}, {text: second}]")
    stage.hooks = [
        function(
            "actor_finish",
            lambda event: {"decision": "deny", "reason": "tests fail"} if event["text"] == "first" else None,
        )
    ]
    report = await stage.run()
    assert ("completed", "second") == (report.status, report.text)
    assert ["You are not done yet, says the hook h:actor_finish: tests fail"] == notes(stage)


async def test_an_end_stands_after_so_many_refusals(stage: Stage) -> None:
    """A hook that never agrees does not keep a run from ending, over restarts neither."""
    stage.script("a: [{text: one}, {text: red house}, {text: blue sea}, {text: it rains}, {text: never}]")
    stage.hooks = [function("actor_finish", {"decision": "deny", "reason": "never"})]
    report = await stage.run()
    assert ("completed", MOST_SENT_BACK + 1) == (report.status, report.steps)
    assert any("had refused its end" in event.text for event in stage.of(Warned))
    refused = [at for at, record in enumerate(stage.journal.records) if isinstance(record.event, HookFinished)]
    stage.journal = type(stage.journal)(stage.journal.records[: refused[1] + 1])
    report = await stage.resume()
    assert ("completed", MOST_SENT_BACK + 1) == (report.status, report.steps)


async def test_a_limit_ends_an_actor_that_a_hook_sends_back(stage: Stage) -> None:
    """A hook cannot lead an actor past its limits."""
    stage.script("a: [{repeat: 50, text: again}]")
    stage.limits = Limits(max_steps=2)
    stage.hooks = [function("actor_finish", {"decision": "deny", "reason": "never"})]
    report = await stage.run()
    assert ("stopped", "max_steps", 2) == (report.status, report.reason, report.steps)


async def test_the_last_hooks_hear_how_a_cancelled_run_ended(stage: Stage) -> None:
    """A cancelled run's last hooks hear that it was; they cannot change it."""
    stage.script("a: [{stall: 1000, text: never}]")
    heard: list[Any] = []
    stage.hooks = [function(moment, heard.append) for moment in ("actor_finish", "run_finish")]
    async with stage.opened() as live:
        await trio.sleep(0.05)
        live.cancel("you")
        report = await live.report()
    assert report is not None
    assert "cancelled" == report.status
    assert [("actor_finish", "cancelled"), ("run_finish", "cancelled")] == [(e["event"], e["status"]) for e in heard]


async def test_a_second_cancel_cuts_the_last_hooks_short(stage: Stage) -> None:
    """Cancelled once more, a run does not wait for its last hooks."""
    stage.script("a: [{stall: 1000, text: never}]")
    stage.hooks = [Hook("slow", MOMENTS["run_finish"], command="sleep 1000", timeout=500)]
    with trio.fail_after(30):
        async with stage.opened() as live:
            await trio.sleep(0.05)
            live.cancel("you")
            await trio.sleep(0.3)
            live.cancel("you")
            await live.report()
    assert [("run_finish", "error")] == stage.outcomes


async def test_the_last_hooks_have_what_is_left_of_the_time(stage: Stage) -> None:
    """The run's last hooks have what is left of its time: a run ends in time with them, too."""
    stage.script(PLAIN)
    stage.limits = Limits(timeout=2.0)
    stage.hooks = [Hook("slow", MOMENTS["run_finish"], command="sleep 1000", timeout=500)]
    with trio.fail_after(30):
        report = await stage.run()
    assert "completed" == report.status
    assert [("run_finish", "error")] == stage.outcomes


STARTS = ("run_start", "actor_start")
ONCE = (*STARTS, "run_finish")


async def test_hooks_that_act_run_once_wherever_the_process_dies(stage: Stage) -> None:
    """Whatever the last record is, a hook that had begun by then is not run by the next process, and the run ends."""
    script = """
        a:
          - calls: [{name: act, arguments: {thing: x}}]
          - text: done
    """
    stage.script(script)
    ran: list[str] = []
    stage.hooks = [function(moment, lambda event: ran.append(event["event"])) for moment in ONCE]
    await stage.run()
    assert list(ONCE) == ran
    whole = stage.journal.records
    for until in range(2, len(whole)):
        stage.script(script)
        stage.journal = type(stage.journal)(whole[:until])
        begun = [event.event for event in stage.of(HookStarted)]
        known = [event.event for event in stage.of(HookFinished)]
        ran.clear()
        report = await stage.resume()
        assert ("completed", "done") == (report.status, report.text)
        assert [moment for moment in ONCE if moment not in begun] == ran, until
        told = [event for event in stage.of(HookFinished) if event.outcome == "error"]
        assert [moment for moment in begun if moment not in known] == [event.event for event in told]
        assert all(INTERRUPTED == event.message for event in told)


async def test_a_start_that_may_have_failed_counts_as_its_settings_say(stage: Stage) -> None:
    """With on_error deny a start nobody knows of ends the agent as failed; going on once more asks the hook again."""
    stage.script(PLAIN)
    ran: list[str] = []
    stage.hooks = [function("actor_start", lambda event: ran.append("hook"), on_error="deny")]
    await stage.run()
    report = await stage.resume(lambda event: isinstance(event, HookStarted))
    assert ("failed", True) == (report.status, INTERRUPTED in report.detail)
    assert ["hook"] == ran
    stage.script(PLAIN)
    assert "completed" == (await stage.resume()).status
    assert ["hook", "hook"] == ran


async def test_an_agent_that_has_begun_is_not_begun_by_a_resume(stage: Stage) -> None:
    """Start hooks that came later, by a settings file or a loaded skill, do not run for an agent that had a reply."""
    script = "a: [{calls: [{name: act, arguments: {thing: x}}]}, {text: done}]"
    stage.script(script)
    await stage.run()
    ran: list[str] = []
    stage.hooks = [function(moment, lambda event: ran.append(event["event"])) for moment in ONCE]
    stage.script(script)
    assert "completed" == (await stage.resume(lambda event: isinstance(event, ToolFinished))).status
    assert ["run_finish"] == ran
