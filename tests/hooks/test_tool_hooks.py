"""Hooks around tool calls: what they may refuse, change and add, and that a resumed run does not run them twice."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import trio

from runtime.app import LiveRun, Resumption
from runtime.events import (
    ApprovalRequested,
    HookFinished,
    ModelRequested,
    PermissionDecided,
    RunWaiting,
    ToolFinished,
    ToolStarted,
)
from runtime.hooks.answers import Answer, Failed
from runtime.hooks.command import run_command
from runtime.hooks.matchers import read_matcher
from runtime.hooks.moments import MOMENTS
from runtime.hooks.settings import Function, Hook
from runtime.journal.replay import replay
from runtime.limits.limits import Limits
from runtime.messages import JsonObject
from runtime.reaper import open_reaper

if TYPE_CHECKING:
    from .conftest import Stage
else:
    Stage = Any

ONE_CALL = """
    a:
      - calls: [{name: act, arguments: {thing: x}}]
      - text: done
"""
WRITES = """
    a:
      - calls: [{name: write_file, arguments: {path: a.txt, content: hi}}]
      - text: done
"""


def function(moment: str, answer: Function | JsonObject | Answer | None, matcher: str = "", **settings: Any) -> Hook:
    """A Python hook that answers so."""

    def constant(event: JsonObject) -> Any:
        return answer

    found: Function = answer if callable(answer) else constant
    name = f"test:{moment}:{id(answer)}"
    settings.setdefault("on_error", MOMENTS[moment].fails)
    return Hook(name, MOMENTS[moment], read_matcher(matcher), function=found, **settings)


async def test_a_command_gets_the_event_as_json_and_lets_the_call_pass(stage: Stage) -> None:
    """A command is told the event as JSON on standard input; if it says nothing, the call runs."""
    stage.script(ONE_CALL)
    stage.settings(f"hooks: {{before_tool: '{stage.command('look', '')}'}}")
    report = await stage.run()
    assert ("completed", ["x"], [("before_tool", "none")]) == (report.status, stage.ran, stage.outcomes)
    [event] = stage.told("look")
    assert {
        "hook_event_name": "before_tool", "event": "before_tool", "session_id": "t1", "run": "t1", "actor": "a",
        "agent": "a", "model": "scripted/s", "cwd": str(stage.folder), "mode": "default", "tool_name": "act",
        "tool_input": {"thing": "x"}, "tool_use_id": "a0t0c0",
    } == event  # fmt: skip


async def test_exit_code_2_refuses_the_call_and_the_model_reads_why(stage: Stage) -> None:
    """Exit code 2 refuses the call; the model reads what stands on standard error."""
    stage.script(ONE_CALL)
    body = "print('not on a Friday', file=sys.stderr); sys.exit(2)"
    stage.settings(f"hooks: {{before_tool: '{stage.command('no', body)}'}}")
    await stage.run()
    assert [] == stage.ran
    assert "refused by the hook: elenco.yaml:1" in stage.results[0]
    assert "not on a Friday" in stage.results[0]
    [decided] = stage.of(PermissionDecided)
    assert ("deny", "not on a Friday") == (decided.verdict, decided.rule)


async def test_rewritten_arguments_are_those_that_run_and_those_on_record(stage: Stage) -> None:
    """Arguments that a hook rewrites are the ones that run, and the record has them."""
    stage.script(ONE_CALL)
    body = "print(json.dumps({'arguments': {'thing': event['tool_input']['thing'] + '!'}, 'context': 'made louder'}))"
    stage.settings(f"hooks: {{before_tool: ['{stage.command('one', body)}', '{stage.command('two', body)}']}}")
    await stage.run()
    assert ["x!!"] == stage.ran
    assert ["acted on x!!\n\nFrom a hook:\nmade louder\n\nFrom a hook:\nmade louder"] == stage.results
    assert [{"thing": "x!"}, {"thing": "x!!"}] == [event.arguments for event in stage.of(HookFinished)]
    started = next(at for at, event in enumerate(stage.events) if isinstance(event, ToolStarted))
    assert all(at < started for at, event in enumerate(stage.events) if isinstance(event, HookFinished))


async def test_rewritten_arguments_must_fit_the_tool(stage: Stage) -> None:
    """Arguments that do not fit the tool are a failure of the hook, and the call is refused."""
    stage.script(ONE_CALL)
    stage.hooks = [function("before_tool", {"arguments": {"at": 3}})]
    await stage.run()
    assert ([], [("before_tool", "error")]) == (stage.ran, stage.outcomes)
    assert "arguments do not fit" in stage.results[0]


async def test_rewritten_arguments_are_decided_on_again(stage: Stage) -> None:
    """A hook cannot lead a call where rules deny it: what it has made of the call is decided on as if new."""
    (stage.folder / "secrets").mkdir()
    stage.script(WRITES)
    stage.allow, stage.deny = ("write_file",), ("write_file(secrets/**)",)
    stage.hooks = [
        function("before_tool", {"decision": "allow", "arguments": {"path": "secrets/a.txt", "content": "hi"}})
    ]
    await stage.run()
    assert "denied by rule deny: write_file(secrets/**)" in stage.results[0]
    assert not (stage.folder / "secrets" / "a.txt").exists()


async def test_a_hook_leads_a_call_elsewhere(stage: Stage) -> None:
    """Where the rules allow it, a call goes where the hook leads it."""
    stage.script(WRITES)
    stage.allow = ("write_file",)
    stage.hooks = [function("before_tool", {"arguments": {"path": "out/b.txt", "content": "ho"}})]
    await stage.run()
    assert "ho" == (stage.folder / "out" / "b.txt").read_text()
    assert not (stage.folder / "a.txt").exists()


async def test_no_hook_runs_for_a_call_that_rules_deny(stage: Stage) -> None:
    """A call that rules deny stays denied; no hook is asked about it."""
    stage.script(ONE_CALL)
    stage.allow, stage.deny = (), ("act",)
    stage.hooks = [function("before_tool", {"decision": "allow"})]
    await stage.run()
    assert ([], []) == (stage.ran, stage.outcomes)


async def test_a_hooks_allow_answers_the_built_in_question(stage: Stage) -> None:
    """Where no rule speaks of a call, a hook's allow lets it run unasked."""
    stage.script(ONE_CALL)
    stage.allow, stage.headless = (), True
    stage.hooks = [function("before_tool", {"decision": "allow", "reason": "known to be good"})]
    await stage.run()
    assert (["x"], []) == (stage.ran, stage.of(ApprovalRequested))
    [decided] = stage.of(PermissionDecided)
    assert ("allow", "known to be good") == (decided.verdict, decided.rule)


