"""Skills in runs: offered, loaded, read, approved by, kept over a resume, given again; through the scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from runtime.app import LiveRun, Resumption, open_run, plan
from runtime.continuation import Continuation, continuation_of
from runtime.errors import DefinitionError
from runtime.events import (
    ActorStarted,
    Event,
    NoteAdded,
    PermissionDecided,
    PrefixChanged,
    SkillLoaded,
    ToolFinished,
    Warned,
)
from runtime.journal import MemoryJournal
from runtime.journal.replay import replay
from runtime.known import ModelFlags
from runtime.limits.limits import Limits
from runtime.outline import RunOptions
from runtime.report import Report
from runtime.skills.active import ActiveSkills
from runtime.skills.lessons import Lessons
from runtime.skills.places import find_skills
from runtime.trust import agree, is_trusted, survey

Write: TypeAlias = Callable[..., Path]

AGENT = """---
name: worker
description: Works.
tools: [read_file, write_file, list_files]
skills: {skills}
{more}---
{body}
"""


class Theatre:
    """A workspace and a home; `agent` and `script` set a run up, `run` plays it."""

    def __init__(self, base: Path, patch: pytest.MonkeyPatch) -> None:
        self.base = base
        self.workspace, self.home = base / "ws", base / "home"
        for folder in (self.workspace / "agents", self.home):
            folder.mkdir(parents=True)
        patch.setenv("HOME", str(self.home))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        self.journal = MemoryJournal()

    def agent(self, skills: str = "all", *, body: str = "Work.", more: str = "", name: str = "worker") -> None:
        text = AGENT.format(skills=skills, body=body, more=more).replace("name: worker", f"name: {name}")
        (self.workspace / "agents" / f"{name}.md").write_text(text)

    def script(self, text: str) -> None:
        (self.base / "script.yaml").write_text(text)

    def options(self, **changes: Any) -> RunOptions:
        model = ModelFlags(f"scripted/{self.base / 'script.yaml'}")
        return RunOptions(
            agent="worker", task="the task", workspace=self.workspace, model=model, headless=True, **changes
        )

    @asynccontextmanager
    async def opened(
        self, resumption: Resumption | None = None, continues: Continuation | None = None, **changes: Any
    ) -> AsyncGenerator[LiveRun]:
        ready = plan(self.options(**changes))
        async with open_run(ready, self.journal, "t1", resumption=resumption, continues=continues) as live:
            yield live

    async def run(self, **changes: Any) -> Report | None:
        async with self.opened(**changes) as live:
            return await live.report()

    async def resume(self) -> Report | None:
        """Go on in another process."""
        state = replay(self.journal.records)
        async with self.opened(Resumption(state, Limits.from_json(state.limits))) as live:
            return await live.report()

    def cut_after_first(self, kind: type[Event]) -> None:
        """Leave of the record what stood there when the first such event had been written."""
        end = next(record.seq for record in self.journal.records if isinstance(record.event, kind))
        self.journal = MemoryJournal(self.journal.records[:end])

    def continuation(self) -> Continuation:
        return continuation_of(replay(self.journal.records), "t0", self.journal.contents, self.journal.contents)

    def events(self, kind: type[Event]) -> list[Any]:
        return [record.event for record in self.journal.records if isinstance(record.event, kind)]

    @property
    def results(self) -> list[str]:
        return [event.result for event in self.events(ToolFinished)]

    @property
    def prompt(self) -> tuple[str, ...]:
        prompt: tuple[str, ...] = self.events(ActorStarted)[0].prompt
        return prompt


@pytest.fixture
def theatre(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    return Theatre(tmp_path, monkeypatch)


USE = "{{calls: [{{name: use_skill, arguments: {{name: {0}}}}}]}}"


def turns(*names: str, then: str = "") -> str:
    calls = "".join(f"  - {USE.format(name)}\n" for name in names)
    return f"worker:\n{calls}{then}  - text: done\n"


async def test_an_agent_sees_names_and_descriptions_of_its_own_skills(theatre: Theatre, write_skill: Write) -> None:
    """An agent sees names and descriptions of the skills its file names, and of no others; the text comes later."""
    write_skill(theatre.workspace / "skills" / "one", "The text of one.", description="Does one.")
    write_skill(theatre.workspace / "skills" / "two", description="Does two.")
    theatre.agent("[one]")
    theatre.script(turns("one", "two"))
    await theatre.run()
    section = next(part for part in theatre.prompt if part.startswith("<skills>"))
    assert "- one: Does one." in section
    assert "two" not in section
    assert all("The text of one." not in part for part in theatre.prompt)
    assert "The text of one." in theatre.results[0]
    assert "there is no skill 'two'; there is: one" in theatre.results[1]
    assert ["one"] == [event.name for event in theatre.events(SkillLoaded)]


async def test_an_agent_without_skills_has_no_tool_for_them(theatre: Theatre, write_skill: Write) -> None:
    """An agent whose file names no skill has no tool for them and no word of them in its prompt."""
    write_skill(theatre.workspace / "skills" / "one")
    theatre.agent("[]")
    theatre.script("worker:\n  - text: done\n")
    await theatre.run()
    assert "use_skill" not in [tool["name"] for tool in theatre.events(ActorStarted)[0].tools]
    assert not any(part.startswith("<skills>") for part in theatre.prompt)


async def test_the_placeholder_takes_the_place_of_the_part(theatre: Theatre, write_skill: Write) -> None:
    """Where the prompt says {skills}, the listing stands there and no part is added."""
    write_skill(theatre.workspace / "skills" / "one", description="Does one.")
    theatre.agent("[one]", body="You know:\n{skills}\n")
    theatre.script("worker:\n  - text: done\n")
    await theatre.run()
    assert theatre.prompt[0].startswith("You know:\n- one: Does one.")
    assert not any(part.startswith("<skills>") for part in theatre.prompt)


async def test_only_a_person_offers_a_manual_skill(theatre: Theatre, write_skill: Write) -> None:
    """A skill that no model may choose by itself is left out of `all`, and there where a file names it."""
    write_skill(theatre.workspace / "skills" / "one", more="disable-model-invocation: true\n")
    theatre.agent("all")
    theatre.script(turns("one"))
    await theatre.run()
    assert "there is no skill 'one'" in theatre.results[0]
    theatre.journal = MemoryJournal()
    theatre.agent("[one]")
    await theatre.run()
    assert ["one"] == [event.name for event in theatre.events(SkillLoaded)]


async def test_a_loaded_skill_outside_the_workspace_may_be_read_and_not_changed(
    theatre: Theatre, write_skill: Write
) -> None:
    """The files of a user's skill may be read once it is loaded, and never changed; their neighbours stay closed."""
    folder = write_skill(theatre.home / ".agents" / "skills" / "one", files={"refs/a.md": "inside\n"})
    write_skill(theatre.home / ".agents" / "skills" / "two", files={"b.md": "closed\n"})
    (folder / "out").symlink_to(theatre.home)
    (theatre.home / "secret").write_text("secret\n")
    inside, beside = folder / "refs" / "a.md", folder.parent / "two" / "b.md"
    read = "  - {{calls: [{{name: read_file, arguments: {{path: {0}}}}}]}}\n"
    write = "  - {{calls: [{{name: write_file, arguments: {{path: {0}, content: x}}}}]}}\n"
    listing = "  - {{calls: [{{name: list_files, arguments: {{path: {0}}}}}]}}\n"
    then = read.format(inside) + listing.format(folder / "refs") + read.format(beside)
    then += read.format(folder / "out" / "secret") + write.format(inside)
    theatre.agent("[one, two]")
    theatre.script(f"worker:\n{read.format(inside)}  - {USE.format('one')}\n{then}  - text: done\n")
    await theatre.run(allow=("write_file", "read_file"))
    before, loaded, after, listed, neighbour, linked, written = theatre.results
    assert "outside the workspace" in before
    assert f"- {inside}" in loaded
    assert "1\tinside" in after
    assert "a.md" in listed
    assert "outside the workspace" in neighbour
    assert "outside" in linked
    assert "outside the workspace" in written
    assert "inside\n" == inside.read_text()


