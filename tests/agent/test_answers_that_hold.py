"""An answer that must hold: taken as a value, sent back with what is wrong, or the end after so many tries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.conversation import checked
from runtime.definitions import OutputRules
from runtime.events import ActorFinished, ModelFinished, ModelRequested, ModelWithdrawn, NoteAdded, ToolFinished, Warned
from runtime.journal import MemoryJournal
from runtime.limits.limits import Limits
from runtime.messages import Text
from runtime.model import Emit, ModelRequest, Reply
from runtime.output.schema import value_faults

if TYPE_CHECKING:
    from tests.agent.conftest import Stage

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}},
    "required": ["n"],
    "additionalProperties": False,
}
RULES = OutputRules(schema=SCHEMA)


def notes(stage: Stage) -> list[str]:
    return [event.text for event in stage.of(NoteAdded) if event.why == "output"]


async def test_an_answer_that_fits_is_a_value(stage: Stage) -> None:
    """The report of an answer that fits its schema has the parsed value."""
    stage.agent("lead", output=RULES)
    stage.script("lead: ['{\"n\": 3}']")
    report = await stage.run()
    assert ("completed", {"n": 3}, 1) == (report.status, report.output, report.steps)
    assert {"n": 3} == stage.of(ActorFinished)[0].report["output"]


async def test_a_bad_answer_goes_back_with_its_fault(stage: Stage) -> None:
    """What is wrong with an answer is told exactly, and the next one is taken; what was shown of it is withdrawn."""
    stage.agent("lead", output=RULES)
    stage.script("""lead: ['{"m": 3}', "```json\\n{\\"n\\": 4}\\n```"]""")
    report = await stage.run()
    assert ("completed", {"n": 4}, '{"n": 4}', 2) == (report.status, report.output, report.text, report.steps)
    (note,) = notes(stage)
    assert "- n: is required (integer)" in note
    assert "- m: is unknown; there is only: n" in note
    assert [0] == [event.turn for event in stage.of(ModelWithdrawn)]
    checked(stage.state.actors["lead"].history)


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_after_its_tries_the_work_has_failed_with_the_last_text(stage: Stage, retries: int) -> None:
    """A model that never gets it right is asked `retries` times more; the report has its last text and the fault."""
    stage.agent("lead", output=OutputRules(schema=SCHEMA, retries=retries))
    stage.script(f"lead: [{', '.join(f'no {number}' for number in range(9))}]")
    report = await stage.run()
    assert ("failed", f"no {retries}", None, retries + 1) == (report.status, report.text, report.output, report.steps)
    tries = "1 try" if not retries else f"{retries + 1} tries"
    assert (
        f"the answer does not hold after {tries}: the answer is not JSON alone: it begins with other text"
        == report.detail
    )


async def test_an_empty_answer_is_a_bad_one(stage: Stage) -> None:
    """Where an answer must hold, an empty one is a try like any other, and older words do not stand in for it."""
    stage.agent("lead", tools=["look"], output=OutputRules(schema=SCHEMA, retries=1))
    stage.script("""\
        lead: [{text: '{"n": 1}', call: {name: look, arguments: {at: x}}}, {text: '', finish: stop, repeat: 2}]
        """)
    report = await stage.run()
    assert ("failed", None) == (report.status, report.output)
    assert "the answer is empty" in report.detail


async def test_tools_may_be_used_after_an_answer_went_back(stage: Stage) -> None:
    """A model may look again before it answers again."""
    stage.agent("lead", tools=["look"], output=RULES)
    stage.script("""lead: [hm, {call: {name: look, arguments: {at: x}}}, '{"n": 1}']""")
    assert {"n": 1} == (await stage.run()).output
    assert 1 == len(stage.of(ToolFinished))


async def test_length_and_what_is_forbidden_are_told_together(stage: Stage) -> None:
    """Rules without a schema look at the text; what is forbidden is told by place, and is not repeated."""
    stage.agent("lead", output=OutputRules(max_chars=30, forbid=("email", "key"), retries=1))
    stage.script("lead: ['ask ada@example.com, who knows more of it', all is well]")
    report = await stage.run()
    assert ("completed", "all is well", None) == (report.status, report.text, report.output)
    (note,) = notes(stage)
    assert "the answer has 41 characters; at most 30 are allowed" in note
    assert "line 1, column 5: holds an e-mail address, which is forbidden" in note
    assert "ada@" not in note


async def test_what_is_forbidden_is_in_no_report(stage: Stage) -> None:
    """A last text that was not taken is handed on without what is forbidden in it."""
    stage.agent("lead", output=OutputRules(forbid=("email",), retries=0))
    stage.script("lead: [ask ada@example.com]")
    report = await stage.run()
    assert ("failed", "ask [an e-mail address]") == (report.status, report.text)


async def test_a_forbidden_text_cannot_hide_in_an_escape(stage: Stage) -> None:
    """A value is searched as it is meant."""
    stage.agent("lead", output=OutputRules(schema={"type": "object"}, forbid=("email",), retries=0))
    stage.script(r"""lead: ['{"to": "ada\u0040example.com"}']""")
    report = await stage.run()
    assert "failed" == report.status
    assert "to: holds an e-mail address" in report.detail


async def test_the_schema_is_in_the_prompt_and_in_every_request(stage: Stage) -> None:
    """It is asked for in words, and handed to the provider to ask for it in its own way."""
    seen: list[ModelRequest] = []
    stage.agent("lead", output=RULES)

    class Model:
        name = "scripted/s"

        async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
            seen.append(request)
            return Reply((Text('{"n": 1}' if len(seen) > 1 else "no"),), "stop")

        def count(self, request: ModelRequest) -> int | None:
            return 0

        def forget(self, actor: str) -> None:
            pass

    stage.model = Model()
    assert {"n": 1} == (await stage.run()).output
    assert [SCHEMA, SCHEMA] == [request.output_schema for request in seen]
    assert json.dumps(SCHEMA) in "\n".join(seen[0].system)
    assert seen[0].system == seen[1].system


async def test_the_callers_schema_is_for_the_first_agent_alone(stage: Stage) -> None:
    """A schema of the caller's takes the place of the root's own; children keep theirs."""
    stage.agent("lead", subagents=["help"], output=OutputRules(schema={"type": "array"}))
    stage.agent("help")
    stage.output_schema = SCHEMA
    stage.script("""\
        lead: [{call: {name: delegate_to_help, arguments: {task: t}}}, '{"n": 7}']
        help: [plain words]
        """)
    report = await stage.run()
    assert ("completed", {"n": 7}) == (report.status, report.output)
    assert "plain words" in stage.results("lead")[0].result


async def test_a_childs_bad_answer_reaches_its_parent_as_an_error(stage: Stage) -> None:
    """A parent reads that a child's answer does not hold, why, and what it was."""
    stage.agent("lead", subagents=["help"])
    stage.agent("help", output=OutputRules(schema=SCHEMA, retries=0))
    stage.script("""\
        lead: [{call: {name: delegate_to_help, arguments: {task: t}}}, done]
        help: [plain words]
        """)
    assert "completed" == (await stage.run()).status
    result = stage.results("lead")[0]
    assert result.is_error
    assert "help-1 failed: the answer does not hold after 1 try" in result.result
    assert "plain words" in result.result