async def test_a_hooks_allow_leaves_the_question_of_a_rule(stage: Stage) -> None:
    """A question that a rule asks is still asked, whatever a hook allows."""
    stage.script(ONE_CALL)
    stage.allow, stage.ask, stage.headless = (), ("act",), True
    stage.hooks = [function("before_tool", {"decision": "allow"}), function("approval", {"decision": "allow"})]
    async with stage.opened() as live:
        assert await live.report() is None
    assert ([], 1) == (stage.ran, len(stage.of(ApprovalRequested)))


async def test_a_hook_has_a_human_asked_about_an_allowed_call(stage: Stage) -> None:
    """A hook may have a human asked about a call that rules allow."""
    stage.script(ONE_CALL)
    stage.hooks = [function("before_tool", {"decision": "ask", "reason": "looks large"})]
    async with stage.opened() as live:
        await asked(live)
        [request] = live.approvals.pending
        assert "looks large" in request.why
        assert () == request.always
        await live.approvals.decide(request.id, "allow", "you")
        await live.report()
    assert ["x"] == stage.ran


async def test_yes_answers_what_a_hook_asks(stage: Stage) -> None:
    """With --yes a hook's question is answered like every other."""
    stage.script(ONE_CALL)
    stage.yes = True
    stage.hooks = [function("before_tool", {"decision": "ask"})]
    await stage.run()
    assert (["x"], []) == (stage.ran, stage.of(ApprovalRequested))


async def test_an_approval_hook_decides_before_a_human_is_asked(stage: Stage) -> None:
    """An approval hook runs only where a human would be asked, and may answer in their place."""
    stage.script(ONE_CALL)
    stage.hooks = [function("approval", {"decision": "deny", "reason": "nobody is there at night"})]
    await stage.run()
    assert (["x"], []) == (stage.ran, stage.outcomes)  # allowed by rule: nothing to ask
    stage.allow, stage.journal = (), type(stage.journal)()
    await stage.run()
    assert "nobody is there at night" in stage.results[0]
    assert ["ask", "deny"] == [event.verdict for event in stage.of(PermissionDecided)]
    assert [] == stage.of(ApprovalRequested)


