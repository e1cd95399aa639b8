"""A run's events as updates of its session: what an editor shows while its agent works."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from runtime.events import (
    Event,
    FileChanged,
    HookFinished,
    ModelDelta,
    ModelFinished,
    ModelRequested,
    ModelWithdrawn,
    NotesChanged,
    ToolFinished,
    ToolOutput,
    ToolRequested,
    ToolStarted,
    Warned,
)
from runtime.messages import JsonObject

from . import shapes

Texts = tuple[str | None, str]


@attrs.define(eq=False)
class Updates:
    """Of one run. `before_and_after` gives a changed file's contents, `window` the root model's in tokens.

    What the root says is the answer; of those below it the calls are shown, and their reports as results.
    """

    run: str
    root: str
    workspace: str
    window: int | None
    before_and_after: Callable[[FileChanged], Texts | None]
    cost: float | None = 0.0
    _said: dict[str, str] = attrs.Factory(dict[str, str])
    _contents: dict[str, list[JsonObject]] = attrs.Factory(dict[str, list[JsonObject]])
    _output: dict[str, str] = attrs.Factory(dict[str, str])
    _message: str = ""

    def id(self, call_id: str) -> str:
        """A call's id, one of its own in the whole session."""
        return f"{self.run}/{call_id}"

    def who(self, actor: str) -> str:
        return "" if actor == self.root else actor.rpartition("/")[2]

    def take_change(self, event: FileChanged) -> None:
        """Keep a changed file's diff for the end of its call. Blocks."""
        if (texts := self.before_and_after(event)) is not None:
            path = shapes.locations(self.workspace, {"path": event.path})[0]["path"]
            self._contents.setdefault(event.call_id, []).append(shapes.diff(path, *texts))

    def of(self, event: Event) -> Iterator[JsonObject]:
        """What an event changes for who watches."""
        match event:
            case ModelRequested() if event.actor == self.root:
                self._said.clear()
                self._message = f"{self.run}/t{event.turn}"
            case ModelDelta(kind="text" | "reasoning") if event.actor == self.root:
                yield from self._piece(event.kind, event.text, whole=event.reset)
            case ModelFinished() if event.actor == self.root:
                yield from self._piece("reasoning", event.reasoning, whole=True)
                yield from self._piece("text", event.text, whole=True)
                self.cost = None if self.cost is None or event.cost_usd is None else self.cost + event.cost_usd
                if self.window:
                    used = int(event.usage.get("input") or 0) + int(event.usage.get("output") or 0)
                    yield shapes.usage(used, self.window, self.cost)
            case ModelWithdrawn() if event.actor == self.root:
                if self._said.pop("text", ""):
                    yield shapes.chunk("agent_thought", f"(What was said above does not count: {event.why})")
            case ToolRequested():
                yield shapes.call(
                    self.id(event.call_id), event.name, event.arguments, self.workspace, self.who(event.actor)
                )
            case ToolStarted():
                yield shapes.progress(self.id(event.call_id), "in_progress")
            case ToolOutput():
                words = self._output[event.call_id] = (self._output.get(event.call_id, "") + event.text)[
                    -shapes.MOST_SHOWN :
                ]
                yield shapes.progress(self.id(event.call_id), "in_progress", [shapes.shown(words)])
            case ToolFinished():
                self._output.pop(event.call_id, None)
                content = [*self._contents.pop(event.call_id, []), shapes.shown(event.result)]
                status = "failed" if event.is_error else "completed"
                yield shapes.progress(self.id(event.call_id), status, content, rawOutput={"result": event.result})
            case NotesChanged() if event.actor == self.root:
                yield shapes.plan(event.notes)
            case Warned():
                yield shapes.chunk("agent_thought", f"({event.text})\n")
            case HookFinished(outcome="error"):
                yield shapes.chunk("agent_thought", f"(the hook {event.hook} failed: {event.message})\n")
            case _:
                return

    def _piece(self, kind: str, words: str, *, whole: bool) -> Iterator[JsonObject]:
        """What of a text has not been told yet: with `whole`, `words` is all of it so far."""
        said = self._said.get(kind, "")
        if whole:
            words = words[len(said) :] if words.startswith(said) else ("" if said else words)
        if words:
            self._said[kind] = said + words
            yield shapes.chunk("agent_message" if kind == "text" else "agent_thought", words, self._message)
