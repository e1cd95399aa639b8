"""Pages over the conversation: one actor's own log, a list to choose from, a long text to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from runtime.chat.view import View
from runtime.cli.visible import visible

from .paint import painted

STYLE = """
{name} {{ align: center middle; }}
{name} #box {{ width: 90%; height: 90%; border: round $primary; background: $surface; padding: 0 1; }}
{name} #title {{ height: 1; color: $accent; }}
{name} OptionList {{ height: 1fr; border: none; }}
"""


class ActorPage(ModalScreen[None]):
    """What one actor has heard, said and done; it goes on while it is open."""

    DEFAULT_CSS = STYLE.format(name="ActorPage")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "back")]

    def __init__(self, view: View, actor: str) -> None:
        super().__init__()
        self._view = view
        self._actor = actor
        self._shown: tuple[int, str] = (-1, "")

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(f"{self._actor}   Escape goes back"), id="title", markup=False)
            with VerticalScroll():
                yield Static("", id="log", markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self._paint()
        self.set_interval(0.2, self._paint)

    def _paint(self) -> None:
        log = self._view.log_of(self._actor)
        now = (len(log.entries), repr(log.entries[-1]) if log.entries else "")
        if now != self._shown:
            self._shown = now
            parts = [painted(entry, full=True) for entry in log.entries[-200:]]
            self.query_one("#log", Static).update(Content("\n\n").join(parts))


class Choice(ModalScreen[str | None]):
    """A list to choose from; Escape chooses nothing."""

    DEFAULT_CSS = STYLE.format(name="Choice")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "nothing", "back")]

    def __init__(self, title: str, options: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title = title
        self._options = options

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(self._title), id="title", markup=False)
            yield OptionList(*(Option(Content(visible(text))) for _, text in self._options), markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._options[event.option_index][0])

    def action_nothing(self) -> None:
        self.dismiss(None)


class Reading(ModalScreen[None]):
    """A long text; Escape goes back."""

    DEFAULT_CSS = STYLE.format(name="Reading")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", "back")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Content(f"{self._title}   Escape goes back"), id="title", markup=False)
            with VerticalScroll():
                yield Static(Content(visible(self._text)), markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
