"""A conversation as the screen has it: the runtime process, the run under way, what waits to be said. No widgets."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import attrs

from runtime.errors import ElencoError, JournalError, UsageError, did_you_mean
from runtime.journal.folder import RunFolder, State
from runtime.journal.lock import is_owned
from runtime.journal.read import RunReader
from runtime.known import check_name
from runtime.messages import JsonObject
from runtime.outline import RunOptions, outline, settings_of
from runtime.watch import Disconnected, NotRunning
from runtime.watch.commands import Cancel, Command, Compact, SetModel, SwitchServer
from runtime.watch.lines import record_from
from runtime.watch.on_asyncio import connect, follow

from .commands import Slash
from .engine import Engine
from .past import chain
from .view import Told, View

BY = "you"
CANCELS = "Ctrl-C"


@attrs.define(eq=False)
class Session:
    """`words` start the runtime process, `tell` shows a person a line that is no event, `give_back` what was not sent.

    `busy`: a turn is under way, or `starting`: it cannot be asked yet; `foreign`: in a process that is not ours.
    `broken` says why the runtime has ended before its time, `left` which run it left half-way. `turns` are the runs of
    the conversation, oldest first; `agent` and `model` are the next turn's, `chosen` is a model that was chosen in it.
    """

    state: State
    options: RunOptions
    words: Sequence[str]
    tell: Callable[[str], None]
    give_back: Callable[[str], None]
    view: View = attrs.Factory(View)
    queue: list[str] = attrs.Factory(list[str])
    turns: list[str] = attrs.Factory(list[str])
    undone: int = 0
    busy: bool = False
    starting: bool = False
    foreign: bool = False
    begun: bool = False
    broken: str = ""
    left: str = ""
    agent: str = ""
    model: str = ""
    chosen: str = ""
    window: int | None = None
    debug: bool = False
    prompts: list[Slash] = attrs.Factory(list[Slash])
    looked: JsonObject = attrs.Factory(dict[str, Any])
    engine: Engine = attrs.field(init=False)
    _cancelled: bool = attrs.field(init=False, default=False)
    _sent: str = attrs.field(init=False, default="")
    _tasks: set[asyncio.Task[None]] = attrs.field(init=False, factory=set[asyncio.Task[None]])
    _watch: asyncio.Task[None] | None = attrs.field(init=False, default=None)
    _leaving: bool = attrs.field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.engine = Engine(self.words, self._hear)
        self.agent = self.options.agent
        self.model = self.options.model.model or ""

    # --- beginning, other conversations, end ------------------------------------------------------------------------

    async def start(self, resume: RunFolder | None) -> None:
        """Start the runtime; go on with a run, also one that another process works on. Raises ElencoError."""
        await self.engine.start()
        self.engine.send("look")
        if resume is not None:
            await self.go_on_with(resume)

    async def go_on_with(self, folder: RunFolder) -> None:
        """Show a run and continue it: a live one is watched, one that was left half-way is finished first.

        Raises JournalError.
        """
        self._anew()
        self.turns = await asyncio.to_thread(chain, self.state, folder.id)
        self.begun = True
        self.view.begin(folder.id)
        if is_owned(folder.lock):
            self.busy = self.foreign = True
            self._watch = self._spawn(self._follow(folder))
            return
        await self._read(folder)
        if self.view.state.finished is None:
            self.finish(folder.id)
        else:
            self.engine.send("use", run=folder.id, named=True)

    def begin_anew(self) -> None:
        """A new conversation; the old one stays on record."""
        self._anew()
        self.engine.send("use", run=None)

    async def branch(self, back: int) -> None:
        """Go on from so many turns back; the original stays. Raises JournalError, IndexError."""
        run = self.turns[-1 - back]
        turns = self.turns[: len(self.turns) - back]
        if back:
            folder = self.state.run(run)
            self._anew()
            self.begun = True
            self.view.begin(run)
            await self._read(folder)
        self.turns = turns
        self.engine.send("use", run=run, named=False)

    async def leave(self, *, detach: bool = False) -> None:
        """The runtime ends, and leaves a turn under way as it stands; or goes on alone with it."""
        self._leaving = True
        clean = await self.engine.close(detach=detach)
        if not clean:
            self.tell("the runtime did not end in time and was killed")
        for task in list(self._tasks):
            task.cancel()

    @property
    def run(self) -> str | None:
        """The newest run of the conversation."""
        return self.turns[-1] if self.turns else None

    @property
    def answering(self) -> str:
        """The model of the turn under way, else of the next one; empty as long as nobody has looked."""
        root = self.view.root
        return root.model if self.busy and not self.starting and root is not None else self.model

    @property
    def unfinished(self) -> bool:
        return self.begun and self.view.state.finished is None

    # --- turns ---------------------------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Say something to the agent: now, or when the turn under way has ended."""
        if self.broken:
            self.queue.append(text)
            self.repair()
        elif self.busy:
            self.queue.append(text)
        else:
            self._turn(text)

    def finish(self, run: str) -> None:
        """Go on with a turn that was left half-way."""
        self._begins()
        self.left = ""
        self.engine.send("finish", run=run)

    def repair(self) -> None:
        """Start the runtime again after it has ended before its time, and go on where it was."""
        if self.broken:
            self.broken = ""
            self._begins()
            self._spawn(self._restart())

    def cancel(self) -> None:
        """Cancel the turn under way, and say nothing of what waits to be said."""
        for text in self.queue:
            self.give_back(text)
        self.queue.clear()
        if self.starting:
            self._cancelled = True
        elif self.busy:
            self.ask(Cancel(by=CANCELS))

    def ask(self, command: Command, then: Callable[[JsonObject], None] | None = None) -> None:
        """Have the run under way carry a command out; what it answers, or why it does not, is told."""
        self._spawn(self._ask(command, then))

    def set_model(self, name: str) -> None:
        """Go on with another model: the turn under way from its next request on, the next turns from their first.

        Raises UsageError, DefinitionError for the settings.
        """

        def chosen(_: JsonObject) -> None:
            self.chosen = self.model = name

        here, user = settings_of(self.options.workspace)
        check_name(name, self.options.model, {**user.providers, **here.providers}, os.environ, "/models")
        if self.busy:
            self.ask(SetModel(model=name, by=BY), chosen)
        else:
            self.chosen = self.model = name
            self.tell(f"the next turn is for {name}; the conversation stays, what a provider has cached of it does not")

    def compact(self) -> None:
        """Make the conversation shorter: before the turn's next request, or as a turn of its own."""
        if self.busy:
            self.ask(Compact(by=BY), lambda _: self.tell("the conversation is made shorter before the next request"))
        elif not self.turns:
            self.tell("nothing has been said yet")
        else:
            self._begins()
            self.engine.send("turn", text="/compact", compacts=True, model=self.chosen or None, debug=self.debug)

    def switch_server(self, name: str, *, on: bool) -> None:
        """Switch an MCP server on or off, now and in later turns. Raises UsageError for no such one."""
        self.options = options = switched(self.options, name, on=on)
        self.engine.send("switch", mcp=options.mcp, no_mcp=options.no_mcp)
        self.engine.send("look")
        if self.busy and not self.starting:
            self.ask(SwitchServer(server=name, on=on, by=BY))
        else:
            self.tell(f"{name} is {'on' if on else 'off'} from the next turn on")

    # --- inside ----------------------------------------------------------------------------------------------------

    async def _ask(self, command: Command, then: Callable[[JsonObject], None] | None) -> None:
        """A run of our own process is told over its pipe, which is ours alone, any other over its socket."""
        try:
            if self.foreign:
                async with connect(self.state.run(self.view.run)) as client:
                    answer = await client.send(command)
            else:
                answer = await self.engine.steer(command)
        except NotRunning:
            self.tell("no turn is under way")
        except ElencoError as error:
            self.tell(str(error))
        else:
            if then is not None:
                then(answer)

    def _turn(self, text: str) -> None:
        self._begins()
        self._sent = text
        self.engine.send("turn", text=text, model=self.chosen or None, debug=self.debug)

    def _begins(self) -> None:
        self.busy = self.starting = True
        self._cancelled = False

    def _hear(self, message: JsonObject | None) -> None:
        """A message of the runtime process, None when it has ended."""
        if message is None:
            self._lost()
            return
        match message["event"]:
            case "looked":
                self.looked = message
                self.agent = str(message["agent"])
                self.model = self.chosen or str(message["model"])
                if message["notice"]:
                    self.tell(str(message["notice"]))
            case "prompts":
                self.prompts = [Slash(**each, origin="server") for each in message["prompts"]]
            case "began":
                self._began(str(message["run"]), cast("int | None", message.get("window")))
            case "answered":
                self.engine.answered(message)
            case "ended":
                self._spawn(self._ended())
            case "error":
                self._failed(message)
            case _:
                pass

    def _began(self, run: str, window: int | None) -> None:
        self.window = window
        self.starting, self._sent = False, ""
        if not self.turns or self.turns[-1] != run:
            self.turns.append(run)
            self.undone = 0
        if self.view.run != run:
            self.view.begin(run)
        self.begun = True
        self._watch = self._spawn(self._follow(self.state.run(run)))
        if self._cancelled:
            self.ask(Cancel(by=CANCELS))

    async def _ended(self) -> None:
        """Our runtime is done with a turn: what it recorded last is shown before the next one begins."""
        if self._watch is not None:
            await asyncio.wait([self._watch])
        self._over()

    def _failed(self, message: JsonObject) -> None:
        self.tell(str(message["text"]))
        if message["op"] not in ("turn", "finish"):
            return
        if self._sent:
            self.give_back(self._sent)
        self._sent = ""
        if self._watch is None or self._watch.done():
            self.busy = self.starting = False

    def _over(self) -> None:
        self.busy = self.starting = self.foreign = False
        if self.queue and not self.broken and self.view.state.finished is not None:
            self._turn(self.queue.pop(0))

    async def _follow(self, folder: RunFolder) -> None:
        """Show a run until it has ended or its process is gone."""
        try:
            async with connect(folder) as client, client.subscribe(self.view.state.seq + 1) as frames:
                async for frame in frames:
                    self.view.take(record_from(frame))
        except (NotRunning, Disconnected):
            pass  # it has ended already, or is gone
        except ElencoError as full:
            self.tell(f"{full}: the turn is shown from its record until there is a place")
            await self._follow_record(folder)
        await self._read(folder)
        if self.foreign:
            await self._take_up(folder)

    async def _follow_record(self, folder: RunFolder) -> None:
        try:
            async with follow(folder, self.view.state.seq + 1) as frames:
                async for frame in frames:
                    self.view.take(record_from(frame))
        except ElencoError as error:
            self.tell(str(error))

    async def _take_up(self, folder: RunFolder) -> None:
        """Another process is done with a run: the next turn is ours."""
        await asyncio.to_thread(_gone, folder)
        await self._read(folder)
        if self.view.state.finished is None:
            self.broken, self.left = "the process that worked on it has gone", folder.id
            self.busy = self.foreign = False
            return
        self.engine.send("use", run=folder.id, named=True)
        self._over()

    async def _read(self, folder: RunFolder) -> None:
        """Take what is on record and was not shown yet."""
        try:
            for record in await asyncio.to_thread(_records, folder, self.view.state.seq + 1):
                self.view.take(record)
        except JournalError as error:
            self.tell(str(error))

    def _lost(self) -> None:
        if self._leaving:
            return
        code = self.engine.code or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self.broken = f"the runtime has ended ({how})"
        if self._sent:
            self.give_back(self._sent)
            self._sent = ""
        for line in list(self.engine.words_of_it)[-3:]:
            self.tell(line)
        self._spawn(self._left_half_way())

    async def _left_half_way(self) -> None:
        if self._watch is not None:
            await asyncio.wait([self._watch])
        if self.foreign:
            return
        if self.busy and self.unfinished:
            self.left = self.view.run
        self.busy = self.starting = False
        what = f"; run {self.left} stands where it was" if self.left else ""
        self.view.log.add(Told(f"✗ {self.broken}{what}. Enter goes on with a new one."))

    async def _restart(self) -> None:
        left = self.left
        await self.engine.start()
        if left:
            self.finish(left)
        else:
            self.engine.send("use", run=self.run, named=True)
            self._over()

    def _anew(self) -> None:
        self.view = View()
        self.turns, self.undone = [], 0
        self.queue.clear()
        self.begun = self.busy = self.starting = self.foreign = False
        self.left = ""

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def added(looked: Mapping[str, Any], prompts: Iterable[Slash] = ()) -> list[Slash]:
    """The commands that plugins and servers bring."""
    commands = cast("list[dict[str, str]]", looked.get("commands", []))
    found = [Slash(each["name"], "[WORDS]", each["summary"] or "a plugin's", origin="plugin") for each in commands]
    return [*found, *prompts]


def _without(names: Iterable[str], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def switched(options: RunOptions, name: str, *, on: bool) -> RunOptions:
    """The options with an MCP server on or off. Raises UsageError for one that no agent here names."""
    mcp, no_mcp = _without(options.mcp, name), _without(options.no_mcp, name)
    changed = attrs.evolve(options, mcp=(*mcp, name) if on else mcp, no_mcp=no_mcp if on else (*no_mcp, name))
    known = outline(changed).servers
    if name not in known:
        raise UsageError(f"no agent here has an MCP server '{name}'{did_you_mean(name, known)}")
    return changed


def _gone(folder: RunFolder) -> None:
    """Until nobody owns a run. Blocks."""
    while is_owned(folder.lock):
        time.sleep(0.05)


def _records(folder: RunFolder, from_seq: int) -> list[Any]:
    with RunReader(folder) as reader:
        return list(reader.records(from_seq))
