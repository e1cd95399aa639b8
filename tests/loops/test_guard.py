"""What the guard says to plain sequences of steps, and what resets it."""

import json
from collections.abc import Iterable
from typing import Any

import attrs
import pytest

from runtime.limits.loops import (
    Block,
    CallSeen,
    Flags,
    Guard,
    GuardSettings,
    Ladder,
    Nudge,
    Ok,
    StepSeen,
    Stop,
    Verdict,
    note,
    rank,
)

READ = Flags(read_only=True)
CHANGE = Flags(mutates=True)
NOTES = Flags()
POLL = Flags(read_only=True, poll=True)


def call(name: str, result: str, flags: Flags = READ, error: bool = False, **arguments: Any) -> CallSeen:
    return CallSeen(name, arguments, result, error, 0.1, flags)


def watch(guard: Guard, calls: Iterable[CallSeen]) -> list[int]:
    """How bad each verdict was: 0 ok, 1 nudge, 2 block, 3 stop."""
    return [rank(guard.observe(StepSeen("", (one,)))) for one in calls]


LS = call("shell", "total 8\n-rw-r--r-- a.py\n-rw-r--r-- b.py", CHANGE, command="ls -la")


def test_same_call_with_the_same_result_climbs_the_ladder() -> None:
    """The third is nudged, the sixth blocked, the seventh stops the actor."""
    assert [0, 0, 1, 1, 1, 2, 3] == watch(Guard(), [LS] * 7)


def test_verdict_names_the_call_and_how_often_it_came() -> None:
    """A person and a model can read what went wrong."""
    guard = Guard()
    watch(guard, [LS] * 2)
    verdict = guard.observe(StepSeen("", (LS,)))
    assert isinstance(verdict, Nudge)
    assert 'shell "ls -la": same call, same result, 3 times' == verdict.why
    assert ("repeat", ('shell "ls -la"',), 3) == (
        verdict.evidence.kind,
        verdict.evidence.calls,
        verdict.evidence.times,
    )
    assert note(verdict).startswith('[loop guard] shell "ls -la": same call')


def test_evidence_fits_an_event() -> None:
    """Every verdict's facts are plain values that JSON can carry, however large the call was."""
    guard = Guard()
    big = call("write_file", "no space left on device " * 2000, CHANGE, True, path="a", content="x" * 50_000)
    for _ in range(7):
        verdict = guard.observe(StepSeen("", (big,)))
        if not isinstance(verdict, Ok):
            text = json.dumps(attrs.asdict(verdict.evidence)) + verdict.why
            assert 1000 > len(text)


def test_cycle_is_flagged_after_its_third_period() -> None:
    """A, B, A, B, A, B with constant results is flagged when the third period ends (opencode #47759)."""
    a, b = call("read_file", "alpha\nbeta", path="a"), call("read_file", "gamma\ndelta", path="b")
    verdicts = watch(Guard(), [a, b] * 3)
    assert [0, 0, 0, 0] == verdicts[:4]
    assert max(verdicts[4:]) == 1


def test_cycle_is_described_as_one() -> None:
    """The evidence holds the calls of the circle, not just the latest."""
    guard = Guard()
    a, b = call("read_file", "alpha\nbeta", path="a"), call("read_file", "gamma\ndelta", path="b")
    watch(guard, [a, b] * 4)
    verdict = guard.observe(StepSeen("", (a,)))
    assert isinstance(verdict, Nudge)
    assert "cycle" == verdict.evidence.kind
    assert {'read_file "a"', 'read_file "b"'} == set(verdict.evidence.calls)


def test_a_child_that_repeats_one_search_is_ended_within_a_handful() -> None:
    """364 equal searches (opencode #45442) come to seven."""
    grep = call("grep", "a.py:1: TODO\nb.py:9: TODO", pattern="TODO", path="/data")
    verdicts = watch(Guard(), [grep] * 364)
    assert 6 == verdicts.index(3)
    assert {3} == set(verdicts[6:])


def test_good_calls_with_the_same_short_answer_are_no_loop() -> None:
    """attach a, b, c each answered `true` is work (pydantic-deepagents #208)."""
    calls = [call("attach", "true", CHANGE, file=f"{name}.pdf") for name in "abcdefghijkl"]
    assert {0} == set(watch(Guard(), calls))


def receipt(number: int) -> str:
    return json.dumps({"ok": True, "message_id": f"id-{number * 7919}", "sent_at": f"2026-01-01T10:00:{number:02d}Z"})


