"""Reading scripts, and which turn of a list comes next."""

from __future__ import annotations

import textwrap

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import DefinitionError
from runtime.providers.script import Failure, Script, Tokens, Turn, read_script


def script(text: str) -> Script:
    return read_script("s.yaml", textwrap.dedent(text))


def faults(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        script(text)
    return [str(fault) for fault in caught.value.faults]


def test_a_script_is_read_whole() -> None:
    """Every key of a turn arrives."""
    read = script("""\
        coordinator:
          - text: "I will ask two people."
            reasoning: hm
            calls: [{name: delegate_to_researcher, arguments: {task: find}}, {name: now}, {name: bad, raw: "{", id: c}]
            usage: {input: 100, output: 20}
            stall: 5
            repeat: 3
            finish: length
            cost: 0.25
          - done
        researcher:
          - fail: {kind: overloaded, times: 2}
          - fail: auth
          - {say: "x", call: {name: now}, usage: null}
        """)
    first, last = read.turns["coordinator"]
    assert ("I will ask two people.", "hm", 5.0, 3, "length", 0.25) == (
        first.text,
        first.reasoning,
        first.stall,
        first.repeat,
        first.finish,
        first.cost,
    )
    assert [("delegate_to_researcher", {"task": "find"}), ("now", {}), ("bad", None)] == [
        (call.name, call.arguments) for call in first.calls
    ]
    assert "not valid JSON" in (first.calls[2].error or "")
    assert Tokens(input=100, output=20) == first.usage
    assert Turn(10, "done") == last
    overloaded, auth, x = read.turns["researcher"]
    assert Failure("overloaded", 2, retryable=True) == overloaded.fail
    assert Failure("auth") == auth.fail
    assert ("x", ["now"], True) == (x.text, [call.name for call in x.calls], x.usage.unknown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "s.yaml:1:1: the script is empty"),
        ("- a\n", "s.yaml:1:1: expected agent names with their lists of turns"),
        ("a:\n  text: x\n", "s.yaml:2:3: expected a list of turns"),
        ("a:\n  - txt: x\n", "s.yaml:2:5: unknown key 'txt'; did you mean 'text'?"),
        ("a:\n  - calls: [{nam: x}]\n", "s.yaml:2:14: unknown key 'nam'; did you mean 'name'?"),
        ("a:\n  - calls: [{arguments: {}}]\n", "s.yaml:2:13: a call needs the name of its tool"),
        ("a:\n  - calls: [{name: x, arguments: [1]}]\n", "s.yaml:2:34: arguments: expected a mapping, found a list"),
        ("a:\n  - calls: [{name: x, arguments: {d: 2026-01-01}}]\n", "s.yaml:2:34: arguments: cannot be said in JSON"),
        ("a:\n  - calls: {name: x}\n", "s.yaml:2:12: calls: expected a list, found a mapping"),
        ("a:\n  - fail: {kind: overlooded}\n", "did you mean 'overloaded'?"),
        ("a:\n  - fail: {times: 2}\n", "s.yaml:2:11: a failure needs its kind"),
        ("a:\n  - {fail: auth, calls: []}\n", "'fail' and 'calls' do not go together"),
        ("a:\n  - {text: x, say: y}\n", "'text' and 'say' do not go together"),
        ("a:\n  - {}\n", "s.yaml:2:5: an empty turn"),
        ("a:\n  - repeat: 0\n", "s.yaml:2:13: repeat: expected 1 or more, found 0"),
        ("a:\n  - stall: soon\n", "s.yaml:2:12: stall: expected a number, found the text 'soon'"),
        ("a:\n  - finish: stopp\n", "did you mean 'stop'?"),
        ("a:\n  - usage: {inptu: 1}\n", "s.yaml:2:13: unknown key 'inptu'; did you mean 'input'?"),
        ("a: [x]\na: [y]\n", "s.yaml:2:1: 'a' stands twice"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_faults_are_told_with_their_place(text: str, expected: str) -> None:
    """A mistake is told with file, line and column, and the nearest word that would be right."""
    (fault,) = faults(text)
    assert expected in fault


def test_words_are_said_as_they_are_written() -> None:
    """What looks like a number or a truth value to YAML is still said as it is written."""
    assert ["no", "42", "1.50"] == [turn.text for turn in script("a: [no, {text: 42}, {say: 1.50}]\n").turns["a"]]


def test_all_faults_are_told_at_once() -> None:
    """All faults of a script are told at once, in their order."""
    told = faults("a:\n  - txt: x\nb:\n  - repeat: no\n")
    assert ["s.yaml:2:5", "s.yaml:4:13"] == [fault.rsplit(": ", 1)[0].split(": ")[0] for fault in told]


def test_an_instance_may_have_a_list_of_its_own() -> None:
    """The list of one actor comes before that of its agent."""
    read = script("researcher: [x]\nresearcher-2: [y]\ncoordinator/researcher-3: [z]\n")
    names = [read.list_for("researcher", f"coordinator/researcher-{number}") for number in (1, 2, 3)]
    assert ["researcher", "researcher-2", "coordinator/researcher-3"] == names
    assert read.list_for("writer", "coordinator/writer-1") is None


TURNS = st.lists(
    st.one_of(
        st.builds(Turn, line=st.just(1), repeat=st.integers(1, 4)),
        st.builds(Turn, line=st.just(1), fail=st.builds(Failure, kind=st.just("overloaded"), times=st.integers(1, 3))),
    ),
    max_size=8,
)


@given(TURNS)
def test_a_list_is_used_up_in_order(turns: list[Turn]) -> None:
    """Asked again after each failure and reply, an actor meets every entry in order, as often as it says."""
    read = Script("s.yaml", {"a": tuple(turns)})
    expected = [
        place
        for place, entry in enumerate(turns)
        for _ in range(entry.fail.times if entry.fail is not None else entry.repeat)
    ]
    met: list[int] = []
    turn = attempt = 0
    while (place := read.position("a", turn, attempt)) is not None:
        met.append(place)
        if turns[place].fail is not None:
            attempt += 1
        else:
            turn, attempt = turn + 1, 0
    assert expected == met
    assert turn == read.replies("a")


def test_turns_are_values() -> None:
    """Two readings of one text are equal."""
    text = "a:\n  - {text: x, calls: [{name: y}]}\n"
    assert attrs.asdict(script(text)) == attrs.asdict(script(text))
