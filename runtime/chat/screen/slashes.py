"""What the slash commands do on the screen."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from runtime.chat.bodies import KEPT, NOT_KEPT, newest_of
from runtime.chat.commands import Given, elenco_words, help_lines, steering
from runtime.chat.export import export
from runtime.chat.figures import budget_lines
from runtime.chat.past import conversations, session_line
from runtime.chat.session import BY, Session
from runtime.cli.tree import rows
from runtime.cli.visible import one_line
from runtime.errors import ElencoError, UsageError
from runtime.journal.elsewhere import in_state
from runtime.limits.limits import count_text
from runtime.watch.commands import ChangeLimits, SwitchServer

from .pages import Choice, Reading

if TYPE_CHECKING:
    from .app import ChatApp

KEYS = """\
Enter sends   Ctrl-J new line   Up, Down what was typed before   Tab completes a command
Ctrl-C cancels the turn   Ctrl-O all of the tools' output   Ctrl-T what the model thinks   Ctrl-B the pages beside
Page Up, Page Down scroll   Escape back to typing   Ctrl-Q leaves
A prompt that is sent while a turn is under way waits for its end."""


class Slashes:
    """One method a command, named after it."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app

    @property
    def _session(self) -> Session:
        return self._app.session

    async def run(self, given: Given) -> None:
        """Do what was typed; what goes wrong is told."""
        session = self._session
        try:
            words = None
            if given.slash.name not in _OWN_WAY:
                here = str(session.options.workspace)
                words = elenco_words(given, workspace=here, agent=session.agent, run=self._subject(given))
            if isinstance(words, str):
                self._app.tell(words)
            elif words is not None:
                await self._elenco(words, given)
            elif given.slash.origin == "server":
                session.submit(f"/{given.slash.name} {given.rest}".rstrip())
            else:
                await getattr(self, f"_{given.slash.name}")(given)
        except (ElencoError, ValueError) as error:
            self._app.tell(f"/{given.slash.name}: {error}")

    def _subject(self, given: Given) -> str | None:
        """The run a command is about: undo takes back one turn after the other."""
        session = self._session
        if given.slash.name == "undo" and session.turns:
            return session.turns[max(0, len(session.turns) - 1 - session.undone)]
        return session.run

    # --- by way of the command line -----------------------------------------------------------------------------------

    async def _elenco(self, words: Sequence[str], given: Given) -> None:
        session = self._session
        if given.slash.name == "undo":
            self._refuse_busy()
        code, text = await run_elenco(words, session)
        if given.slash.name == "undo" and code == 0:
            session.undone += 1
        text = text.strip() or ("done" if code == 0 else f"it ended with exit code {code}")
        if text.count("\n") > 30:
            self._app.push_screen(Reading(given.slash.shown, text))
        else:
            self._app.tell(text)

    async def _export(self, given: Given) -> None:
        session = self._session
        assert session.run is not None
        file = await asyncio.to_thread(export, session.state, session.run, session.options.workspace, given.rest)
        self._app.tell(f"written to {file}")

    # --- about what is seen -------------------------------------------------------------------------------------------

    async def _help(self, given: Given) -> None:
        del given
        self._app.tell("\n".join([*help_lines(self._app.more()), "", KEYS]))

    async def _thinking(self, given: Given) -> None:
        del given
        self._app.action_thinking()

    async def _theme(self, given: Given) -> None:
        names = sorted(self._app.available_themes)
        wanted = given.rest
        if not wanted:
            wanted = await self._choose("colours", [(name, name) for name in names]) or ""
        if wanted and wanted not in names:
            raise UsageError(f"there is no theme '{one_line(wanted, 40)}'; there are: {', '.join(names)}")
        if wanted:
            self._app.theme = wanted

    async def _copy(self, given: Given) -> None:
        del given
        answer = self._session.view.answer
        if not answer:
            raise UsageError("there is no answer yet")
        self._app.copy_to_clipboard(answer)
        self._app.tell(f"the last answer was given to the terminal's clipboard, {len(answer)} characters")

    async def _status(self, given: Given) -> None:
        del given
        session, view = self._session, self._session.view
        now = time.time()
        found = [
            f"run {session.run or 'none yet'}   turns {len(session.turns)}   {session.agent}, with {session.answering}"
        ]
        found += [f"{row.branch}{row.mark} {row.name}  {row.doing}  {'  '.join(filter(None, row.facts))}" for row in
                  rows(view.state, now, view.told, view.speaking)]  # fmt: skip
        found += budget_lines(view, now) if view.state.root else []
        found += [f"queued: {one_line(text, 100)}" for text in session.queue]
        self._app.tell("\n".join(found))

    async def _debug(self, given: Given) -> None:
        session = self._session
        match given.rest:
            case "on" | "off":
                session.debug = given.rest == "on"
                self._app.tell(KEPT if session.debug else NOT_KEPT)
            case "":
                text = await asyncio.to_thread(newest_of, session.state, session.turns, on=session.debug)
                self._app.push_screen(Reading("/debug", text))
            case _:
                raise UsageError("write /debug, /debug on or /debug off")

    # --- about the run ------------------------------------------------------------------------------------------------

    async def _models(self, given: Given) -> None:
        looked = cast("list[dict[str, Any]]", self._session.looked.get("models", []))
        name = given.rest
        if not name:
            lines = [
                (each["name"], _model_line(each, current=each["name"] == self._session.answering)) for each in looked
            ]
            title = "models that can be asked here   others: /models PROVIDER/MODEL   keys: elenco models"
            name = await self._choose(title, lines) or ""
        if name:
            self._session.set_model(name)

    async def _budget(self, given: Given) -> None:
        command = steering(given, BY)
        if not isinstance(command, ChangeLimits):
            self._app.tell("\n".join(budget_lines(self._session.view, time.time())))
            return
        (limit,) = command.limits
        self._session.ask(command, lambda answer: self._app.tell(f"{limit} is {answer['limits'].get(limit)} now"))

    async def _compact(self, given: Given) -> None:
        del given
        self._session.compact()

    async def _mcps(self, given: Given) -> None:
        command = steering(given, BY)
        assert isinstance(command, SwitchServer)
        self._session.switch_server(command.server, on=command.on)

    async def _cancel(self, given: Given) -> None:
        del given
        self._app.action_cancel_turn()

    async def _say(self, given: Given) -> None:
        command = steering(given, BY)
        assert command is not None
        self._session.ask(command)

    # --- about the conversation ---------------------------------------------------------------------------------------

    def _refuse_busy(self) -> None:
        if self._session.busy:
            raise UsageError("a turn is under way: /cancel it first")

    async def _new(self, given: Given) -> None:
        del given
        self._refuse_busy()
        self._session.begin_anew()
        self._app.tell("a new conversation")

    async def _fork(self, given: Given) -> None:
        self._refuse_busy()
        session = self._session
        back = int(given.rest) if given.rest.isdecimal() else 0 if not given.rest else -1
        if not 0 <= back < len(session.turns):
            raise UsageError(f"write /fork or /fork N, N below {len(session.turns)}, the turns so far")
        before = session.run
        await session.branch(back)
        self._app.tell(
            f"what you say next begins a branch; the original stays: elenco chat --resume {before}{in_state()}"
        )

    async def _sessions(self, given: Given) -> None:
        self._refuse_busy()
        session = self._session
        found = await asyncio.to_thread(conversations, session.state, session.options.workspace)
        wanted = given.rest
        if not wanted:
            now = time.time()
            lines = [(each.run, session_line(each, now, current=each.run == session.run)) for each in found]
            if not lines:
                raise UsageError("there is no earlier conversation here")
            wanted = (
                await self._choose("conversations here, newest first   Enter goes on with one, Escape goes back", lines)
                or ""
            )
        run = next((each.run for each in found if wanted in (each.run, each.name)), None)
        if wanted and run is None:
            raise UsageError(f"no conversation '{one_line(wanted, 40)}' here")
        if run is not None and run != session.run:
            await session.go_on_with(session.state.run(run))

    async def _exit(self, given: Given) -> None:
        self._app.leave(detach=given.rest == "--detach")

    async def _choose(self, title: str, options: Sequence[tuple[str, str]]) -> str | None:
        return await self._app.push_screen_wait(Choice(title, options))


_OWN_WAY = frozenset({"models", "status"})
"""Commands of which the screen shows more than the command line."""


def _model_line(each: dict[str, Any], *, current: bool) -> str:
    window = f"  {count_text(each['window'])} tokens" if each["window"] else ""
    return f"{'●' if current else ' '} {one_line(each['name'], 60)}{window}"


async def run_elenco(words: Sequence[str], session: Session) -> tuple[int, str]:
    """The exit code and the words of another `elenco` command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runtime.cli", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "ELENCO_STATE": str(session.state.path), "NO_COLOR": "1"},
    )
    text, _ = await process.communicate()
    return cast("int", process.returncode), text.decode(errors="replace")