def test_a_fresh_message_id_does_not_hide_the_repetition() -> None:
    """send x 10 whose results differ only in id and time is flagged (openclaw #89090)."""
    calls = [call("send", receipt(i), CHANGE, to="#ops", text="Import finished now") for i in range(10)]
    verdicts = watch(Guard(), calls)
    assert 1 == verdicts[4]
    assert 3 in verdicts


def test_declared_fields_are_ignored_in_arguments_and_results() -> None:
    """With `ignore_fields`, a fresh request id makes neither a new call nor a new result."""
    calls = [
        CallSeen(
            "lookup", {"q": "x", "request_id": i}, json.dumps({"hits": ["a", "b"], "request_id": i}), False, 0.1, READ
        )
        for i in range(7)
    ]
    assert [0, 0, 1, 1, 1, 2, 3] == watch(Guard(GuardSettings(ignore_fields=("request_id",))), calls)
    assert {0} == set(watch(Guard(), calls))


def test_compaction_does_not_wipe_the_guard() -> None:
    """Two repeats, a compaction and three more count as five (HolmesGPT PR 2433)."""
    guard = Guard()
    watch(guard, [LS] * 2)
    guard.note("compaction")
    watch(guard, [LS] * 2)
    verdict = guard.observe(StepSeen("", (LS,)))
    assert isinstance(verdict, Nudge)
    assert 5 == verdict.evidence.times


def test_reading_once_more_after_a_compaction_is_not_held_against_it() -> None:
    """The first reading after the context was lost is answered with silence; the next is not."""
    guard = Guard()
    page = call("read_file", "alpha\nbeta\ngamma", path="a")
    assert [0, 0] == watch(guard, [page] * 2)
    guard.note("compaction")
    assert [0, 1] == watch(guard, [page] * 2)


def test_a_second_compaction_without_progress_excuses_nothing() -> None:
    """Reading the same set anew in every context is a loop too."""
    guard = Guard()
    pages = [call("read_file", f"{name}\n{name * 2}", path=name) for name in "abcd"]
    verdicts: list[int] = []
    for _ in range(7):
        verdicts += watch(guard, pages)
        guard.note("compaction")
    assert {0} == set(verdicts[:8])
    assert 3 in verdicts


@pytest.mark.parametrize("event", ["continuation", "resume"])
def test_what_is_no_news_does_not_reset(event: Any) -> None:
    """The harness saying "go on" and a restart leave the count as it was."""
    guard = Guard()
    watch(guard, [LS] * 2)
    guard.note(event)
    assert [1] == watch(guard, [LS])


def test_a_human_wipes_the_slate() -> None:
    """After a human's message the same call is asked for anew, even if the guard had stopped the actor."""
    guard = Guard()
    watch(guard, [LS] * 7)
    assert isinstance(guard.observe(StepSeen("", (LS,))), Stop)
    assert isinstance(guard.observe(StepSeen("", (LS,), event="user_message")), Ok)
    assert [0, 1] == watch(guard, [LS] * 2)


def test_a_change_in_the_world_starts_the_count_over() -> None:
    """Test, edit, test, edit with an outcome that stays the same is work."""
    test = call("shell", "3 failed", CHANGE, True, command="pytest")
    for_ever = [one for i in range(30) for one in (call("edit", "ok", CHANGE, old=f"a{i}", new=f"b{i}"), test)]
    assert {0} == set(watch(Guard(), for_ever))


def test_a_failing_change_is_no_change() -> None:
    """An edit that fails does not excuse reading the file again and again."""
    edit, page = call("edit", "old text not found", CHANGE, True, old="a", new="b"), call("read_file", "x\ny", path="a")
    assert 3 in watch(Guard(), [page, edit] * 7)


def test_own_notes_are_no_progress() -> None:
    """Rewriting the plan between equal looks does not make them new."""
    look = call("git_status", "clean\nnothing to commit")
    steps = [one for i in range(7) for one in (look, call("todo_write", "saved", NOTES, items=[f"step {i}"]))]
    assert 3 in watch(Guard(), steps)


def test_whoever_only_notes_fact_after_fact_is_warned_and_stopped() -> None:
    """Facts that differ, one a reply: warned from the sixth, stopped at the thirteenth; all in one reply: no end."""
    noted = [call("remember", f"remembered as fact {i}", NOTES, fact=a) for i, a in enumerate("abcdefghijklm")]
    assert [0] * 5 + [1] * 6 + [2, 3] == watch(Guard(), noted)
    assert 2 == rank(Guard().observe(StepSeen("", tuple(noted))))