async def test_a_users_skill_pre_approves_while_it_is_in_use(theatre: Theatre, write_skill: Write) -> None:
    """What a user's skill lists runs without a question once it is loaded, and asks before."""
    write_skill(theatre.home / ".agents" / "skills" / "one", allowed="Write(out/**)")
    call = "  - {calls: [{name: write_file, arguments: {path: out/a.md, content: x}}]}\n"
    theatre.agent("[one]")
    theatre.script(turns("one", then=call))
    assert (await theatre.run()) is not None
    decided = theatre.events(PermissionDecided)[-1]
    assert ("allow", "allow: write_file(out/**)", "own: skill one") == (decided.verdict, decided.rule, decided.by)
    theatre.journal = MemoryJournal()
    theatre.script(f"worker:\n{call}")
    assert (await theatre.run()) is None
    assert "ask" == theatre.events(PermissionDecided)[-1].verdict


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ("permissions: {ask: [write_file]}\n", {}),
        ("permissions: {deny: ['write_file(out/**)']}\n", {}),
        ("", {"ask": ("write_file",)}),
        ("", {"deny": ("write_file",)}),
        ("", {"mode": "plan"}),
    ],
)
async def test_no_skill_lifts_an_ask_a_deny_or_a_mode(
    theatre: Theatre, write_skill: Write, more: str, changes: dict[str, Any]
) -> None:
    """What a skill pre-approves yields to every ask and deny rule, of the agent or the run, and to the mode."""
    write_skill(theatre.home / ".agents" / "skills" / "one", allowed="Write")
    theatre.agent("[one]", more=more)
    theatre.script(turns("one", then="  - {calls: [{name: write_file, arguments: {path: out/a.md, content: x}}]}\n"))
    await theatre.run(**changes)
    assert "allow" != theatre.events(PermissionDecided)[-1].verdict
    assert not (theatre.workspace / "out").exists()


