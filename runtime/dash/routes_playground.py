"""The playground: agents to edit, their faults as one types, a run of the draft, and saving it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

from runtime.cast import Member, find
from runtime.cli.command_check import Look
from runtime.cli.command_init import AGENT
from runtime.cli.command_models import key_state
from runtime.errors import DefinitionError, ElencoError, UsageError
from runtime.journal.folder import find_run
from runtime.known import KNOWN, OFFLINE, ModelFlags, default_model, key_variable
from runtime.messages import JsonObject
from runtime.outline import settings_of
from runtime.plugins import plugins
from runtime.prices import models_from, well_known
from runtime.trust import counting
from runtime.watch.lines import as_json
from runtime.wire import WIRES

from .draft import AGENT_FILE, agents_of, definition_of, faults_to_json, save, saving, within
from .headers import with_model, with_tools
from .own_tools import faults_of, names_in
from .trials import Order, Trials, exchanges, request_at, text_of, workspace_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from .site import Desk

TOOL_STARTER = '''\
from runtime.tools import tool


@tool(effects="none")
def count_words(text: str) -> str:
    """Count the words of a text.

    Args:
        text: The text.
    """
    return f"{len(text.split())} words"
'''


def routes(desk: Desk) -> list[Route]:
    from starlette.responses import Response
    from starlette.routing import Route

    trials = Trials(desk.state)

    def post(path: str, answer: Callable[[JsonObject], JsonObject]) -> Route:
        async def take(request: Request) -> Response:
            try:
                body: Any = json.loads(await request.body())
            except (ValueError, RecursionError):
                body = None
            if not isinstance(body, dict):
                raise UsageError("the body is one JSON object")
            found = await asyncio.to_thread(answer, cast("JsonObject", body))
            return Response(as_json(found), media_type="application/json")

        return Route(f"/api/playground{path}", take, methods=["POST"])

    def get(path: str, answer: Callable[[Request], JsonObject]) -> Route:
        async def give(request: Request) -> Response:
            return Response(as_json(await asyncio.to_thread(answer, request)), media_type="application/json")

        return Route(f"/api/playground{path}", give)

    def asked(request: Request) -> JsonObject:
        folder = find_run(desk.state, request.path_params["run"])
        return request_at(folder, _seq(request.path_params["seq"]))

    def sent(request: Request) -> JsonObject:
        place = trials.place_of(find_run(desk.state, request.path_params["run"]).id)
        return {"exchanges": exchanges(place) if place is not None else []}

    return [
        post("/open", lambda body: _opened(workspace_of(body))),
        post("/check", _checked),
        post("/tools", lambda body: trials.describe(workspace_of(body), text_of(body, "code"))),
        post("/edit", _edited),
        post("/diff", lambda body: _told(lambda: attrs.asdict(saving(workspace_of(body), text_of(body, "text"))))),
        post("/save", lambda body: _told(lambda: _saved(body))),
        post("/run", lambda body: _told(lambda: trials.start(Order.from_json(body)))),
        get("/runs/{run}/requests/{seq}", asked),
        get("/runs/{run}/exchanges", sent),
    ]


def _opened(workspace: Path) -> JsonObject:
    """What there is to choose from: agents with their files, tools, models, providers and whether their key is set."""
    from runtime.tools.registry import built_in

    here, user = settings_of(workspace)
    providers = {**user.providers, **here.providers}
    own = {**models_from(user.models, user.path), **models_from(here.models, here.path)}
    known = [*own, *(name for name, _ in well_known() if name not in own)]
    return {
        "workspace": str(workspace),
        "agents": [_agent(member, text) for member, text in agents_of(workspace)],
        "tools": [
            {"name": tool.name, "description": tool.description, "effects": tool.effects, "from": origin}
            for origin, tools in (("elenco", built_in()), ("plugin", plugins().tools))
            for tool in tools
        ],
        "model": default_model(ModelFlags(), here.model or user.model, os.environ),
        "models": [OFFLINE, *known],
        "providers": [
            {
                "name": name,
                "variable": key_variable(name, providers.get(name)),
                "ready": key_state(name, providers.get(name))[1],
            }
            for name in (*providers, *(name for name in KNOWN if name not in providers))
        ],
        "wires": list(WIRES),
        "starter": AGENT,
        "tool_starter": TOOL_STARTER,
    }


def _agent(member: Member, text: str) -> JsonObject:
    return {
        "name": member.name,
        "shown": member.shown,
        "origin": member.origin,
        "text": text,
        "usable": member.definition is not None,
    }


def _checked(body: JsonObject) -> JsonObject:
    """The faults of a draft and of its tools' code, what its file says, and what of it does not count."""
    workspace, text, code = workspace_of(body), text_of(body, "text"), text_of(body, "code")
    told: list[str] = []
    look = Look(workspace, names_in(code), told.append)
    faults = look.at_draft(text, AGENT_FILE)
    found: dict[str, Any] = {
        "faults": faults_to_json(faults),
        "code_faults": faults_to_json(faults_of(code) if code.strip() else []),
        "own_tools": list(names_in(code)),
        "notes": told,
        "left_out": [],
        "agent": None,
    }
    try:
        definition = definition_of(text, AGENT_FILE)
        here, _ = settings_of(workspace)
        cast = counting(workspace, here, find(workspace))[1]
    except ElencoError:
        return found
    original = cast.members.get(definition.name)
    found["left_out"] = list(within(definition, original.definition if original is not None else None).left_out)
    found["agent"] = {
        "name": definition.name,
        "model": definition.model,
        "tools": list(definition.tools),
        "subagents": list(definition.subagents),
    }
    return found


def _edited(body: JsonObject) -> JsonObject:
    text = text_of(body, "text")
    if "tools" in body:
        given: Any = body["tools"]
        names: list[Any] = given if isinstance(given, list) else [None]  # pyright: ignore[reportUnknownVariableType]
        if not all(isinstance(name, str) for name in names):
            raise UsageError("tools is a list of names")
        return {"text": with_tools(text, names)}
    return {"text": with_model(text, text_of(body, "model").strip())}


def _saved(body: JsonObject) -> JsonObject:
    return {"path": save(workspace_of(body), text_of(body, "text"), text_of(body, "seen"))}


def _told(work: Callable[[], JsonObject]) -> JsonObject:
    """What is wrong with a draft, or keeps it from being saved or run, is an answer like any other."""
    try:
        return work()
    except DefinitionError as error:
        return {"error": str(error), "faults": faults_to_json(error.faults)}
    except ElencoError as error:
        return {"error": str(error)}


def _seq(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UsageError(f"an event is named by its number, not '{text[:20]}'")
    return int(text)
