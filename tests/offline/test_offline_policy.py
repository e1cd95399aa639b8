"""What the offline policy does with whatever it is offered and whatever comes back."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.messages import (
    AssistantMessage,
    Message,
    ResultKind,
    Text,
    ToolCall,
    ToolResult,
    ToolResults,
    Usage,
    UserMessage,
    assign_call_ids,
)
from runtime.model import ModelRequest, Reply, ToolSpec
from runtime.providers import offline_digest as say
from runtime.providers.offline_policy import beyond_it, decide

QUESTION = "How are words split?"
QUOTES = f"""\
Question: {QUESTION}
- parse.py:2: "return s.split()" under words
- README.md:9: "Words are separated by blanks." under Elenco
"""
FOUND = f"{QUOTES}Read 3 files. Nothing found on: quoting."
CHECKED = f"{QUOTES}2 quotes re-read, 0 dropped.\nRead 3 files. Nothing found on: quoting."
DIGEST = f"""\
{QUESTION}
  "return s.split()"                [parse.py:2]
  "Words are separated by blanks."  [README.md:9]
Read 3 files. Nothing found on: quoting."""


@attrs.frozen
class Talk:
    """A conversation in the making."""

    tools: tuple[str, ...]
    messages: tuple[Message, ...] = (UserMessage(QUESTION),)

    def reply(self, *, last: bool = False) -> Reply:
        tools = tuple(ToolSpec(name, "", {}) for name in self.tools)
        return decide(ModelRequest("extract", (), self.messages, tools, "none" if last else "auto"))

    def text(self, *, last: bool = False) -> str:
        reply = self.reply(last=last)
        assert () == tuple(part for part in reply.parts if isinstance(part, ToolCall))
        return "".join(part.text for part in reply.parts if isinstance(part, Text))

    def calls(self) -> list[str]:
        return [part.name for part in self.reply().parts if isinstance(part, ToolCall)]

    def told(self, *results: str, kind: ResultKind = "ok") -> Talk:
        """The conversation after the next calls came back with these results."""
        reply = self.reply()
        message = assign_call_ids(AssistantMessage(reply.parts, reply.finish), f"t{len(self.messages)}")
        assert len(message.calls) == len(results)
        answers = (
            ToolResult(call.id, call.name, text, kind) for call, text in zip(message.calls, results, strict=True)
        )
        return self.plus(message, ToolResults(tuple(answers)))

    def plus(self, *messages: Message) -> Talk:
        return attrs.evolve(self, messages=(*self.messages, *messages))


def team(*children: str) -> Talk:
    return Talk((*(f"delegate_to_{child}" for child in children), "list_files", "read_file"))


TEAM = team("researcher", "reviewer", "writer")


def test_the_digest_looks_as_promised() -> None:
    """Question, quotes with their places in one column, and what was looked at: nothing else."""
    assert DIGEST == Talk((), (UserMessage(CHECKED),)).text()


def test_the_coordinator_sends_what_came_back_on_as_text() -> None:
    """The coordinator goes from researcher to reviewer to writer, hands the quotes on, and answers with the digest."""
    talk = TEAM
    tasks: list[str] = []
    for name, result in (("researcher", FOUND), ("reviewer", CHECKED), ("writer", DIGEST)):
        (call,) = (part for part in talk.reply().parts if isinstance(part, ToolCall))
        assert call.name == f"delegate_to_{name}"
        assert call.arguments is not None
        tasks.append(call.arguments["task"])
        talk = talk.told(result)
    assert all(f"Question: {QUESTION}" in task for task in tasks)
    assert all('- parse.py:2: "return s.split()" under words' in task for task in tasks[1:])
    assert DIGEST == talk.text()


@pytest.mark.parametrize("children", [("researcher",), ("researcher", "writer"), ("digger",)])
def test_without_a_reviewer_the_digest_says_so(children: tuple[str, ...]) -> None:
    """With only some of the cast there is still a digest; without a reviewer it says that nothing was re-read."""
    talk = team(*children).told(FOUND)
    if "writer" in children:
        talk = talk.told(Talk((), (UserMessage(FOUND),)).text())
    assert f"{DIGEST}\n{say.UNCHECKED}" == talk.text()


def test_without_a_writer_the_coordinator_makes_the_digest() -> None:
    """Without a writer the coordinator makes the digest itself."""
    assert DIGEST == team("researcher", "reviewer").told(FOUND).told(CHECKED).text()


def test_a_coordinator_that_can_search_needs_no_researcher() -> None:
    """A coordinator that may search for passages does the research itself."""
    talk = Talk(("delegate_to_writer", "search_passages"))
    assert ["search_passages"] == talk.calls()
    assert ["delegate_to_writer"] == talk.told(SEARCHED).calls()


@pytest.mark.parametrize("kind", ["error", "refused", "unknown"])
def test_a_child_that_cannot_answer_is_told_of(kind: ResultKind) -> None:
    """A researcher that fails ends the work with one line that says why; reviewer and writer can be missed."""
    why = "refused: a run of this agent may have 3 children"
    assert f"researcher could not answer: {why}" == TEAM.told(why, kind=kind).text()
    unchecked = TEAM.told(FOUND).told("crashed", kind=kind)
    assert ["delegate_to_writer"] == unchecked.calls()
    assert f"{DIGEST}\n{say.UNCHECKED}" == unchecked.told("crashed", kind=kind).text()


def test_partial_work_is_used() -> None:
    """What a stopped or failed researcher had found by then is used."""
    for kind in ("ok", "error"):
        partial = f"researcher-1 was stopped (max_steps): 4 of 4\n\nIts partial work:\n{FOUND}"
        assert ["delegate_to_reviewer"] == TEAM.told(partial, kind=kind).calls()


def test_an_interrupted_child_is_asked_once_more() -> None:
    """A child that was interrupted is asked once more, and not again."""
    once = TEAM.told("interrupted", kind="interrupted")
    assert ["delegate_to_researcher"] == once.calls()
    assert "researcher could not answer: interrupted" == once.told("interrupted", kind="interrupted").text()


def test_quotes_that_are_gone_are_not_shown() -> None:
    """Where the reviewer drops every quote, nothing is found."""
    dropped = f"Question: {QUESTION}\n2 quotes re-read, 2 dropped.\nRead 3 files."
    text = TEAM.told(FOUND).told(dropped).text()
    assert "Nothing found: 2 quotes no longer stood in the files when re-read." == text.split("\n")[1]


def test_nothing_found_tells_how_to_connect_a_model() -> None:
    """A question without a match gets `Nothing found`, and how to connect a model."""
    text = TEAM.told(f"Question: {QUESTION}\nSearched 0 files. Nothing found on: words.").text()
    assert f"{QUESTION}\nNothing found on: words.\n{say.ONLY_QUOTES}" == text
    assert "ANTHROPIC_API_KEY" in text
    assert "--base-url" in text


def test_a_report_that_is_no_hand_over_is_passed_on() -> None:
    """A report in another form, from a child with a real model, is passed on as it is."""
    assert "They are split at blanks." == TEAM.told("They are split at blanks.").text()


def test_the_best_partial_answer_ends_every_stage() -> None:
    """When no call is possible any more, the answer is the best there is by then."""
    assert f"{QUESTION}\n{say.TOO_EARLY}" == TEAM.text(last=True)
    assert f"{DIGEST}\n{say.UNCHECKED}" == TEAM.told(FOUND).text(last=True)
    assert DIGEST == TEAM.told(FOUND).told(CHECKED).text(last=True)
    assert DIGEST == attrs.evolve(TEAM.told(FOUND).told(CHECKED), tools=()).text()


SEARCHED = (
    "a.md:1-1  2.00  Words\n1\tWords are split at blanks.\n\nWords: words 1, split 1; of 9 passages.\nSearched 2 files."
)


def test_the_researcher_reads_before_it_quotes() -> None:
    """The researcher searches, reads what it found, and quotes what it read."""
    talk = Talk(("search_passages", "read_file")).told(SEARCHED)
    assert ["read_file"] == talk.calls()
    read = talk.told("a.md: lines 1-1 of 1\n1\tWords are split at every blank.").text()
    assert f'Question: {QUESTION}\n- a.md:1: "Words are split at every blank." under Words\nRead 1 file.' == read


def test_the_researcher_does_with_what_it_has() -> None:
    """Without read_file, or when stopped before reading, the researcher quotes what the search showed."""
    quoted = f'Question: {QUESTION}\n- a.md:1: "Words are split at blanks." under Words\nSearched 2 files.'
    assert quoted == Talk(("search_passages",)).told(SEARCHED).text()
    assert quoted == Talk(("search_passages", "read_file")).told(SEARCHED).text(last=True)


def test_a_search_that_fails_is_told_of() -> None:
    """A search or a reading that fails gives one line that says why."""
    talk = Talk(("search_passages", "read_file"))
    assert "search_passages could not answer: denied" == talk.told("denied\nmore", kind="refused").text()
    assert "read_file could not answer: gone" == talk.told(SEARCHED).told("gone", kind="error").text()


def test_forgotten_words_are_searched_once_more() -> None:
    """Words the files hold but no passage shown has are searched for once more."""
    found = "a.md:1-1  2.00\n1\tWords.\n\nWords: words 1, split 3; of 9 passages.\nSearched 2 files."
    talk = Talk(("search_passages", "read_file")).told(found)
    (call,) = (part for part in talk.reply().parts if isinstance(part, ToolCall))
    assert call.name == "search_passages"
    assert {"query": "split", "top": 8} == call.arguments
    assert ["read_file"] == talk.told(SEARCHED).calls()


def test_the_reviewer_reads_every_quote_and_drops_what_changed() -> None:
    """The reviewer reads every quote again, drops what is not there word for word and marks what hardly fits."""
    weak = '- a.md:4: "Nothing of the kind."\n'
    talk = Talk(("read_file",), (UserMessage(f"Check.\n{QUOTES}{weak}Read 3 files."),))
    assert ["read_file"] * 3 == talk.calls()
    text = talk.told("2\t    return s.split()", "9\tWords were separated by blanks.", "4\tNothing of  the kind.").text()
    assert (
        f'Question: {QUESTION}\n- parse.py:2: "return s.split()" under words\n'
        '- a.md:4: "Nothing of the kind." (weak)\n3 quotes re-read, 1 dropped.\nRead 3 files.'
    ) == text


def test_weak_quotes_stand_apart() -> None:
    """Weak quotes stand apart, below the others."""
    text = Talk((), (UserMessage(f'{QUOTES}- a.md:4: "Blank." (weak)\nRead 3 files.'),)).text()
    assert f'{say.WEAK}\n  "Blank."  [a.md:4]\nRead 3 files.' in text


def test_what_a_human_says_meanwhile_joins_the_question() -> None:
    """What a human says while the work goes on joins the question; after the answer it is a new one."""
    steered = TEAM.told(FOUND).plus(UserMessage("also quoting", "steer"))
    (call,) = (part for part in steered.reply().parts if isinstance(part, ToolCall))
    assert call.arguments is not None
    assert call.arguments["task"].endswith(f"Question: {QUESTION} also quoting")
    answered = TEAM.plus(AssistantMessage((Text("done"),)), UserMessage("And numbers?", "steer"))
    (call,) = (part for part in answered.reply().parts if isinstance(part, ToolCall))
    assert call.arguments is not None
    assert call.arguments["task"].endswith("Question: And numbers?")


def test_notes_of_the_runtime_are_no_part_of_the_task() -> None:
    """Notes of the runtime are no part of the task."""
    assert TEAM.told(FOUND).reply() == TEAM.told(FOUND).plus(UserMessage("Wrap up now.", "note")).reply()


@pytest.mark.parametrize(
    "task",
    [
        "Write a poem",
        "please fix the bug in parse.py",
        "Translate README.md to Spanish",
        "what is 2 + 2?",
        "17 * 23",
        "Can you add a test?",
        "Implement retries.",
    ],
)
def test_what_needs_a_model_is_refused_in_one_sentence(task: str) -> None:
    """Code, changes, translations and sums are refused in one honest sentence."""
    assert beyond_it(task)
    assert say.CANNOT == attrs.evolve(TEAM, messages=(UserMessage(task),)).text()


@pytest.mark.parametrize(
    "task", [QUESTION, "Format of quotes?", "What does 2.0 change?", "Summarise docs", "list 3 rules"]
)
def test_questions_are_not_taken_for_orders(task: str) -> None:
    """Questions are not taken for orders."""
    assert not beyond_it(task)


def test_unknown_parts_are_declined() -> None:
    """Tools of no use here, a writer's task without quotes and an output schema get an honest sentence each."""
    assert say.NO_ROLE == Talk(("shell",)).text()
    assert say.NO_QUOTES == Talk(()).text()
    assert say.NO_QUOTES == Talk(("read_file",)).text()
    assert say.NO_ROLE == team("reviewer", "writer").text()
    request = ModelRequest("extract", (), (UserMessage(QUESTION),), output_schema={"type": "object"})
    assert (Text(say.NO_SCHEMA),) == decide(request).parts


