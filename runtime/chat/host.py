"""The runtime process of a chat: works on one turn after the other, as the screen says over its pipes.

The screen writes JSON lines to our standard input and reads such lines from our standard output; what goes on within a
turn it sees over the turn's own control socket, as everybody does. When our input ends, the screen has gone: the turn
under way is left as it stands, for a resume to finish, and the process ends. Only with `--detach` is it worked on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
import trio

from runtime.app import LiveRun, Plan, Resumption, open_run, plan
from runtime.cli.earlier import Earlier, look_up
from runtime.cli.keyboard import Keyboard
from runtime.cli.line_chat import carry_name
from runtime.cli.live import Outcome, note_end, row_of
from runtime.cli.server_prompts import filled_in, is_prompt, prompts_of
from runtime.cli.watcher import Watcher
from runtime.continuation import Continuation
from runtime.errors import ElencoError, JournalError, UsageError, first_of
from runtime.journal import index
from runtime.journal.durable import open_journal
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State, create_run
from runtime.journal.read import load
from runtime.mcps.entry import Entry
from runtime.messages import JsonObject
from runtime.outline import RunOptions, outline
from runtime.record import report_to_json
from runtime.resume import check_resumable
from runtime.steering import Steering
from runtime.watch.commands import command_from_json
from runtime.watch.control import serve

from .bodies import FOLDER
from .look import surroundings


def run(arguments: argparse.Namespace, state: State, options: RunOptions) -> None:
    """Serve a screen until it has gone. Nothing but our lines goes to standard output from here on."""
    out = os.dup(1)
    os.dup2(2, 1)

    def tell(message: JsonObject) -> None:
        with contextlib.suppress(OSError):  # the screen has gone; the end of our input says so too
            os.write(out, json.dumps(message).encode() + b"\n")

    trio.run(Host(arguments, state, options, tell).serve)


@attrs.define(eq=False)
class Host:
    """`earlier` is the run the next turn continues, `live` the turn under way."""

    arguments: argparse.Namespace
    state: State
    options: RunOptions
    tell: Callable[[JsonObject], None]
    earlier: Earlier | None = None
    named: bool = False
    live: LiveRun | None = None
    gone: bool = False

    async def serve(self) -> None:
        """Until the screen has gone and the turn under way has been left or has ended."""
        send, receive = trio.open_memory_channel[JsonObject](64)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._on_signals)
            nursery.start_soon(self._listen, send, nursery)
            async for message in receive:
                await self._carry_out(message, nursery)
            nursery.cancel_scope.cancel()

    async def _on_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                os.close(0)
                self._leave(detach=False)
                return

    async def _listen(self, send: trio.MemorySendChannel[JsonObject], nursery: trio.Nursery) -> None:
        detach = bool(self.arguments.detach)
        keyboard = Keyboard()
        async with send:
            while not self.gone and (line := await _line(keyboard)) is not None:
                try:
                    message = cast("JsonObject", json.loads(line))
                except ValueError:  # half a line: the screen was killed while it wrote
                    break
                if message["op"] == "leave":
                    detach = detach or bool(message.get("detach"))
                    break
                if message["op"] == "steer":
                    nursery.start_soon(self._steer, message)
                else:
                    await send.send(message)
        self._leave(detach=detach)

    def _leave(self, *, detach: bool) -> None:
        """Nobody looks any more: go on alone, as far as no human is needed, or leave the turn as it stands."""
        self.gone = True
        if self.live is None:
            return
        run = self.live.run
        if detach:
            run.settings = attrs.evolve(run.settings, headless=True)
            run.check_waiting()
        else:
            run.suspend()

    # --- what the screen asks --------------------------------------------------------------------------------------

    async def _carry_out(self, message: JsonObject, nursery: trio.Nursery) -> None:
        try:
            match message["op"]:
                case "look":
                    servers = await self._look()
                    if servers:
                        nursery.start_soon(self._prompts, servers)
                case "turn":
                    await self._turn(message)
                case "finish":
                    await self._finish(str(message["run"]))
                case "switch":
                    mcp, no_mcp = tuple(message["mcp"]), tuple(message["no_mcp"])
                    self.options = attrs.evolve(self.options, mcp=mcp, no_mcp=no_mcp)
                case "use":
                    await self._use(message.get("run"), named=bool(message.get("named")))
                case other:
                    raise UsageError(f"unknown: {other}")
        except ElencoError as error:
            self.tell({"event": "error", "op": message["op"], "text": str(error), "code": error.exit_code})
        except BaseExceptionGroup as group:
            if (fault := first_of(group, ElencoError)) is None:
                raise
            self.tell({"event": "error", "op": message["op"], "text": str(fault), "code": fault.exit_code})

    async def _steer(self, message: JsonObject) -> None:
        """Carry out a command to the turn under way and answer it: our screen needs no place at the control socket."""
        answer: JsonObject
        try:
            if self.live is None:
                raise UsageError("no turn is under way")
            answer = {"result": await Steering(self.live).run(command_from_json(message["command"]))}
        except ElencoError as error:
            answer = {"error": str(error)}
        self.tell({"event": "answered", "number": message["number"], **answer})

    async def _look(self) -> Mapping[str, Entry]:
        """Tell what is around; the MCP servers whose prompts are commands."""
        seen = await trio.to_thread.run_sync(outline, self.options)
        found = await trio.to_thread.run_sync(surroundings, seen)
        self.tell(
            {
                "event": "looked",
                "agent": seen.root.name,
                "model": seen.root.model or seen.model,
                "workspace": str(self.options.workspace.resolve()),
                "notice": seen.notice,
                **found,
            }
        )
        return {name: seen.servers[name] for name in seen.root.mcps if not seen.servers[name].disabled}

    async def _prompts(self, servers: Mapping[str, Entry]) -> None:
        """Tell which prompts the servers offer; they are asked beside the turns, each over a connection of its own."""
        with contextlib.suppress(ElencoError):
            found = await trio.to_thread.run_sync(prompts_of, self.arguments, servers, abandon_on_cancel=True)
            self.tell({"event": "prompts", "prompts": found})

    async def _use(self, run: object, *, named: bool) -> None:
        """The conversation that the next turn continues, None for a new one; `named`: its name goes with it."""
        self.earlier, self.named = None, named
        if isinstance(run, str):
            self.earlier = await trio.to_thread.run_sync(lambda: look_up(self.state, run, headless=False))
        self.tell({"event": "using", "run": self.earlier.folder.id if self.earlier is not None else None})

    async def _turn(self, message: JsonObject) -> None:
        text = str(message["text"])
        if is_prompt(text) and not message.get("compacts"):
            text = await trio.to_thread.run_sync(filled_in, text, self.options, self.arguments)
        folder = await trio.to_thread.run_sync(create_run, self.state, random.Random())
        with index.beginning(self.state, folder):
            ready = await trio.to_thread.run_sync(self._plan, text, message, folder)
            continues = None
            if self.earlier is not None:
                continues = await trio.to_thread.run_sync(self.earlier.continuation, folder)
            before = self.earlier.folder.id if self.earlier is not None and self.named else None
            await self._work(ready, folder, None, continues, before)

    def _plan(self, text: str, message: JsonObject, folder: RunFolder) -> Plan:
        options = attrs.evolve(self.options, task=text).on_model(message.get("model"))
        if message.get("debug") and options.model.record is None:
            options = attrs.evolve(options, model=attrs.evolve(options.model, record=folder.path / FOLDER))
        if message.get("compacts"):
            options = attrs.evolve(options, compacts=True, output_schema=None)
        return plan(options)

    async def _finish(self, run: str) -> None:
        """A turn that was left half-way goes on from its record."""
        earlier = await trio.to_thread.run_sync(lambda: look_up(self.state, run, headless=False))
        check_resumable(earlier.state, earlier.folder.id)
        flags = self.options
        options, resumption = earlier.taken_up(
            earlier.followed_by(flags, workspace=False, mode=flags.mode != "default")
        )
        ready = await trio.to_thread.run_sync(plan, options)
        await self._work(ready, earlier.folder, resumption, None, None)

    async def _work(
        self,
        ready: Plan,
        folder: RunFolder,
        resumption: Resumption | None,
        continues: Continuation | None,
        before: str | None,
    ) -> None:
        """Own a run until it has ended or is left; the next turn continues it."""
        outcome = Outcome(time.time(), Watcher("none"))
        if resumption is not None:
            outcome.watcher.state = await trio.to_thread.run_sync(lambda: load(folder, histories=False))
        try:
            async with open_journal(folder) as journal:
                if resumption is not None and journal.last_seq != resumption.state.seq:
                    raise JournalError(
                        f"run {folder.id} went on in another process meanwhile: elenco show {folder.id}{in_state()}"
                    )
                journal.subscribe(outcome.watcher.take)
                outcome.owned = True
                await trio.to_thread.run_sync(index.run_started, self.state, row_of(ready, folder, outcome.started))
                if before is not None:
                    await trio.to_thread.run_sync(carry_name, self.state, before, folder.id)
                async with (
                    open_run(ready, journal, folder.id, folder, resumption, continues) as live,
                    serve(live.stream, Steering(live), folder),
                ):
                    self.live = live
                    if self.gone:
                        self._leave(detach=False)
                    await journal.barrier()
                    self.tell({"event": "began", "run": folder.id, "window": _window(ready)})
                    outcome.report = await live.report()
        finally:
            self.live = None
            if outcome.owned:
                with trio.move_on_after(5, shield=True):
                    await trio.to_thread.run_sync(note_end, self.state, folder, outcome)
        if outcome.owned and not self.gone:
            self.earlier = await trio.to_thread.run_sync(lambda: look_up(self.state, folder.id, headless=False))
            self.named = True
        report = report_to_json(outcome.report) if outcome.report is not None else None
        self.tell({"event": "ended", "run": folder.id, "report": report})


async def _line(keyboard: Keyboard) -> str | None:
    try:
        return await keyboard.line()
    except (OSError, trio.ClosedResourceError):
        return None


def _window(ready: Plan) -> int | None:
    found: Any = ready.models.resolve(ready.root.model or ready.model).info
    return found.window if found is not None else None