async def test_a_hook_after_a_tool_may_add_replace_and_withhold(stage: Stage) -> None:
    """A hook after a tool may add to the result, replace it, or withhold it."""
    stage.script(ONE_CALL)
    stage.hooks = [
        function("after_tool", lambda event: {"result": event["tool_response"].replace("x", "*")}),
        function("after_tool", lambda event: {"context": f"seen: {event['tool_response']}"}),
    ]
    await stage.run()
    assert ["acted on *\n\nFrom a hook:\nseen: acted on *"] == stage.results
    stage.journal = type(stage.journal)()
    stage.hooks = [function("after_tool", {"decision": "deny", "reason": "holds a key"})]
    await stage.run()
    assert stage.results[0].startswith("It ran; its result is withheld: refused by the hook")
    assert stage.results[0].endswith("holds a key")


@pytest.mark.parametrize(
    "command",
    ["exit 1", "kill -9 $$", "./no-such-program", 'echo \'{"decison": "allow"}\'', "echo '{'"],
)
async def test_a_before_tool_hook_that_fails_refuses(stage: Stage, command: str) -> None:
    """A before-tool hook that crashes, is missing or answers nonsense refuses the call, and the record says why."""
    stage.script(ONE_CALL)
    stage.hooks = [Hook("h", MOMENTS["before_tool"], command=command, on_error="deny")]
    await stage.run()
    assert ([], [("before_tool", "error")]) == (stage.ran, stage.outcomes)
    assert "the hook h failed: it" in stage.results[0]


async def test_with_on_error_allow_a_failed_hook_counts_as_none(stage: Stage) -> None:
    """With on_error: allow a failed hook counts as if it were not there: it does not allow what would be asked."""
    stage.script(ONE_CALL)
    stage.hooks = [Hook("h", MOMENTS["before_tool"], command="exit 1", on_error="allow")]
    await stage.run()
    assert (["x"], [("before_tool", "error")]) == (stage.ran, stage.outcomes)
    stage.allow, stage.headless, stage.journal = (), True, type(stage.journal)()
    async with stage.opened() as live:
        assert await live.report() is None
    assert 1 == len(stage.of(ApprovalRequested))


async def test_a_hook_whose_time_is_up_is_ended_with_all_it_has_started(stage: Stage, tmp_path: Path) -> None:
    """A hook whose time is up refuses, and nothing it has started lives on."""
    stage.script(ONE_CALL)
    body = f"""
        import subprocess
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
        time.sleep(1000)
    """
    command = stage.command("slow", body)
    stage.hooks = [Hook("h", MOMENTS["before_tool"], command=command, timeout=1.0, on_error="deny")]
    await stage.run()
    assert "did not end within 1 s" in stage.results[0]
    assert not alive(int((tmp_path / "child").read_text()))


async def test_what_a_hook_leaves_behind_is_ended_with_it(stage: Stage, tmp_path: Path) -> None:
    """A process that a hook leaves in the background is ended with it, and does not hold the run up."""
    stage.script(ONE_CALL)
    body = f"""
        import subprocess
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
    """
    stage.hooks = [Hook("h", MOMENTS["before_tool"], command=stage.command("leaves", body), on_error="deny")]
    report = await stage.run()
    assert ("completed", ["x"]) == (report.status, stage.ran)
    assert not alive(int((tmp_path / "child").read_text()))


async def test_a_hook_that_floods_or_does_not_listen_does_no_harm() -> None:
    """A hook that prints without end is read and dropped; one that closes its input at once is no fault."""
    event = b"x" * 1_000_000
    flood = "python3 -c \"print('{' + 'x' * 3_000_000)\""
    async with open_reaper() as reaper:
        with trio.fail_after(30):
            said = [
                await run_command(
                    reaper, MOMENTS["before_tool"], command, event, cwd="/", env={"PATH": "/bin:/usr/bin"}
                )
                for command in ("exec <&-; exit 0", flood, 'cat > /dev/null; echo \'{"decision": "ask"}\'')
            ]
    assert [Answer(), Failed("its answer is longer than 1000000 bytes"), Answer("ask")] == said


