"""The screen of a chat: keys and panes around a session; what is shown is painted twenty times a second at most."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import time
from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, TextArea

from runtime.chat.commands import Given, Slash, Wrong, read
from runtime.chat.commands import Prompt as Line
from runtime.chat.figures import doing, status_line
from runtime.chat.session import BY, Session, added
from runtime.chat.typed import Typed
from runtime.chat.view import Told
from runtime.cli import card
from runtime.cli.choices import Allow, Refuse, choice_of
from runtime.cli.visible import one_line, visible
from runtime.errors import ElencoError
from runtime.events import ApprovalRequested, QuestionAsked
from runtime.journal.elsewhere import in_state
from runtime.journal.folder import RunFolder, State
from runtime.outline import RunOptions
from runtime.watch.commands import Answer, Approve, Cancel, Deny

from .early import Early, signals_may_come
from .pages import ActorPage
from .paint import UNFOLDED, coloured_card
from .prompt import Offers, Prompt
from .side import Side
from .slashes import Slashes
from .transcript import Transcript

PAINTINGS = 1 / 20
SIDE_FROM = 110
"""Columns from which the pages beside the conversation are open."""
WELCOME = """\
{agent} answers, with {model}, in {workspace}
Try: What does this project do?
/help lists the commands   Ctrl-B opens agents, skills, MCP servers and budget
Ctrl-C cancels a turn   Ctrl-Q leaves"""

CSS = """
Screen { layout: vertical; }
#middle { height: 1fr; }
#left { width: 1fr; }
#transcript { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
#reasoning { height: 8; border-top: solid $panel; padding: 0 1; color: $text-muted; display: none; }
#side { width: 44; height: 1fr; border-left: solid $panel; display: none; }
#side OptionList { border: none; background: transparent; height: 1fr; }
#side VerticalScroll { height: 1fr; padding: 0 1; }
#side TabbedContent, #side ContentSwitcher { height: 1fr; }
#side TabPane { padding: 0; height: 1fr; }
.entry { margin: 0 0 1 0; height: auto; }
.said { margin: 1 0 0 0; }
.told { margin: 0; }
.called { margin: 0; }
.spoke { padding: 0; margin: 1 0; }
.live { color: $text; }
Markdown.spoke > MarkdownBlock:last-child { margin-bottom: 0; }
#card { height: auto; border: round $warning; padding: 0 1; display: none; }
#asked { height: auto; max-height: 40vh; scrollbar-size-vertical: 1; }
#choices { height: auto; }
#queued { height: auto; color: $text-muted; padding: 0 1; display: none; }
#offers { height: auto; max-height: 25vh; background: $panel; padding: 0 1; }
#offers { text-wrap: nowrap; text-overflow: ellipsis; }
#prompt { height: auto; max-height: 8; border: round $primary; padding: 0 1; }
#status { height: 1; background: $panel; color: $text; padding: 0 1; }
"""


class ChatApp(App[None]):
    """One conversation after the other. `fault` is what ended the screen before its time, `early` typed before it."""

    CSS = CSS
    TITLE = "Elenco"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "cancel_turn", "cancel the turn", priority=True),
        Binding("ctrl+q", "leave", "leave", priority=True),
        Binding("ctrl+o", "unfold", "unfold tool output", priority=True),
        Binding("ctrl+b", "side", "agents, skills, MCP, budget", priority=True),
        Binding("ctrl+t", "thinking", "what the model thinks", priority=True),
        Binding("escape", "typing", "back to typing"),
        Binding("pageup", "scroll(-1)", "scroll up", priority=True),
        Binding("pagedown", "scroll(1)", "scroll down", priority=True),
    ]

    def __init__(
        self, state: State, options: RunOptions, words: Sequence[str], resume: RunFolder | None, *, detach: bool = False
    ) -> None:
        super().__init__()
        self.session = Session(state, options, words, self.tell, self.give_back)
        self.fault: BaseException | None = None
        self.detach = detach
        self.early = Early()
        self._resume = resume
        self._typed = Typed.of(state.path, options.workspace)
        self._slashes = Slashes(self)
        self._editing = ""
        self._asked: ApprovalRequested | QuestionAsked | None = None
        self._greeted = False
        self._shown_status = self._shown_reasoning = self._shown_queue = ""
        self._side_wanted: bool | None = None
        self._leaving = False

    # --- panes --------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield Transcript("transcript")
                with VerticalScroll(id="reasoning"):
                    yield Static("", id="thoughts", markup=False)
            yield Side()
        with Vertical(id="card"):
            with VerticalScroll(id="asked"):
                yield Static("", id="question", markup=False)
            yield Static("", id="choices", markup=False)
        yield Static("", id="queued", markup=False)
        yield Offers()
        yield Prompt(self._typed, self.more)
        yield Static("", id="status", markup=False)

    async def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.leave)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)
        loop.add_signal_handler(signal.SIGINT, self.leave)
        signals_may_come()
        self.screen.set_focus(self.query_one(Prompt))  # at once: keys wait already
        self.query_one("#reasoning").anchor()
        try:
            await self.session.start(self._resume)
        except ElencoError as error:
            self.tell(str(error))
        self.set_interval(PAINTINGS, self.paint)
        prompt = self.query_one(Prompt)
        for line in self.early.sent:
            prompt.post_message(Prompt.Sent(line))
        prompt.put(self.early.begun + prompt.text)

    def on_resize(self, event: events.Resize) -> None:
        wanted = self._side_wanted if self._side_wanted is not None else event.size.width >= SIDE_FROM
        self.query_one(Side).display = wanted

    def paint(self) -> None:
        """Show what has changed."""
        if not self.query(Transcript):
            return  # the screen is being taken down
        session, view = self.session, self.session.view
        if not self._greeted and session.looked:
            self._greeted = True
            self._greet()
        now = time.time()
        self.query_one(Transcript).paint(view.log, str(view.text))
        side = self.query_one(Side)
        if side.display:
            side.paint(view, session.looked, now)
        self._paint_reasoning()
        self._paint_question()
        self._paint_foot()

    def _greet(self) -> None:
        session = self.session
        if not session.view.log.entries:
            text = WELCOME.format(
                agent=session.agent, model=session.model, workspace=one_line(str(session.looked["workspace"]), 80)
            )
            if session.model == "offline/extract":
                text += "\nNo model is connected: it quotes your files and invents nothing (/models)."
            session.view.log.add(Told(text, "note"))

    def _paint_reasoning(self) -> None:
        panel = self.query_one("#reasoning")
        view = self.session.view
        text = str(view.reasoning) or view.thought
        if panel.display and text != self._shown_reasoning:
            self._shown_reasoning = text
            self.query_one("#thoughts", Static).update(Content(visible(text or "nothing thought yet")))

    def _paint_question(self) -> None:
        asked = self.session.view.state.asked if self.session.busy and not self.session.starting else None
        if asked is self._asked:
            return
        self._asked, self._editing = asked, ""
        box = self.query_one("#card")
        box.display = asked is not None
        match asked:
            case ApprovalRequested():
                self._put(card.asked(asked, UNFOLDED), card.keys(asked))
            case QuestionAsked():
                self._put(card.put(asked), card.question_keys(asked))
            case None:
                pass

    def _put(self, question: str, choices: str) -> None:
        """Show what is asked, from its beginning, above the choices, which are always seen."""
        self.query_one("#question", Static).update(coloured_card(question))
        self.query_one("#choices", Static).update(Content(choices))
        self.query_one("#asked").scroll_home(animate=False)

    def _paint_foot(self) -> None:
        session = self.session
        state = doing(session.view, alive=not session.broken, begun=session.begun or session.busy)
        if session.starting:
            state = "● begins"
        text = status_line(
            session.view,
            doing="⏻ leaving" if self._leaving else state,
            model=session.answering or "…",
            window=session.window,
            queued=len(session.queue),
            width=self.size.width - 2,
        )
        if text != self._shown_status:
            self._shown_status = text
            self.query_one("#status", Static).update(Content(text))
        queue = "\n".join(f"⋯ {one_line(each, 100)}" for each in session.queue)
        if queue != self._shown_queue:
            self._shown_queue = queue
            shown = self.query_one("#queued", Static)
            shown.display = bool(queue)
            shown.update(Content(queue))

    # --- typing -------------------------------------------------------------------------------------------------------

    def more(self) -> list[Slash]:
        """The commands that plugins and servers bring."""
        return added(self.session.looked, self.session.prompts)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.query_one(Offers).show(event.text_area.text, self.more())

    async def on_prompt_sent(self, event: Prompt.Sent) -> None:
        text = event.text.rstrip()
        if self._editing:
            self._edit(text)
            return
        if not text.strip():
            self.session.repair()
            return
        if self._asked is not None and not text.startswith("/"):
            self._decide(self._asked, text.strip())
            return
        self._typed.add(text.strip())
        match read(text, self.more()):
            case Given() as given:
                self.run_worker(self._slashes.run(given), exit_on_error=True)
            case Line(text=prompt):
                self.session.submit(prompt)
            case Wrong(why=why):
                self.tell(why)
                self.give_back(text)

    def tell(self, text: str) -> None:
        """A line for the human that is no event of a run."""
        self.session.view.log.add(Told(text, "note"))

    def give_back(self, text: str) -> None:
        """What could not be sent stands where it was typed, before what stands there now."""
        prompt = self.query_one(Prompt)
        prompt.put(f"{text}\n{prompt.text}" if prompt.text else text)

    # --- questions ----------------------------------------------------------------------------------------------------

    def _decide(self, asked: ApprovalRequested | QuestionAsked, text: str) -> None:
        ask = self.session.ask
        match asked:
            case QuestionAsked():
                ask(Answer(id=asked.id, text=text, by=BY))
                return
            case ApprovalRequested():
                pass
        match choice_of(asked, text):
            case Allow(scope=scope):
                ask(Approve(id=asked.id, scope=scope, by=BY))
            case Refuse(why=why):
                ask(Deny(id=asked.id, why=why, by=BY))
            case "edit":
                self._editing = asked.id
                self.query_one(Prompt).put(card.editable(asked.arguments))
                self.tell("type it as it should be, then Enter; Escape goes back")
            case "stop":
                ask(Cancel(by=BY))
            case "none":
                self.tell(f"'{one_line(text, 4)}' is no choice here: {card.keys(asked).strip()}")

    def _edit(self, text: str) -> None:
        asked = self._asked
        self._editing = ""
        if not isinstance(asked, ApprovalRequested) or not text.strip():
            return
        try:
            arguments = card.edited(asked.arguments, text)
        except ValueError as error:
            self.tell(f"cannot be used: {one_line(str(error), 100)}")
            self.query_one(Prompt).put(text)
            self._editing = asked.id
            return
        self.session.ask(Approve(id=asked.id, arguments=arguments, by=BY))

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_cancel_turn(self) -> None:
        if self.session.busy or self.session.queue:
            self.session.cancel()
        else:
            self.query_one(Prompt).put("")
            self.notify("Ctrl-Q leaves", timeout=2)

    def action_unfold(self) -> None:
        self.query_one(Transcript).unfold()

    def action_side(self) -> None:
        side = self.query_one(Side)
        side.display = self._side_wanted = not side.display
        if side.display:
            self.query_one("#tree").focus()
        else:
            self.query_one(Prompt).focus()

    def action_thinking(self) -> None:
        panel = self.query_one("#reasoning")
        panel.display = not panel.display
        self._shown_reasoning = "\0"

    def action_typing(self) -> None:
        if self._editing:
            self._editing = ""
            self.query_one(Prompt).put("")
        self.query_one(Prompt).focus()

    def action_scroll(self, pages: int) -> None:
        asked = self.query_one("#asked")
        pane = asked if self._asked is not None and asked.max_scroll_y else self.query_one(Transcript)
        if pages < 0:
            pane.scroll_page_up(animate=False)
        else:
            pane.scroll_page_down(animate=False)

    def on_side_chosen(self, event: Side.Chosen) -> None:
        self.push_screen(ActorPage(self.session.view, event.actor))

    # --- leaving ------------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        self.leave()

    def leave(self, *, detach: bool = False) -> None:
        """End the runtime, then the screen."""
        if not self._leaving:
            self._leaving = True
            self.detach = self.detach or detach
            self.run_worker(self._leave(), exit_on_error=True)

    def _hung_up(self) -> None:
        """Where the terminal is gone there is nothing to give back, and who writes to it waits for ever; the runtime
        ends when its pipe does."""
        try:
            termios.tcgetattr(0)
        except termios.error:
            os._exit(128 + signal.SIGHUP)
        self.leave()

    async def _leave(self) -> None:
        await self.session.leave(detach=self.detach)
        self.exit()

    def last_words(self) -> list[str]:
        """What stands in the terminal when the screen is gone."""
        session = self.session
        if session.run is None:
            return []
        run = session.run
        if session.unfinished and self.detach:
            return [f"run {run} goes on by itself   back to it: elenco chat --resume {run}{in_state()}"]
        half = "the turn was left half-way, and is finished first   " if session.unfinished else ""
        return [f"{half}go on: elenco chat --resume {run}{in_state()}"]

    def _handle_exception(self, error: Exception) -> None:
        """A fault of ours ends the screen; whoever has begun it tells of it."""
        self.fault = self.fault or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()