def test_key_order_and_number_form_do_not_matter() -> None:
    """10 and 10.0 are one number, and keys may come in any order."""
    forms: list[dict[str, Any]] = [{"limit": 10, "path": "a"}, {"path": "a", "limit": 10.0}, {"path": "a", "limit": 10}]
    calls = [CallSeen("read_file", form, "alpha\nbeta", False, 0.1, READ) for form in forms]
    assert [0, 0, 1] == watch(Guard(), calls)


def test_equal_calls_in_one_reply_are_one_mistake() -> None:
    """Twenty equal calls emitted together get a nudge, not a stop: the model had not seen the first result."""
    assert 1 == rank(Guard().observe(StepSeen("", (LS,) * 20)))


def test_two_equal_calls_in_one_reply_are_let_pass() -> None:
    """A slip is not worth a word."""
    assert 0 == rank(Guard().observe(StepSeen("", (LS,) * 2)))


def test_refused_call_does_not_run_and_may_not_be_asked_for_again() -> None:
    """A blocked call is refused before it runs, and the refusal, fed back, does not break the streak."""
    guard = Guard()
    watch(guard, [LS] * 6)
    refusal = guard.precheck("shell", {"command": "ls -la"})
    assert refusal is not None
    assert guard.precheck("shell", {"command": "pwd"}) is None
    refused = CallSeen("shell", {"command": "ls -la"}, refusal.why, True, 0.0, CHANGE)
    assert [3] == watch(guard, [refused])


def test_block_is_lifted_by_news() -> None:
    """Once something new has come, the blocked call may be tried again."""
    guard = Guard()
    watch(guard, [LS] * 6)
    watch(guard, [call("edit", "ok", CHANGE, old="a", new="b")])
    assert guard.precheck("shell", {"command": "ls -la"}) is None
    assert [0, 0, 1] == watch(guard, [LS] * 3)


def test_a_refusal_without_a_block_teaches_nothing() -> None:
    """A result that says it was refused is never news, even where the block has been lifted since."""
    guard = Guard()
    page = call("read_file", "alpha\nbeta", path="a")
    watch(guard, [page] * 2)
    refused = call("read_file", "refused: same call, same result; it did not run", error=True, path="a")
    assert [1, 1, 1, 2] == watch(guard, [refused] * 4)


def test_block_lists_the_calls_it_refuses() -> None:
    """The runtime learns names and arguments of what is refused from now on."""
    guard = Guard()
    watch(guard, [LS] * 5)
    verdict = guard.observe(StepSeen("", (LS,)))
    assert isinstance(verdict, Block)
    assert (("shell", '{"command":"ls -la"}'),) == verdict.calls


def test_stop_is_final_and_refuses_everything() -> None:
    """After a stop no call passes and every step gets the same verdict."""
    guard = Guard()
    watch(guard, [LS] * 7)
    assert guard.precheck("anything", {}) is not None
    assert isinstance(guard.observe(StepSeen("another text")), Stop)


def test_same_failure_for_different_arguments_is_one_streak() -> None:
    """Trying ever new spellings against one failure is nudged at the fifth and ended soon after."""
    calls = [call("edit", "old text not found", CHANGE, True, path="a.py", old=f"line {i}") for i in range(12)]
    verdicts = watch(Guard(), calls)
    assert [0, 0, 0, 0, 1] == verdicts[:5]
    assert 3 in verdicts


def test_a_failure_said_without_the_error_flag_counts_the_same() -> None:
    """A tool that reports its failure as plain text has not changed anything."""
    calls = [call("edit", "Error: old text not found", CHANGE, path="a.py", old=f"line {i}") for i in range(12)]
    assert 3 in watch(Guard(), calls)


def test_polls_are_given_time() -> None:
    """A poll that says "pending" for an hour is never blocked while real time passes."""
    calls = [CallSeen("check_job", {"id": 1}, "pending", False, 60.0, POLL) for _ in range(60)]
    assert 2 > max(watch(Guard(), calls))


def test_busy_polling_is_ended() -> None:
    """The same poll without waiting is nudged by the eighth and ended by the twentieth."""
    verdicts = watch(Guard(), [call("check_job", "pending", POLL, id=1)] * 20)
    assert 1 in verdicts[:8]
    assert 3 in verdicts


