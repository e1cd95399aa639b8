"""An actor's conversation as it grows: each message recorded, its size on the gauge, steering messages kept in line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .conversation import Conversation
from .events import ContextCompacted, NoteAdded, SteerReceived
from .limits.estimate import Gauge, byte_length, tokens_of_bytes
from .messages import AssistantMessage, Message, UserMessage, size_of
from .model import ToolSpec
from .record import messages_to_json
from .run import Run
from .stop import Stop


class History:
    """What an actor has heard and said. `conversation` is the value; `gauge` estimates the next request's size."""

    def __init__(self, run: Run, path: str) -> None:
        self.conversation = Conversation()
        self.gauge = Gauge()
        self._run = run
        self._path = path
        self._steers: list[SteerReceived] = []

    def measure_prompt(self, system: Sequence[str], tools: Iterable[ToolSpec]) -> None:
        """Put on the gauge what stands before the messages."""
        prompt = sum(byte_length(part) for part in system)
        self.gauge = self.gauge.add_bytes(prompt + sum(spec.size for spec in tools))

    def add(self, message: Message) -> None:
        """One more message. Raises HistoryError where it may not stand."""
        self.conversation = self.conversation.add(message)
        if isinstance(message, AssistantMessage) and message.usage is not None and message.usage.total > 0:
            self.gauge = self.gauge.after_reply(message.usage)
        else:
            self.gauge = self.gauge.add_bytes(size_of(message))

    def hear(self, text: str) -> None:
        """A message that is on record by another event."""
        self.add(UserMessage(text, "note"))

    def note(self, text: str, why: str, stop: Stop | None = None) -> None:
        """A message of the runtime's own; `stop` is why a last turn is asked for."""
        decided = {"reason": stop.reason, "detail": stop.detail} if stop is not None else None
        self._run.append(NoteAdded(actor=self._path, text=text, why=why, stop=decided))
        self.add(UserMessage(text, "note"))

    def compact(self, messages: Sequence[Message], step: str) -> None:
        """Go on with a shorter history, on record as a whole. Only what came since the last reply may differ."""
        before = sum(map(size_of, self.conversation.messages))
        after = sum(map(size_of, messages))
        self._run.append(
            ContextCompacted(
                actor=self._path,
                before=tokens_of_bytes(before),
                after=tokens_of_bytes(after),
                steps=(step,),
                history=messages_to_json(messages),
            )
        )
        self.conversation = self.conversation.replaced(messages)
        self.gauge = self.gauge.add_bytes(after - before)

    def steer(self, id: str, text: str, by: str, interrupt: bool) -> None:
        """Record a human's message and keep it until the running round has all its results."""
        steer = SteerReceived(actor=self._path, id=id, text=text, by=by, interrupt=interrupt)
        self._run.append(steer)
        self._keep(steer)

    def admit_steers(self) -> bool:
        """Let the waiting messages enter, if none waits for a result; whether any did."""
        if not self._steers or self.conversation.open_calls:
            return False
        for steer in self._steers:
            self._run.append(SteerReceived(actor=self._path, id=steer.id, text=steer.text, by=steer.by, entered=True))
            self.gauge = self.gauge.add(steer.text)
        self._steers.clear()
        self.conversation = self.conversation.take_queued()
        return True

    def restore(self, messages: Iterable[Message], steers: Iterable[SteerReceived]) -> None:
        """Take over what an earlier process recorded. Raises HistoryError for a record that breaks the invariant."""
        for message in messages:
            self.add(message)
        for steer in steers:
            self._keep(steer)

    def _keep(self, steer: SteerReceived) -> None:
        self._steers.append(steer)
        self.conversation = self.conversation.queue(UserMessage(steer.text, "steer"))