def test_it_costs_nothing() -> None:
    """A reply has no tokens and a known cost of nothing."""
    assert (Usage(), 0.0) == (TEAM.reply().usage, TEAM.reply().cost_usd)


NOISE = st.one_of(
    st.sampled_from(
        [FOUND, CHECKED, DIGEST, SEARCHED, "", "1\tWords", "a.md:1-1  2.00\n\tx", "Words: a 1; of 2 passages."]
    ),
    st.text(max_size=80),
)
TEAMS: Sequence[tuple[str, ...]] = (
    TEAM.tools,
    ("search_passages", "read_file"),
    ("search_passages",),
    ("read_file",),
    (),
)


@settings(max_examples=200)
@given(
    st.sampled_from(TEAMS),
    st.one_of(NOISE, st.just(QUESTION)),
    st.lists(st.tuples(NOISE, st.sampled_from(["ok", "error"]))),
)
def test_it_always_ends_whatever_comes_back(
    tools: tuple[str, ...], task: str, results: list[tuple[str, ResultKind]]
) -> None:
    """Whatever tools answer, an actor ends within six replies, calls only what it was offered, and says something."""
    talk = Talk(tools, (UserMessage(task),))
    for turn in range(6):
        assert talk.reply() == talk.reply()
        assert talk.text(last=True)
        calls = talk.calls()
        assert set(calls) <= set(tools)
        if not calls:
            assert talk.text()
            return
        text, kind = results[turn] if turn < len(results) else ("", "ok")
        talk = talk.told(*[text] * len(calls), kind=kind)
    raise AssertionError("six replies and no end")