async def test_the_time_of_hooks_counts_on_the_runs_deadline(stage: Stage) -> None:
    """A hook that takes longer than the run may is cut off with it: the run still ends within its time."""
    stage.script(ONE_CALL)
    stage.hooks = [Hook("h", MOMENTS["before_tool"], command="sleep 1000", on_error="allow")]
    stage.caps = type(stage.caps)(timeout=2.0)
    with trio.fail_after(20):
        report = await stage.run()
    assert ("stopped", "deadline", []) == (report.status, report.reason, stage.ran)
    assert [("before_tool", "error")] == stage.outcomes


async def test_a_hook_sees_no_key_of_ours(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook's command sees no key of ours in its environment, and where it is."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("SOME_TOKEN", "sk-secret")
    stage.script(ONE_CALL)
    body = "print(json.dumps({'context': ' '.join(f'{k}={v}' for k, v in os.environ.items())}))"
    stage.settings(f"hooks: {{before_tool: '{stage.command('env', body)}'}}")
    await stage.run()
    assert "sk-secret" not in stage.results[0]
    for word in ("ELENCO_RUN=t1", "ELENCO_EVENT=before_tool", f"CLAUDE_PROJECT_DIR={stage.folder}"):
        assert word in stage.results[0]


async def test_hooks_run_only_for_the_tools_their_matcher_names(stage: Stage) -> None:
    """A hook with a matcher runs for the tools it names and no others."""
    (stage.folder / "a.txt").write_text("hello\n")
    stage.script("""
        a:
          - calls: [{name: read_file, arguments: {path: a.txt}}, {name: act, arguments: {thing: x}}]
          - text: done
    """)
    stage.hooks = [function("before_tool", {"decision": "deny", "reason": "r"}, "act|write_file")]
    await stage.run()
    assert [] == stage.ran
    assert "hello" in stage.results[0]
    assert [("before_tool", "deny")] == stage.outcomes


async def test_after_a_refusal_no_further_hook_runs(stage: Stage) -> None:
    """Hooks run one after the other in their order, until one refuses."""
    stage.script(ONE_CALL)
    order: list[str] = []

    def says(word: str, answer: Any) -> Any:
        def run(event: Any) -> Any:
            order.append(word)
            return answer

        return run

    stage.hooks = [
        function("before_tool", says("first", None)),
        function("before_tool", says("second", Answer("deny", "no"))),
        function("before_tool", says("third", None)),
    ]
    await stage.run()
    assert ["first", "second"] == order


async def test_a_python_hook_may_be_async_and_its_exception_is_a_failure(stage: Stage) -> None:
    """A Python hook may be async; one that raises has failed, and its message is on record."""

    async def fine(event: Any) -> None:
        await trio.lowlevel.checkpoint()

    def broken(event: Any) -> None:
        raise LookupError("no such thing")

    stage.script(ONE_CALL)
    stage.hooks = [function("before_tool", fine), function("before_tool", broken)]
    await stage.run()
    assert ([], [("before_tool", "none"), ("before_tool", "error")]) == (stage.ran, stage.outcomes)
    assert "it raised LookupError: no such thing" in stage.results[0]


async def test_a_python_hook_that_hangs_does_not_hang_the_run(stage: Stage) -> None:
    """A Python hook whose time is up is left behind; the call is refused and the run goes on."""
    stage.script(ONE_CALL)
    release: list[bool] = []

    def hangs(event: Any) -> None:
        while not release:
            time.sleep(0.01)

    stage.hooks = [function("before_tool", hangs, timeout=0.2)]
    with trio.fail_after(20):
        await stage.run()
    release.append(True)
    assert [] == stage.ran
    assert "did not end within 0.2 s" in stage.results[0]


# --- resume ----------------------------------------------------------------------------------------------------------


async def test_a_hook_on_record_is_not_run_again_for_its_call(stage: Stage) -> None:
    """Killed between a hook and its call, a resumed run takes the hook's answer from the record."""
    stage.script(ONE_CALL)
    body = "print(json.dumps({'arguments': {'thing': 'once'}, 'context': 'told once'}))"
    stage.settings(f"hooks: {{before_tool: '{stage.command('once', body)}'}}")
    await stage.run()
    stage.ran.clear()
    await stage.resume(lambda event: isinstance(event, HookFinished))
    assert (1, ["once"]) == (len(stage.told("once")), stage.ran)
    assert ["acted on once\n\nFrom a hook:\ntold once"] == stage.results


async def test_the_arguments_of_a_call_that_had_begun_stay_as_they_were(stage: Stage) -> None:
    """Killed while a call ran, a resumed run knows the call by the arguments it was run with, and runs no hook."""
    seen: list[Any] = []

    def check(arguments: JsonObject) -> str:
        seen.append(arguments)
        return "it was done"

    stage.act = attrs.evolve(stage.act, check=check)
    stage.script(ONE_CALL)
    body = "print(json.dumps({'arguments': {'thing': 'other'}, 'context': 'why'}))"
    stage.settings(f"hooks: {{before_tool: '{stage.command('once', body)}'}}")
    await stage.run()
    await stage.resume(lambda event: isinstance(event, ToolStarted))
    assert [{"thing": "other"}] == seen
    assert 1 == len(stage.told("once"))
    assert ["it was done\n\nFrom a hook:\nwhy"] == stage.results


async def test_a_human_is_asked_about_what_the_hook_made_of_the_call_over_restarts_too(stage: Stage) -> None:
    """What a human has been asked about is what runs once they allow it, also in a later process."""
    stage.script(ONE_CALL)
    stage.allow, stage.headless = (), True
    body = "print(json.dumps({'arguments': {'thing': 'other'}}))"
    stage.settings(f"hooks: {{before_tool: '{stage.command('once', body)}'}}")
    async with stage.opened() as live:
        assert await live.report() is None
    [request] = stage.of(ApprovalRequested)
    assert {"thing": "other"} == request.arguments
    stage.headless = False
    records = stage.journal.records
    stage.journal = type(stage.journal)(records)
    state = replay(records)
    async with stage.opened(Resumption(state, Limits.from_json(state.limits))) as live:
        await asked(live)
        await live.approvals.decide(request.id, "allow", "you")
        await live.report()
    assert ["other"] == stage.ran
    assert 1 == len(stage.told("once"))


async def test_the_outcome_is_the_same_wherever_a_run_with_hooks_is_killed(stage: Stage) -> None:
    """Killed after any event, a run with hooks comes to the same end, and its hooks before calls run once for each."""
    stage.script("""
        a:
          - calls: [{name: act, arguments: {thing: x}}, {name: act, arguments: {thing: y}}]
          - text: done
    """)
    counts: dict[str, int] = {}

    def rewrite(event: Any) -> Any:
        counts[event["tool_use_id"]] = counts.get(event["tool_use_id"], 0) + 1
        return {"arguments": {"thing": event["tool_input"]["thing"].upper()}, "context": "c"}

    stage.hooks = [
        function("actor_start", {"context": "Be brief."}),
        function("before_model", {"context": "Think."}),
        function("before_tool", rewrite),
    ]
    stage.act = attrs.evolve(stage.act, effects="idempotent")
    await stage.run()
    whole = [each.result for each in stage.of(ToolFinished)]
    records = stage.journal.records
    for cut in range(3, len(records) - 1):
        counts.clear()
        stage.journal = type(stage.journal)(records[:cut])
        done = sum(isinstance(record.event, HookFinished) and bool(record.event.call_id) for record in records[:cut])
        report = await stage.resume()
        assert ("completed", "done") == (report.status, report.text)
        assert whole == [each.result for each in stage.of(ToolFinished)]
        assert sum(counts.values()) == 2 - done
        requested = [event for event in stage.of(HookFinished) if event.event == "before_model"]
        assert len({event.turn for event in stage.of(ModelRequested)}) == len(requested)
        assert 1 == sum(event.event == "actor_start" for event in stage.of(HookFinished))


async def asked(live: LiveRun) -> None:
    """Until a human is asked."""
    async with live.stream.subscribe() as reader:
        with trio.fail_after(10):
            async for record in reader:
                if isinstance(record.event, RunWaiting | ApprovalRequested) and live.approvals.pending:
                    return


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
