"""Where the human types: several lines, history, completion of commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message
from textual.widgets import Static, TextArea

from runtime.chat.commands import Slash, completed, completions
from runtime.chat.typed import Typed

SHOWN = 8


class Prompt(TextArea):
    """Enter sends, Ctrl-J begins another line, Up and Down go through what was typed before, Tab completes."""

    class Sent(Message):
        """The text was sent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, typed: Typed, more: Callable[[], Sequence[Slash]]) -> None:
        super().__init__(
            id="prompt", soft_wrap=True, show_line_numbers=False, tab_behavior="focus", compact=True,
            placeholder="Ask something, or / for commands",
        )  # fmt: skip
        self.typed = typed
        self._more = more

    def put(self, text: str) -> None:
        """Replace what stands there."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        last = self.document.line_count - 1
        match event.key:
            case "enter":
                text = self.text
                self.put("")
                self.post_message(self.Sent(text))
            case "ctrl+j" | "shift+enter":
                self.insert("\n")
            case "tab" if self.text.startswith("/"):
                self.put(completed(self.text, self._more()))
            case "up" if self.cursor_location[0] == 0:
                if (earlier := self.typed.back(self.text)) is not None:
                    self.put(earlier)
            case "down" if self.cursor_location[0] == last:
                if (later := self.typed.forth()) is not None:
                    self.put(later)
            case _:
                await super()._on_key(event)
                return
        event.stop()
        event.prevent_default()


class Offers(Static):
    """The commands that what is typed may become."""

    def __init__(self) -> None:
        super().__init__("", id="offers", markup=False)
        self.display = False

    def show(self, line: str, more: Sequence[Slash]) -> None:
        found = completions(line, more)
        self.display = bool(found)
        width = max((len(slash.shown) for slash in found), default=0) + 2
        shown = [f"{slash.shown:<{width}}{slash.summary}" for slash in found[:SHOWN]]
        rest = [f"… {len(found) - SHOWN} more: go on typing, Tab completes"] if len(found) > SHOWN else []
        self.update("\n".join([*shown, *rest]))