async def test_a_workspaces_skill_pre_approves_only_where_it_is_trusted(theatre: Theatre, write_skill: Write) -> None:
    """A workspace's skill pre-approves nothing until the workspace is trusted, and a changed one not any more."""
    folder = write_skill(theatre.workspace / "skills" / "one", allowed="Write")
    theatre.agent("[one]")
    theatre.script(turns("one", then="  - {calls: [{name: write_file, arguments: {path: a.md, content: x}}]}\n"))
    assert (await theatre.run()) is None
    assert [()] == [event.allows for event in theatre.events(SkillLoaded)]
    agree(survey(theatre.workspace))
    theatre.journal = MemoryJournal()
    assert (await theatre.run()) is not None
    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text().replace("Do it.", "Do worse."))
    (theatre.workspace / "a.md").unlink()
    theatre.journal = MemoryJournal()
    assert (await theatre.run()) is None


def test_trust_in_a_skill_is_trust_in_the_files_it_runs(theatre: Theatre, write_skill: Write) -> None:
    """A script that a skill of the workspace may run without a question is part of what is trusted."""
    files = {"scripts/run.py": "print(1)\n", "other.md": "x"}
    folder = write_skill(theatre.workspace / "skills" / "one", allowed="Bash(python scripts/run.py:*)", files=files)
    theatre.agent("[one]")
    agree(survey(theatre.workspace))
    assert is_trusted(theatre.workspace)
    (folder / "other.md").write_text("y")
    assert is_trusted(theatre.workspace)
    (folder / "scripts" / "run.py").write_text("print(2)\n")
    assert not is_trusted(theatre.workspace)


async def test_a_link_out_of_the_workspace_brings_no_files_and_no_rules(theatre: Theatre, write_skill: Write) -> None:
    """A workspace's skill that is a link to somewhere outside brings its text, and neither files nor rules."""
    outside = write_skill(theatre.base / "outside" / "one", "Its text.", allowed="Write", files={"a.md": "x"})
    (theatre.workspace / "skills").mkdir()
    (theatre.workspace / "skills" / "one").symlink_to(outside)
    theatre.agent("[one]")
    read = f"  - {{calls: [{{name: read_file, arguments: {{path: {outside / 'a.md'}}}}}]}}\n"
    theatre.script(turns("one", then=read))
    await theatre.run()
    assert "Its text." in theatre.results[0]
    assert "not open to you" in theatre.results[0]
    assert "outside the workspace" in theatre.results[1]
    assert [()] == [event.allows for event in theatre.events(SkillLoaded)]