@pytest.mark.parametrize(("last", "output"), [('{"n": 2}', {"n": 2}), ("so far nothing", None)])
async def test_the_last_answer_of_a_stopped_agent_is_looked_at_too(stage: Stage, last: str, output: Any) -> None:
    """Tries are turns and count: where the limit comes first, the status stays stopped, and a last answer that holds
    is still a value."""
    stage.agent("lead", output=RULES, max_steps=2)
    stage.script(f"lead: [no, '{last}']")
    report = await stage.run()
    assert ("stopped", "max_steps", last, output) == (report.status, report.reason, report.text, report.output)
    assert ("its last answer does not hold" in report.detail) is (output is None)


async def test_the_same_bad_answer_again_and_again_is_no_loop(stage: Stage) -> None:
    """What ends a model that repeats its bad answer is the number of its tries."""
    stage.agent("lead", output=OutputRules(schema=SCHEMA, retries=12))
    stage.script("lead: [{text: the very same, repeat: 20}]")
    report = await stage.run()
    assert ("failed", 13) == (report.status, report.steps)


async def test_tries_survive_a_kill_at_any_event(stage: Stage) -> None:
    """Wherever the process dies, the resumed run grants no try twice and ends the same."""
    stage.agent("lead", output=OutputRules(schema=SCHEMA, retries=2))
    stage.script("lead: [one, two, three, '{\"n\": 1}']")
    await stage.run()
    records = list(stage.journal.records)
    first = next(at for at, each in enumerate(records) if isinstance(each.event, ModelRequested))
    for cut in range(first, len(records)):
        stage.journal = MemoryJournal(records[:cut])
        if stage.state.finished is not None:
            continue
        report = await stage.resume()
        assert ("failed", "three") == (report.status, report.text)
        assert 2 == len(notes(stage))
        checked(stage.state.actors["lead"].history)


async def test_a_failed_run_that_is_resumed_has_its_tries_again(stage: Stage) -> None:
    """Whoever goes on with a run whose answer did not hold wants new tries."""
    stage.agent("lead", output=OutputRules(schema=SCHEMA, retries=1))
    stage.script("lead: [one, two, three, '{\"n\": 1}']")
    assert "failed" == (await stage.run()).status
    report = await stage.resume()
    assert ("completed", {"n": 1}) == (report.status, report.output)


CHECK = '''
import os, time

def odd(value):
    """Plain words."""
    print("noise that is no verdict")
    if value["n"] % 2 == 0:
        return f"n must be odd, {value['n']} is even"

def raises(value):
    raise ValueError("never good enough")

def trips(value):
    return value["missing"]

def hangs(value):
    while True:
        pass

def dies(value):
    os._exit(3)

def broken(value):
    return undefined_name

def gives(value):
    return 3.5

def sees(value):
    return "it sees the key" if "s3cret" in str(dict(os.environ)) else None
'''