def test_delegating_the_same_errand_again_is_flagged_however_the_answer_is_worded() -> None:
    """A child that says the same in other words brings no news."""
    answers = ["One module, no tests.", "A single module holds it; tests are missing.", "Still one untested module."]
    calls = [call("delegate_to_coder", answers[i % 3], CHANGE, task="Collect the facts about rates") for i in range(9)]
    verdicts = watch(Guard(), calls)
    assert 1 in verdicts[:5]
    assert 3 in verdicts


def test_a_tool_may_be_declared_to_delegate() -> None:
    """The flag does what the name does for others."""
    flags = Flags(mutates=True, delegates=True)
    answers = ["One module, no tests.", "A single module holds it; tests are missing."]
    calls = [call("oracle", answers[i % 2], flags, q="Collect the facts about rates") for i in range(9)]
    assert 3 in watch(Guard(), calls)


def test_errands_that_differ_in_one_name_are_different() -> None:
    """Review a.py, review b.py, review c.py: a fan-out, though every answer is the same."""
    calls = [
        call("delegate_to_reviewer", "No problems.", CHANGE, task=f"Review src/{n}.py for leaks") for n in "abcdefgh"
    ]
    assert {0} == set(watch(Guard(), calls))


def test_same_reply_without_work_is_flagged() -> None:
    """ "I wait" said again and again is a loop without a single call."""
    guard = Guard()
    verdicts = [rank(guard.observe(StepSeen("I will wait for the next instruction."))) for _ in range(5)]
    assert [0, 0, 1, 1, 3] == verdicts


def test_same_text_beside_work_is_no_matter() -> None:
    """What the model says beside calls that bring news is its own affair."""
    guard = Guard()
    for i in range(30):
        step = StepSeen("Still building, I look again.", (call("read_output", f"line {i}", POLL, id=1),))
        assert isinstance(guard.observe(step), Ok)


def test_a_chanting_reply_is_nudged_then_ended() -> None:
    """One reply that repeats itself gets a word; the second ends it."""
    guard = Guard()
    text = "Let me search for the function. I will look at the caller next. " * 30
    assert [1, 3] == [rank(guard.observe(StepSeen(text))) for _ in range(2)]


def test_off_means_off() -> None:
    """A guard switched off says nothing and refuses nothing."""
    guard = Guard(GuardSettings(off=True))
    assert {0} == set(watch(guard, [LS] * 50))
    assert guard.precheck("shell", {"command": "ls -la"}) is None


def test_tools_have_settings_of_their_own() -> None:
    """One tool may be left alone and another watched more closely than the rest."""
    settings = GuardSettings(tools={"shell": Ladder(off=True), "read_file": Ladder(2, 3, 4)})
    guard = Guard(settings)
    assert {0} == set(watch(guard, [LS] * 20))
    assert [0, 1, 2, 3] == watch(guard, [call("read_file", "alpha\nbeta", path="a")] * 4)


@pytest.mark.parametrize(("nudge", "block", "stop"), [(2, 2, 2), (3, 6, 7), (4, 8, 12), (10, 20, 30)])
def test_ladder_means_what_it_says(nudge: int, block: int, stop: int) -> None:
    """The same call with the same result is nudged, blocked and stopped at exactly the given occurrences."""
    calls = [LS] * (stop + 1)
    expected = [0 if n < nudge else 1 if n < block else 2 if n < stop else 3 for n in range(1, stop + 2)]
    assert expected == watch(Guard(GuardSettings(nudge, block, stop)), calls)


def test_guards_do_not_share_anything() -> None:
    """What one actor has done is nothing to another."""
    first, second = Guard(), Guard()
    watch(first, [LS] * 7)
    assert [0, 0] == watch(second, [LS] * 2)


def verdicts_of(*steps: StepSeen) -> list[Verdict]:
    guard = Guard()
    return [guard.observe(step) for step in steps]


def test_strange_input_is_taken_calmly() -> None:
    """Empty results, huge ones, lone surrogates and odd arguments are observed like any other."""
    odd = [
        CallSeen("t", {}, ""),
        CallSeen("t", {"x": {1: 2, "y": {3}}}, "a\ud800b"),
        CallSeen("t", {"deep": [[[[{"a": None}]]]]}, "line\n" * 20_000),
        CallSeen("", {"a": "\x00"}, "\x00" * 10),
    ]
    for one in odd:
        assert all(isinstance(verdict, Ok) for verdict in verdicts_of(StepSeen("", (one,)), StepSeen()))