async def test_children_get_nothing_of_what_a_skill_pre_approves(theatre: Theatre, write_skill: Write) -> None:
    """A child gets nothing of what its parent's skill pre-approves, nor of its files."""
    folder = write_skill(theatre.home / ".agents" / "skills" / "one", allowed="Write", files={"a.md": "x"})
    theatre.agent("[one]", more="subagents: [child]\n")
    theatre.agent("[]", name="child")
    read = f"{{name: read_file, arguments: {{path: {folder / 'a.md'}}}}}"
    theatre.script(
        turns("one", then="  - {calls: [{name: delegate_to_child, arguments: {task: write}}]}\n")
        + f"child:\n  - calls: [{read}, {{name: write_file, arguments: {{path: a.md, content: x}}}}]\n"
    )
    assert (await theatre.run()) is None
    verdicts = {event.verdict for event in theatre.events(PermissionDecided) if event.actor == "worker/child-1"}
    assert {"deny", "ask"} == verdicts


async def test_loaded_skills_survive_a_resume(theatre: Theatre, write_skill: Write) -> None:
    """After a resume what a loaded skill brings is there still: rules, files, and its text to be given again."""
    folder = write_skill(
        theatre.home / ".agents" / "skills" / "one", "Its text.", allowed="Write(out/**)", files={"a.md": "x"}
    )
    theatre.agent("[one]")
    then = "  - {calls: [{name: write_file, arguments: {path: out/a.md, content: x}}]}\n"
    then += f"  - {{calls: [{{name: read_file, arguments: {{path: {folder / 'a.md'}}}}}]}}\n"
    theatre.script(turns("one", then=then))
    await theatre.run()
    theatre.cut_after_first(ToolFinished)
    assert (await theatre.resume()) is not None
    assert "1\tx" in theatre.results[-1]
    assert "allow: write_file(out/**)" in [event.rule for event in theatre.events(PermissionDecided)]
    loaded = replay(theatre.journal.records).actors["worker"].skills
    assert "Its text." in loaded["one"].text


async def test_a_changed_skill_brings_no_rules_to_a_resumed_run(theatre: Theatre, write_skill: Write) -> None:
    """A resumed run takes no rules from a skill that has changed since it was loaded: a record grants nothing."""
    folder = write_skill(theatre.home / ".agents" / "skills" / "one", allowed="Write")
    theatre.agent("[one]")
    theatre.script(turns("one", then="  - {calls: [{name: write_file, arguments: {path: a.md, content: x}}]}\n"))
    await theatre.run()
    (theatre.workspace / "a.md").unlink()
    theatre.cut_after_first(ToolFinished)
    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "More.\n")
    assert (await theatre.resume()) is None
    assert not (theatre.workspace / "a.md").exists()


async def test_a_resumed_run_goes_on_with_the_prompt_it_had(theatre: Theatre, write_skill: Write) -> None:
    """A resumed run keeps its recorded prompt when a skill's description changes, and says so."""
    write_skill(theatre.workspace / "skills" / "one", description="Before.")
    theatre.agent("[one]")
    theatre.script(turns("one"))
    await theatre.run()
    theatre.cut_after_first(ToolFinished)
    write_skill(theatre.workspace / "skills" / "one", description="After.")
    await theatre.resume()
    assert any("prompt of agents/worker.md changed since" in event.text for event in theatre.events(Warned))
    assert any("Before." in part for part in replay(theatre.journal.records).actors["worker"].prompt)


async def test_what_is_odd_about_an_offered_skill_is_a_warning_of_the_run(theatre: Theatre, write_skill: Write) -> None:
    """A skill that loads although something is off it gives a warning in the run that offers it."""
    folder = write_skill(theatre.workspace / "skills" / "one", description="Odd: very.")
    theatre.agent("all")
    theatre.script("worker:\n  - text: done\n")
    await theatre.run()
    told = [event.text for event in theatre.events(Warned)]
    assert ["skill one (skills/one/SKILL.md:3): the value of description holds a colon; put it in quotes"] == told
    assert folder.exists()


def test_a_skill_nobody_has_stops_the_run_before_it_starts(theatre: Theatre, write_skill: Write) -> None:
    """A skill that is not there, or cannot be used, is a fault of the agent file that names it, with the reason."""
    folder = write_skill(theatre.workspace / "skills" / "broken")
    (folder / "SKILL.md").write_text("no front matter\n")
    write_skill(theatre.workspace / "skills" / "one")
    theatre.agent("[onne, broken]")
    theatre.script("worker:\n  - text: done\n")
    with pytest.raises(DefinitionError) as caught:
        plan(theatre.options())
    first, second = caught.value.faults
    assert ("unknown skill 'onne'; did you mean 'one'?", 5) == (first.text, first.line)
    assert second.text.startswith("skill 'broken' cannot be used: skills/broken/SKILL.md:1: no front matter")