@pytest.fixture
def checks(stage: Stage) -> Stage:
    (stage.folder / "checks.py").write_text(CHECK)
    stage.trusted = True
    return stage


async def test_a_python_check_sends_an_answer_back(checks: Stage) -> None:
    """What the function says of the value goes to the model, as it says it."""
    checks.agent("lead", output=OutputRules(schema=SCHEMA, check="checks:odd"))
    checks.script("""lead: ['{"n": 2}', '{"n": 3}']""")
    report = await checks.run()
    assert ("completed", {"n": 3}) == (report.status, report.output)
    assert "- n must be odd, 2 is even" in notes(checks)[0]


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("checks:raises", "does not hold after 1 try: never good enough"),
        ("checks:trips", "does not hold after 1 try: the check stumbled over it: KeyError: 'missing'"),
        ("checks:dies", "could not be checked: the check checks:dies ended its process without a verdict"),
        ("checks:broken", "could not be checked: checks:broken is broken: NameError"),
        ("checks:gives", "could not be checked: checks:gives gave a float"),
        ("gone:f", "could not be checked: gone:f cannot be loaded: ModuleNotFoundError"),
    ],
)
async def test_a_check_that_refuses_or_is_broken_fails_the_work(checks: Stage, check: str, why: str) -> None:
    """An answer that trips the check does not hold; a check that cannot judge ends the work, and says so."""
    checks.agent("lead", output=OutputRules(schema=SCHEMA, check=check, retries=0))
    checks.script("""lead: ['{"n": 2}']""")
    report = await checks.run()
    assert "failed" == report.status
    assert why in report.detail


async def test_a_check_that_hangs_is_ended(checks: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check has its time; then its process is ended, and the work with it."""
    monkeypatch.setattr("runtime.output.judge.SECONDS", 0.5)
    checks.agent("lead", output=OutputRules(check="checks:hangs"))
    checks.script("lead: [fine]")
    report = await checks.run()
    assert ("failed", "fine") == (report.status, report.text)
    assert "the answer could not be checked: the check checks:hangs did not end within 0.5 s" == report.detail


async def test_a_check_does_not_count_where_nobody_trusts_the_workspace(checks: Stage) -> None:
    """Python of an untrusted workspace is not run; that is told."""
    checks.trusted = False
    checks.agent("lead", output=OutputRules(check="checks:raises"))
    checks.script("lead: [fine]")
    assert "completed" == (await checks.run()).status
    assert ["agents/lead.md: output.check checks:raises is left out: this workspace is not trusted (elenco trust)"] == [
        event.text for event in checks.of(Warned)
    ]


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "object", "properties": {"t": {"pattern": "^(a+)+$"}}}, False),
        ({"$defs": {"t": {"type": "object", "required": ["t"]}}, "$ref": "#/$defs/t"}, True),
    ],
)
async def test_a_schema_that_could_search_for_ever_is_held_in_a_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any], fits: bool
) -> None:
    """A pattern that never ends stops neither the runtime nor the run; references are followed all the same."""
    monkeypatch.setattr("runtime.output.judge.SECONDS", 30 if fits else 0.7)
    stage.agent("lead", output=OutputRules(schema=schema))
    stage.script(f"""lead: ['{{"t": "{"a" * 40}!"}}']""")
    report = await stage.run()
    assert ("completed" if fits else "failed") == report.status
    assert fits or "the schema did not end within 0.7 s" in report.detail


ANSWERS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "",
                "no",
                "{}",
                '{"n": 0}',
                '{"n": 1}',
                '{"n": 2}',
                '```\n{"n": 3}\n```',
                '{"n": 4} ',
                "[1]",
                "null",
                '{"n": "1"}',
            ]
        ),
        st.text(max_size=20),
        st.integers(-1, 3).map(lambda n: json.dumps({"n": n})),
    ),
    min_size=4,
    max_size=4,
)


@given(ANSWERS, st.integers(0, 3))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_model_answers_the_run_ends_with_a_value_or_has_failed(
    tmp_path: Path, answers: list[str], retries: int
) -> None:
    """The run ends with a value that satisfies the schema, or failed after `retries` + 1 answers."""
    import trio

    from tests.agent.conftest import Stage

    stage = Stage(tmp_path)
    stage.agent("lead", output=OutputRules(schema=SCHEMA, retries=retries))
    stage.script(json.dumps({"lead": [{"text": text, "finish": "stop"} for text in answers]}))
    report = trio.run(stage.run)
    assert retries + 1 >= report.steps == len(stage.of(ModelFinished))
    if report.status == "completed":
        assert [] == value_faults(SCHEMA, report.output)
        assert report.output == json.loads(report.text)
    else:
        assert ("failed", retries + 1, None) == (report.status, report.steps, report.output)
    assert Limits() == stage.limits
