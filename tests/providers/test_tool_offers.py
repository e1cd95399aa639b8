"""Tools as providers take them: a bad schema is put right or costs that one tool, never the request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runtime.events import ActorStarted, ToolFinished, Warned
from runtime.tools import Tool
from runtime.wire import WIRES, WireName

each_wire = pytest.mark.parametrize("wire", WIRES)
SCHEMAS = Path(__file__).parents[1] / "cases" / "schemas" / "cases.json"


def tool(name: str, parameters: Any, ran: list[Any]) -> Tool:
    async def run(**arguments: Any) -> str:
        ran.append(arguments)
        return "was run"

    return Tool(name, f"does {name}", parameters, run, effects="none")


def offered(body: Any) -> dict[str, Any]:
    """Names and schemas as a request offers them, whichever the wire."""
    found: dict[str, Any] = {}
    for entry in body["tools"]:
        inner = entry.get("function", entry)
        found[inner["name"]] = inner.get("parameters", inner.get("input_schema"))
    return found


@each_wire
async def test_a_tool_that_cannot_be_sent_is_left_out_with_a_warning(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """One tool's hopeless schema costs that tool alone: the run goes on, and a warning says why."""
    ran: list[Any] = []
    good = tool("good", {"type": "object", "properties": {"a": {"type": "string"}}}, ran)
    bad = tool("bad", {"type": "string"}, ran)
    server.answers(answer(call(wire, ("bad", {}), ("good", {"a": "x"}))), answer(say(wire, "done")))
    outcome = await run(wire, [good, bad])
    assert (outcome.report.status, outcome.report.text) == ("completed", "done")
    [warned] = outcome.of(Warned)
    assert (warned.actor, "tool bad" in warned.text) == ("solo", True)
    assert [set(offered(seen.json)) for seen in server.seen] == [{"good", "read_result"}] * 2
    assert ran == [{"a": "x"}]
    assert "no tool 'bad'" in next(event.result for event in outcome.of(ToolFinished) if event.name == "bad")
    [started] = outcome.of(ActorStarted)
    assert [entry["name"] for entry in started.tools] == ["good", "read_result"]


@each_wire
async def test_argument_names_a_provider_refuses_are_mapped_and_mapped_back(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any, call: Any
) -> None:
    """An argument whose name no provider takes is offered under another, and the tool gets it under its own."""
    ran: list[Any] = []
    schema = {
        "type": "object",
        "properties": {"file name": {"type": "string"}, "@id": {"type": "integer"}},
        "required": ["file name"],
        "additionalProperties": False,
    }
    sent: dict[str, Any] = {}

    def respond(seen: Any) -> Any:
        if len(server.seen) > 1:
            return answer(say(wire, "done"))
        sent.update(offered(seen.json)["give"])
        shown = [key for key in sent["properties"] if key.startswith("file_name")]
        return answer(call(wire, ("give", {shown[0]: "a.txt"}), ("give", {}), ("give", {"file name": "b.txt"})))

    server.respond = respond
    outcome = await run(wire, [tool("give", schema, ran)])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) for key in sent["properties"])
    assert sorted(ran, key=str) == [{"file name": "a.txt"}, {"file name": "b.txt"}]
    wrong = [event for event in outcome.of(ToolFinished) if event.is_error]
    assert ["required" in event.result for event in wrong] == [True]
    assert outcome.of(Warned) == []


@each_wire
async def test_every_schema_of_the_corpus_can_be_offered(
    wire: WireName, run: Any, server: Any, answer: Any, say: Any
) -> None:
    """An agent with a tool for each schema of the corpus makes a valid request, with a warning for each it lost."""
    cases = [case for case in json.loads(SCHEMAS.read_text(encoding="utf-8"))["cases"] if "schema" in case]
    tools = [tool(f"t{number}", case["schema"], []) for number, case in enumerate(cases)]
    server.answers(answer(say(wire, "done")))
    outcome = await run(wire, tools)
    assert outcome.report.status == "completed"
    sent = offered(server.seen[0].json)
    assert len(sent) + len(outcome.of(Warned)) == len(tools) + 1
    assert sent
    for schema in sent.values():
        assert schema["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & set(schema)


async def test_a_child_with_a_long_name_can_be_asked(
    run: Any, server: Any, answer: Any, say: Any, call: Any, tmp_path: Path
) -> None:
    """An agent whose name leaves no room for `delegate_to_` is offered under a name that fits, and is reached."""
    child = "a-very-long-name-" * 3 + "for-a-child"
    path = tmp_path / "workspace" / "agents" / f"{child}.md"
    path.parent.mkdir()
    path.write_text(f"---\n{json.dumps({'name': child, 'description': 'helps', 'tools': []})}\n---\nHelp.\n")

    def respond(seen: Any) -> Any:
        if len(server.seen) > 1:
            return answer(say("openai-chat", "done"))
        names = [name for name in offered(seen.json) if name.startswith("delegate_to")]
        assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in offered(seen.json))
        return answer(call("openai-chat", (names[0], {"task": "help"})))

    server.respond = respond
    outcome = await run(subagents=[child])
    assert (outcome.report.status, outcome.report.text) == ("completed", "done")
    assert [event.agent for event in outcome.of(ActorStarted)] == ["solo", child]
