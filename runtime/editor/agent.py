"""The agent an editor talks to: sessions in its folders, each prompt a run that continues the one before."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import trio

from runtime.app import LiveRun, open_run, plan
from runtime.cli.version import VERSION
from runtime.continuation import continuation_of
from runtime.errors import ElencoError, JournalError, UsageError, first_of
from runtime.events import ApprovalDecided, ApprovalRequested, FileChanged, QuestionAsked
from runtime.journal import index
from runtime.journal.blobs import Blobs
from runtime.journal.durable import open_journal
from runtime.journal.folder import State, create_run, find_run
from runtime.journal.read import load
from runtime.known import TOOL_NAMES
from runtime.mcps.entry import Entry
from runtime.messages import AssistantMessage, JsonObject, Reasoning, Text, ToolCall, ToolResults, UserMessage
from runtime.outline import RunOptions, outline
from runtime.policy.decision import MODES, Mode
from runtime.report import Report
from runtime.run import digest
from runtime.steering import Steering
from runtime.tools import Tool
from runtime.watch.control import serve

from . import shapes, terminal
from .files import files_of, offered
from .rpc import INTERNAL, INVALID_REQUEST, Peer, RpcError
from .servers import handed
from .sessions import Kept, find, keep, new_session
from .updates import Texts, Updates

BY = "the editor"
PATIENCE = 10.0
"""Seconds an editor has to answer about a file."""
NO_WORDS = "Nobody can type an answer here: decide for yourself, and say in your answer what you have assumed."


@attrs.define(eq=False)
class Session:
    """One conversation; `live` is the run under way."""

    kept: Kept
    mode: Mode
    servers: Mapping[str, Entry]
    busy: bool = False
    cancelled: bool = False
    live: LiveRun | None = None


class EditorAgent:
    """Serves one editor. `options` are what every run is started with, but for task, folder and mode."""

    def __init__(
        self, send: trio.abc.SendStream, receive: trio.abc.ReceiveStream, options: RunOptions, state: State
    ) -> None:
        self._options = options
        self._state = state
        self._folder = state.path / "sessions"
        self._sessions: dict[str, Session] = {}
        self._reads = self._writes = self._has_terminals = False
        self._peer = Peer(
            send,
            receive,
            {
                "initialize": self._initialize,
                "authenticate": self._authenticate,
                "session/new": self._new,
                "session/load": self._load,
                "session/prompt": self._prompt,
                "session/set_mode": self._set_mode,
            },
            {"session/cancel": self._cancel},
        )

    async def serve(self) -> None:
        """Until the editor leaves: its runs are cancelled then, and nothing of them stays behind."""
        await self._peer.serve()

    # --- what the editor asks ------------------------------------------------------------------------------------

    async def _initialize(self, params: JsonObject) -> JsonObject:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            raise UsageError("protocolVersion is a whole number")
        self._reads, self._writes = offered(params.get("clientCapabilities"))
        self._has_terminals = terminal.offered(params.get("clientCapabilities"))
        return {
            "protocolVersion": shapes.VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
            },
            "authMethods": [],
            "agentInfo": {"name": "elenco", "title": "Elenco", "version": VERSION},
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        raise UsageError("nobody has to sign in here: keys are taken from the environment (elenco doctor)")

    async def _new(self, params: JsonObject) -> JsonObject:
        workspace = _folder_of(params)
        servers = handed(params.get("mcpServers"))
        await self._look(workspace, servers)
        session = Session(new_session(str(workspace), self._options.agent), self._options.mode, servers)
        await self._keep(session.kept)
        self._sessions[session.kept.id] = session
        return {"sessionId": session.kept.id, "modes": shapes.modes(session.mode)}

    async def _load(self, params: JsonObject) -> JsonObject:
        workspace = _folder_of(params)
        kept = await trio.to_thread.run_sync(find, self._folder, str(params.get("sessionId") or ""))
        if Path(kept.workspace) != workspace:
            raise UsageError(f"that session is one of {kept.workspace}, not of {workspace}")
        if (open_ := self._sessions.get(kept.id)) is not None and open_.busy:
            raise RpcError(INVALID_REQUEST, "a prompt of that session is under way")
        servers = handed(params.get("mcpServers"))
        session = self._sessions[kept.id] = Session(kept, self._options.mode, servers)
        if kept.runs:
            await self._replay(session, kept.runs[-1])
        return {"modes": shapes.modes(session.mode)}

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        mode: Mode | None = next((each for each in MODES if each == params.get("modeId")), None)
        if mode is None:
            raise UsageError(f"modeId is one of {', '.join(MODES)}")
        session.mode = mode
        await self._update(session, {"sessionUpdate": "current_mode_update", "currentModeId": session.mode})
        return {}

    async def _prompt(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        task = shapes.task_of(params.get("prompt"))
        if session.busy:
            raise RpcError(INVALID_REQUEST, "a prompt of this session is under way; cancel it first")
        session.busy, session.cancelled = True, False
        try:
            report = await self._run(session, task)
        finally:
            session.busy, session.live = False, None
        if report.status == "failed":
            raise RpcError(INTERNAL, report.detail or "the run failed")
        if report.status == "stopped":
            why = f"(stopped by {report.reason}: {report.detail or 'the answer above is what there is so far'})"
            await self._update(session, shapes.chunk("agent_message", f"\n\n{why}"))
        return {"stopReason": shapes.stop_reason(report), "usage": shapes.used_by(report)}

    def _cancel(self, params: JsonObject) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is not None and session.busy:
            session.cancelled = True
            if session.live is not None:
                session.live.cancel(BY)

    # --- one prompt ----------------------------------------------------------------------------------------------

    async def _run(self, session: Session, task: str) -> Report:
        options = attrs.evolve(
            self._options,
            task=task,
            agent=session.kept.agent,
            workspace=Path(session.kept.workspace),
            mode=session.mode,
            servers=session.servers,
        )
        ready = await trio.to_thread.run_sync(plan, options, self._tools(session))
        folder = create_run(self._state, random.Random())
        earlier = None
        if session.kept.runs:
            before = find_run(self._state, session.kept.runs[-1])
            earlier = await trio.to_thread.run_sync(
                lambda: continuation_of(load(before), before.id, Blobs(before.blobs), Blobs(folder.blobs))
            )
        session.kept.runs.append(folder.id)
        await self._keep(session.kept)
        try:
            with index.beginning(self._state, folder):
                async with (
                    open_journal(folder) as journal,
                    open_run(ready, journal, folder.id, folder, None, earlier) as live,
                    serve(live.stream, Steering(live), folder),
                ):
                    session.live = live
                    if session.cancelled:
                        live.cancel(BY)
                    await self._follow(session, live, ready.root.name)
                    report = await live.report()
        except BaseExceptionGroup as group:
            if (fault := first_of(group, ElencoError)) is None:
                raise
            raise fault from None
        finally:
            if not folder.path.is_dir():  # it never began: the next prompt follows the one before
                session.kept.runs.remove(folder.id)
        assert report is not None
        return report

    async def _follow(self, session: Session, live: LiveRun, root: str) -> None:
        """Show the run as it goes, until it ends; who is asked is asked beside."""
        workspace = live.run.workspace.root
        info = live.run.models.resolve(live.run.cast.get(root).model or live.run.settings.model).info
        updates = Updates(live.id, root, workspace, info.window if info is not None else None, _texts_of(live))
        asked: dict[str, trio.CancelScope] = {}
        async with trio.open_nursery() as nursery, live.stream.subscribe() as reader:
            async for record in reader:
                event = record.event
                if isinstance(event, FileChanged):  # the one event whose update looks at files
                    await trio.to_thread.run_sync(updates.take_change, event)
                for update in updates.of(event):
                    await self._update(session, update)
                match event:
                    case ApprovalRequested():
                        asked[event.id] = trio.CancelScope()
                        nursery.start_soon(self._ask, session, live, updates, event, asked[event.id])
                    case QuestionAsked():
                        nursery.start_soon(self._question, session, live, updates, event)
                    case ApprovalDecided():
                        asked.pop(event.id, trio.CancelScope()).cancel()
                    case _:
                        pass
            nursery.cancel_scope.cancel()

    async def _ask(
        self, session: Session, live: LiveRun, updates: Updates, request: ApprovalRequested, scope: trio.CancelScope
    ) -> None:
        """Put a question to the human at the editor, unless somebody answers it elsewhere first."""
        call, options = shapes.permission(
            request, updates.id(request.call_id), updates.workspace, updates.who(request.actor)
        )
        with scope:
            chosen = await self._choose(session, call, options)
            decision, wide = ("allow" if chosen in ("once", "always") else "deny"), chosen == "always"
            why = "" if decision == "allow" else "refused in the editor"
            try:
                with trio.CancelScope(shield=True):
                    await live.approvals.decide(
                        request.id, decision, BY, why=why, scope="workspace" if wide else "once"
                    )
            except (UsageError, JournalError):
                return  # somebody was faster, or the run has ended

    async def _question(self, session: Session, live: LiveRun, updates: Updates, question: QuestionAsked) -> None:
        """Put an agent's question to the human: one of its options, for there is no place to type."""
        said = NO_WORDS
        if question.options:
            call = {
                "toolCallId": updates.id(question.call_id),
                "title": question.text,
                "kind": "other",
                "content": [shapes.shown(question.text)],
            }
            options = [
                {"optionId": str(number), "name": words, "kind": "allow_once"}
                for number, words in enumerate(question.options)
            ]
            chosen = await self._choose(
                session, call, [*options, {"optionId": "no", "name": "None of these", "kind": "reject_once"}]
            )
            if chosen.isdigit() and int(chosen) < len(question.options):
                said = question.options[int(chosen)]
        try:
            with trio.CancelScope(shield=True):
                await live.questions.answer(question.id, said, BY)
        except (UsageError, JournalError):
            return

    async def _choose(self, session: Session, call: JsonObject, options: Sequence[JsonObject]) -> str:
        """The id of what the human has chosen, "" for nothing."""
        try:
            answer: Any = await self._peer.request(
                "session/request_permission", {"sessionId": session.kept.id, "toolCall": call, "options": options}
            )
        except RpcError:
            return ""
        outcome: Any = cast("dict[str, Any]", answer).get("outcome") if isinstance(answer, dict) else None
        chosen: Any = cast("dict[str, Any]", outcome).get("optionId") if isinstance(outcome, dict) else None
        known = {option["optionId"] for option in options}
        return chosen if isinstance(chosen, str) and chosen in known else ""

    # --- the editor's files ---------------------------------------------------------------------------------------

    def _tools(self, session: Session) -> list[Tool]:
        async def read(path: str) -> str | None:
            answer = await self._patiently(session, "fs/read_text_file", {"path": path})
            found: Any = cast("dict[str, Any]", answer).get("content") if isinstance(answer, dict) else None
            return found if isinstance(found, str) else None

        async def write(path: str, content: str) -> bool:
            return await self._patiently(session, "fs/write_text_file", {"path": path, "content": content}) is not None

        files = files_of(read if self._reads else None, write if self._writes else None)
        return [*files, *([terminal.shell_in(self._terminals(session))] if self._has_terminals else [])]

    def _terminals(self, session: Session) -> terminal.Terminals:
        async def ask(method: str, params: JsonObject) -> Any:
            try:
                named = {"sessionId": session.kept.id, **params}
                return await self._peer.request(f"terminal/{method}", named) or {}
            except RpcError:
                return None

        async def show(call_id: str, id: str) -> None:
            run = session.live.id if session.live is not None else ""
            await self._update(session, terminal.content_of(f"{run}/{call_id}", id))

        return terminal.Terminals(ask, show)

    async def _patiently(self, session: Session, method: str, params: JsonObject) -> Any:
        """An answer of the editor about a file, None for an error or none in time; an empty one is an empty object."""
        with trio.move_on_after(PATIENCE):
            try:
                return await self._peer.request(method, {"sessionId": session.kept.id, **params}) or {}
            except RpcError:
                return None
        return None

    # --- what was said before ------------------------------------------------------------------------------------

    async def _replay(self, session: Session, run: str) -> None:
        """Show the conversation of a session again, as its last run knows it."""
        folder = find_run(self._state, run)
        state = await trio.to_thread.run_sync(load, folder)
        root = state.actors.get(state.root)
        results = {
            result.call_id: result
            for message in (root.history if root is not None else ())
            if isinstance(message, ToolResults)
            for result in message.results
        }
        for message in root.history if root is not None else ():
            match message:
                case UserMessage(kind="task" | "steer"):
                    await self._update(session, shapes.chunk("user_message", message.text))
                case AssistantMessage():
                    for part in message.parts:
                        match part:
                            case Text():
                                await self._update(session, shapes.chunk("agent_message", part.text))
                            case Reasoning():
                                await self._update(session, shapes.chunk("agent_thought", part.text))
                            case ToolCall():
                                id = f"{run}/{part.id}"
                                await self._update(
                                    session, shapes.call(id, part.name, part.arguments, session.kept.workspace)
                                )
                                if (result := results.get(part.id)) is not None:
                                    status = "failed" if result.is_error else "completed"
                                    await self._update(
                                        session, shapes.progress(id, status, [shapes.shown(result.content)])
                                    )
                            case _:
                                pass
                case _:
                    pass

    # --- small things --------------------------------------------------------------------------------------------

    async def _look(self, workspace: Path, servers: Mapping[str, Entry]) -> None:
        """Whether a run could start there. Raises UsageError, DefinitionError."""
        options = attrs.evolve(self._options, task="-", workspace=workspace, servers=servers)
        ready = await trio.to_thread.run_sync(lambda: plan(options, seen=outline(options, tools=TOOL_NAMES)))
        ready.workspace.close()

    async def _keep(self, kept: Kept) -> None:
        try:
            await trio.to_thread.run_sync(keep, self._folder, kept)
        except OSError as error:
            raise JournalError(f"{self._folder} cannot be written: {error.strerror}") from error

    async def _update(self, session: Session, update: JsonObject) -> None:
        await self._peer.notify("session/update", {"sessionId": session.kept.id, "update": update})

    def _session(self, params: JsonObject) -> Session:
        id = params.get("sessionId")
        session = self._sessions.get(id) if isinstance(id, str) else None
        if session is None:
            raise UsageError(f"there is no session {id!r}: begin one with session/new, or load it")
        return session


def _folder_of(params: JsonObject) -> Path:
    cwd = params.get("cwd")
    if not isinstance(cwd, str) or not os.path.isabs(cwd):
        raise UsageError("cwd is the absolute path of a folder")
    if not os.path.isdir(cwd):
        raise UsageError(f"cwd is no folder: {cwd}")
    return Path(cwd)


def _texts_of(live: LiveRun) -> Any:
    def before_and_after(event: FileChanged) -> Texts | None:
        """A changed file's contents, where they are text and still there to be read."""
        try:
            before = None if event.before is None else live.run.journal.contents.get(event.before).decode()
            if event.after is None:
                return before, ""
            after = (Path(live.run.workspace.root) / event.path).read_bytes()
        except (OSError, JournalError, UnicodeDecodeError):
            return None
        if digest(after) != event.after:
            return None  # changed again meanwhile: the next event has it
        try:
            return before, after.decode()
        except UnicodeDecodeError:
            return None

    return before_and_after