async def test_a_lesson_is_read_by_whoever_loads_the_skill_next(theatre: Theatre, write_skill: Write) -> None:
    """A lesson noted for a skill stands at the end of what the next actor that loads it reads."""
    folder = write_skill(theatre.workspace / "skills" / "one")
    shelf = find_skills(theatre.workspace)
    lessons = Lessons(theatre.base / "state")
    lessons.note(shelf.skills["one"], "Look at\n the date.")
    active = ActiveSkills(root=str(theatre.workspace), offered=shelf.skills, lessons=lessons)
    assert active.read(active.find("One")).text.endswith("Lessons from using this skill before:\n- Look at the date.")
    write_skill(theatre.base / "other" / "skills" / folder.name)
    assert () == lessons.of(find_skills(theatre.base / "other").skills["one"])


def test_the_newest_skills_are_given_again_whole_and_the_others_named(theatre: Theatre, write_skill: Write) -> None:
    """After compaction the newest loaded skills come whole, as far as the room goes, and the others by name."""
    for name in ("one", "two", "six"):
        write_skill(theatre.workspace / "skills" / name, f"Text of {name}. " * 40)
    active = ActiveSkills(root=str(theatre.workspace), offered=find_skills(theatre.workspace).skills)
    assert "" == active.reoffer()
    for name in ("one", "two", "six", "one"):
        active.take(active.read(active.find(name)))
    assert ["two", "six", "one"] == list(active.loaded)
    size = len(active.loaded["one"].text)
    again = active.reoffer(chars=2 * size + 10)
    assert "Text of one." in again
    assert "Text of six." in again
    assert "Text of two." not in again
    assert again.endswith("(use_skill shows them again): two")
    assert len(active.reoffer(chars=10)) < size


def test_a_long_text_is_cut_with_where_it_goes_on(theatre: Theatre, write_skill: Write) -> None:
    """A skill's text that is too long is cut at the end of a line, with the call that shows the rest."""
    lines = "".join(f"Line {number} of many.\n" for number in range(4000))
    write_skill(theatre.workspace / "skills" / "one", lines)
    active = ActiveSkills(root=str(theatre.workspace), offered=find_skills(theatre.workspace).skills)
    text = active.read(active.find("one")).text
    kept = [line for line in text.split("\n") if line.startswith("Line ")]
    start = int(text.partition('read_file(path="skills/one/SKILL.md", start=')[2].partition(")")[0])
    whole = (theatre.workspace / "skills" / "one" / "SKILL.md").read_text().split("\n")
    assert whole[start - 2] == kept[-1]
    assert len(text) < 25_000


async def test_what_changed_between_two_turns_is_told(theatre: Theatre, write_skill: Write) -> None:
    """A turn that continues another tells what has changed on disk: a prefix.changed event, and a word to the model
    where a skill it had loaded is another by now; what the skill pre-approved has ended."""
    write_skill(theatre.home / ".agents" / "skills" / "one", allowed="Write")
    write_skill(theatre.workspace / "skills" / "two", description="Before.")
    theatre.agent("all", more="instructions: true\n")
    call = "  - {calls: [{name: write_file, arguments: {path: a.md, content: x}}]}\n"
    theatre.script(f"worker:\n  - {USE.format('one')}\n  - text: done\n{call}")
    await theatre.run()
    earlier = theatre.continuation()
    theatre.journal = MemoryJournal()
    await theatre.run(continues=earlier)
    assert [] == theatre.events(PrefixChanged)
    assert [("one", ())] == [(event.name, event.allows) for event in theatre.events(SkillLoaded)]
    assert "ask" == theatre.events(PermissionDecided)[-1].verdict

    theatre.journal = MemoryJournal()
    write_skill(theatre.home / ".agents" / "skills" / "one", "Something else.", allowed="Write")
    write_skill(theatre.workspace / "skills" / "two", description="After.")
    (theatre.workspace / "AGENTS.md").write_text("Be quick.\n")
    await theatre.run(continues=earlier)
    (event,) = theatre.events(PrefixChanged)
    assert "skills: two has changed" in event.why
    assert "the workspace's instruction files have changed" in event.why
    assert "the skill one, loaded before, has changed" in event.why
    assert ["skill"] == [note.why for note in theatre.events(NoteAdded)]
