"""An actor's conversation as it grows: each message recorded, its size on the gauge, steering messages kept in line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .conversation import Conversation
from .events import ContextCompacted, NoteAdded, SteerReceived
from .limits.estimate import Gauge, byte_length, tokens_of_bytes
from .messages import AssistantMessage, Message, UserMessage, size_of
from .model import ToolSpec
from .record import messages_to_json
from .run import Run
from .stop import Stop


class History:
    """What an actor has heard and said. `conversation` is the value; `gauge` estimates the next request's size.

    `bytes` is that size too, prompt and tools included, never counted anew: a step costs what it adds.
    """

    def __init__(self, run: Run, path: str) -> None:
        self.conversation = Conversation()
        self.gauge = Gauge()
        self.bytes = 0
        self._prompt = 0
        self._run = run
        self._path = path
        self._steers: list[SteerReceived] = []

    def measure_prompt(self, system: Sequence[str], tools: Iterable[ToolSpec]) -> None:
        """Put on the gauge what stands before the messages, in the place of what stood there."""
        prompt = sum(byte_length(part) for part in system) + sum(spec.size for spec in tools)
        self._grow(prompt - self._prompt)
        self._prompt = prompt

    def add(self, message: Message) -> None:
        """One more message. Raises HistoryError where it may not stand."""
        self.conversation = self.conversation.add(message)
        self._grow(size_of(message))
        if isinstance(message, AssistantMessage) and message.usage is not None and message.usage.total > 0:
            self.gauge = self.gauge.after_reply(message.usage)

    def hear(self, text: str) -> None:
        """A message that is on record by another event."""
        self.add(UserMessage(text, "note"))

    def note(self, text: str, why: str, stop: Stop | None = None) -> None:
        """A message of the runtime's own; `stop` is why a last turn is asked for."""
        decided = {"reason": stop.reason, "detail": stop.detail} if stop is not None else None
        self._run.append(NoteAdded(actor=self._path, text=text, why=why, stop=decided))
        self.add(UserMessage(text, "note"))

    def squeeze(self, messages: Sequence[Message]) -> None:
        """Go on with a history in which only what came since the last reply is shorter, on record as a whole."""
        before = sum(map(size_of, self.conversation.messages))
        after = sum(map(size_of, messages))
        self._run.append(
            ContextCompacted(
                actor=self._path,
                before=tokens_of_bytes(before),
                after=tokens_of_bytes(after),
                steps=("squeezed",),
                history=messages_to_json(messages),
            )
        )
        self.conversation = self.conversation.replaced(messages)
        self._grow(after - before)

    def compact(
        self,
        messages: Sequence[Message],
        steps: Sequence[str],
        why: str,
        *,
        number: int,
        kept: Mapping[str, str],
        used: int,
        by: str,
        window: int | None,
    ) -> None:
        """Go on with a smaller history, on record as a whole. `used` are the tokens of the next request as it was.

        Raises HistoryError for one that would break the invariant.
        """
        after = self.bytes + sum(map(size_of, messages)) - sum(map(size_of, self.conversation.messages))
        conversation = self.conversation.replaced(messages)
        gauge = self.gauge.compacted(used, self.bytes, after)
        self._run.append(
            ContextCompacted(
                actor=self._path,
                before=used,
                after=gauge.likely(),
                steps=tuple(steps),
                history=messages_to_json(messages),
                why=why,
                number=number,
                results=kept,
                by=by,
                window=window,
            )
        )
        self.conversation, self.gauge, self.bytes = conversation, gauge, after

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
            self._grow(size_of(UserMessage(steer.text, "steer")))
        self._steers.clear()
        self.conversation = self.conversation.take_queued()
        return True

    def restore(
        self,
        messages: Iterable[Message],
        steers: Iterable[SteerReceived],
        measured: tuple[int, int] | None = None,
    ) -> None:
        """Take over what an earlier process recorded. Raises HistoryError for a record that breaks the invariant.

        `measured`: the last compaction left so many messages, and then a request of so many tokens.
        """
        for number, message in enumerate(messages, 1):
            self.add(message)
            if measured is not None and number == measured[0]:
                self.gauge = Gauge(measured[1], 0, max(0, tokens_of_bytes(self.bytes) - measured[1]))
        for steer in steers:
            self._keep(steer)

    def _grow(self, count: int) -> None:
        self.gauge = self.gauge.add_bytes(count)
        self.bytes += count

    def _keep(self, steer: SteerReceived) -> None:
        self._steers.append(steer)
        self.conversation = self.conversation.queue(UserMessage(steer.text, "steer"))
