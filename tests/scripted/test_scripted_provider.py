"""The scripted provider: replies, failures and cuts as the script says."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from runtime.errors import DefinitionError, UsageError
from runtime.messages import Reasoning, Text, ToolCall, Usage, UserMessage
from runtime.model import Delta, ModelRequest, Provider, ProviderError, Reply, ToolChoice
from runtime.providers.pieces import deltas
from runtime.providers.script import Script, Tokens, Turn, read_script
from runtime.providers.scripted import ScriptedProvider, reply_of


def provider(text: str) -> ScriptedProvider:
    return ScriptedProvider(read_script("s.yaml", textwrap.dedent(text)))


def ask(
    turn: int = 0, attempt: int = 0, *, agent: str = "a", actor: str = "", cap: int = 1000, choice: ToolChoice = "auto"
) -> ModelRequest:
    return ModelRequest(
        "s.yaml",
        (),
        (UserMessage("x" * 40),),
        tool_choice=choice,
        max_output_tokens=cap,
        agent=agent,
        actor=actor or agent,
        turn=turn,
        attempt=attempt,
    )


async def reply(model: Provider, request: ModelRequest) -> tuple[Reply, list[Delta]]:
    seen: list[Delta] = []

    def emit(pieces: Sequence[Delta]) -> None:
        seen.extend(pieces)

    return await model.complete(request, emit), seen


def text_of(answer: Reply) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Text))


def calls_of(answer: Reply) -> list[ToolCall]:
    return [part for part in answer.parts if isinstance(part, ToolCall)]


async def test_a_script_of_one_reply_is_used_up_after_it() -> None:
    """One reply is told as one, not as several."""
    model = provider("a: [done]")
    with pytest.raises(ProviderError, match="it has 1 reply, a asks for number 2"):
        await reply(model, ask(1))


async def test_turns_come_in_order_and_are_streamed() -> None:
    """Turns come in order, streamed in several pieces, with their calls and usage."""
    model = provider("""\
        a:
          - reasoning: let me see
            text: I will ask.
            calls: [{name: now, arguments: {zone: UTC}}]
            usage: {input: 100, output: 20}
          - done
        """)
    first, seen = await reply(model, ask())
    assert "tool_calls" == first.finish
    assert Usage(100, 20) == first.usage
    assert Reasoning("let me see") == first.parts[0]
    assert [("now", {"zone": "UTC"})] == [(call.name, call.arguments) for call in calls_of(first)]
    for kind, whole in (("reasoning", "let me see"), ("text", "I will ask."), ("arguments", '{"zone": "UTC"}')):
        pieces = [delta.text for delta in seen if delta.kind == kind]
        assert len(pieces) > 1
        assert whole == "".join(pieces)
    last, _ = await reply(model, ask(1))
    assert ("done", "stop") == (text_of(last), last.finish)


async def test_a_used_up_script_is_an_error_that_says_so() -> None:
    """A script that is used up, or has no list for an agent, is an error that says so and is not tried again."""
    model = provider("a:\n  - {text: x, repeat: 2}\n")
    with pytest.raises(ProviderError, match="'a' is used up: it has 2 replies, a asks for number 3") as caught:
        await reply(model, ask(2))
    assert ("provider", False) == (caught.value.kind, caught.value.retryable)
    with pytest.raises(ProviderError, match="no turns for 'b'; it has a"):
        await reply(model, ask(agent="b"))


async def test_every_instance_starts_afresh() -> None:
    """Every instance of an agent starts its list afresh; one with a list of its own uses that."""
    model = provider("a: [x, y]\na-2: [z]\n")
    answers = [
        (await reply(model, ask(turn, actor=f"root/a-{number}")))[0] for turn, number in ((0, 1), (1, 3), (0, 2))
    ]
    assert ["x", "y", "z"] == [text_of(answer) for answer in answers]


async def test_failures_come_before_the_next_turn() -> None:
    """A failure comes as often as it says, then the next turn; what was streamed before it is its partial."""
    model = provider("""\
        a:
          - fail: {kind: rate_limit, times: 2, retry_after: 3}
          - fail: {kind: http, status: 503}
            text: half a
            usage: {input: 5, output: 2}
          - ok
          - fail: {kind: auth, message: no key}
        """)
    for attempt in (0, 1):
        with pytest.raises(ProviderError, match="scripted failure: rate_limit") as limited:
            await reply(model, ask(attempt=attempt))
        assert (True, 3.0, None) == (limited.value.retryable, limited.value.retry_after, limited.value.partial)
    with pytest.raises(ProviderError) as broken:
        await reply(model, ask(attempt=2))
    assert (True, 503) == (broken.value.retryable, broken.value.status)
    assert broken.value.partial is not None
    assert ("half a", Usage(5, 2)) == (text_of(broken.value.partial), broken.value.partial.usage)
    answer, _ = await reply(model, ask(attempt=3))
    assert "ok" == text_of(answer)
    with pytest.raises(ProviderError, match="no key") as refused:
        await reply(model, ask(1))
    assert not refused.value.retryable
    assert {} == model.unused()


async def test_a_stall_is_waited_for(autojump_clock: MockClock) -> None:
    """A stalled turn answers after its seconds; cancelled meanwhile, it leaves nothing."""
    model = provider("a:\n  - {stall: 5, text: x}\n")
    started = trio.current_time()
    await reply(model, ask())
    assert 5 == trio.current_time() - started
    with trio.move_on_after(1) as scope:
        await reply(model, ask())
    assert scope.cancelled_caught


async def test_calls_are_ignored_where_tools_are_off() -> None:
    """In a tools-off turn the next entry is used and its calls are ignored."""
    model = provider("a:\n  - {text: best so far, calls: [{name: now}]}\n  - calls: [{name: now}]\n")
    answer, _ = await reply(model, ask(choice="none"))
    assert ("best so far", "stop", []) == (text_of(answer), answer.finish, calls_of(answer))
    answer, seen = await reply(model, ask(1, choice="none"))
    assert ((), "stop", []) == (answer.parts, answer.finish, seen)


async def test_the_output_cap_is_honoured() -> None:
    """What exceeds the output cap is cut: four characters a token, or by what the script says of its usage."""
    model = provider(f"""\
        a:
          - text: {"x" * 400}
          - {{text: {"x" * 400}, usage: {{input: 1, output: 200}}}}
          - {{text: ab, calls: [{{name: now, arguments: {{zone: {"z" * 400}}}}}, {{name: now}}]}}
        """)
    answer, _ = await reply(model, ask(cap=50))
    assert (200, "length", 50) == (len(text_of(answer)), answer.finish, answer.usage.output if answer.usage else 0)
    answer, _ = await reply(model, ask(1, cap=50))
    assert (100, Usage(1, 50)) == (len(text_of(answer)), answer.usage)
    answer, _ = await reply(model, ask(2, cap=50))
    (call,) = calls_of(answer)
    assert call.arguments is None
    assert "cut off" in (call.arguments_error or "")
    assert call.raw.startswith('{"zone": "zzz')
    uncut, _ = await reply(model, ask(2, cap=1000))
    assert ("tool_calls", 2) == (uncut.finish, len(calls_of(uncut)))


def test_the_counter_answers_what_the_script_says() -> None:
    """The counter answers a turn's scripted input, and nothing where the script is silent."""
    model = provider("a:\n  - {text: x, usage: {input: 700}}\n  - y\n")
    assert [700, None, None] == [model.count(ask(turn)) for turn in range(3)]
    assert model.count(ask(agent="b")) is None


async def test_unsaid_usage_is_estimated_and_null_is_unknown() -> None:
    """Where a script says nothing of usage it is estimated and marked so; `usage: null` reports none at all."""
    model = provider("a:\n  - text: 12345678\n  - {text: x, usage: null}\n".replace("12345678", "'12345678'"))
    answer, _ = await reply(model, ask())
    assert Usage(10, 2, estimated=True) == answer.usage
    answer, _ = await reply(model, ask(1))
    assert answer.usage is None


async def test_what_was_not_used_is_known() -> None:
    """Entries no actor has come to are counted by list, so that a test can ask for none."""
    model = provider("a: [x, {text: y, repeat: 9}, z]\nb: [x]\n")
    await reply(model, ask())
    await reply(model, ask(1))
    assert {"a": 1, "b": 1} == model.unused()
    await reply(model, ask(10))
    await reply(model, ask(agent="b"))
    assert {} == model.unused()


async def test_a_finish_can_be_set() -> None:
    """A scripted finish takes the place of the natural one."""
    answer, _ = await reply(provider("a:\n  - {text: no, finish: refusal}\n"), ask())
    assert "refusal" == answer.finish


def test_scripts_are_loaded_from_files(tmp_path: Path) -> None:
    """A script is loaded from a file; one that is missing or wrong is told by its path."""
    (tmp_path / "s.yaml").write_text("a: [x]\n")
    assert {"a": 1} == ScriptedProvider.load(tmp_path / "s.yaml").unused()
    with pytest.raises(UsageError, match=r"cannot read the script .*none\.yaml: No such file"):
        ScriptedProvider.load(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no UTF-8"):
        ScriptedProvider.load(tmp_path / "bad.yaml")
    (tmp_path / "wrong.yaml").write_text("a: [{txt: x}]\n")
    with pytest.raises(DefinitionError, match=r"wrong\.yaml:1:6"):
        ScriptedProvider.load(tmp_path / "wrong.yaml")


WORDS = st.text(st.sampled_from("abc \n"), max_size=60)
CALLS = st.lists(st.dictionaries(st.sampled_from("xy"), WORDS, max_size=2), max_size=3)


@given(WORDS, WORDS, CALLS, st.one_of(st.none(), st.integers(0, 60)), st.integers(1, 40))
def test_no_reply_is_larger_than_its_cap(
    text: str, reasoning: str, calls: list[dict[str, str]], output: int | None, cap: int
) -> None:
    """Whatever a turn says, its reply never uses more than the cap, is a beginning of it, and streams to itself."""
    turns = json.dumps(
        {"a": [{"text": text, "reasoning": reasoning, "calls": [{"name": "f", "arguments": c} for c in calls]}]}
    )
    turn = attrs.evolve(read_script("s.yaml", turns).turns["a"][0], usage=Tokens(output=output))
    short, whole = reply_of(turn, ask(cap=cap)), reply_of(turn, ask(cap=10_000))
    assert short.usage is not None
    assert short.usage.output <= cap
    assert text.startswith(text_of(short))
    assert (short == whole) == (short.finish != "length")
    for mine, full in zip(calls_of(short), calls_of(whole), strict=False):
        assert mine == full or (mine.arguments is None and full.raw.startswith(mine.raw))
    streamed = "".join(delta.text for delta in deltas(short) if delta.kind == "text")
    assert text_of(short) == streamed


def test_an_empty_turn_is_a_reply_too() -> None:
    """A turn without any words gives an empty reply."""
    model = ScriptedProvider(Script("s.yaml", {"a": (Turn(1),)}))
    assert ((), "stop") == ((answer := reply_of(model.script.turns["a"][0], ask())).parts, answer.finish)
