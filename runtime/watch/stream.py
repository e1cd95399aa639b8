"""The log stream: what the journal made durable and what is live, for any number of readers who pull.

Writers append to one bounded ring and never wait. A reader owns a cursor: first it is given the kept events from the
journal, then what the ring holds. One that falls behind the ring loses live events only: the kept ones are read from
the journal again, then come a `gap` with the number lost, a `snapshot`, and the running turns whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import trio

from runtime.errors import JournalError
from runtime.events import (
    ActorFinished,
    ActorRestarted,
    Event,
    ModelDelta,
    ModelFailed,
    ModelFinished,
    ModelRequested,
    ModelRetried,
    ModelWithdrawn,
    Record,
    RunFinished,
    Snapshot,
    ToolFinished,
    ToolOutput,
)
from runtime.journal.interface import Clock, Journal
from runtime.journal.overview import Vitals, overview
from runtime.journal.replay import fold
from runtime.journal.state import RunState
from runtime.messages import JsonObject
from runtime.model import Delta

from .joining import Piece, Turn, joined
from .reader import PAGE, PLENTY, Reader, is_pressing

OUTPUT_KEPT = 4000
"""Characters of a running tool's output that a snapshot shows."""
MOST_PIECES = 1000
"""Pieces that one live event is made of: in memory, small texts weigh many times what they say."""
_ENDS_TURN = frozenset(
    {ModelRequested, ModelFinished, ModelFailed, ModelRetried, ModelWithdrawn, ActorFinished, ActorRestarted}
)


class LogStream:
    """All that happens in one run, in order. Every method but `subscribe` and the readers' is synchronous and O(1).

    `items` and `weight` bound the ring: how many records, and how many characters of text, it keeps for readers.
    What every reader has taken is not kept; with no reader, nothing is but the text of the running turns. What actors
    say stays out of the ring, piece beside piece, until a reader takes it or something kept follows.
    """

    def __init__(self, journal: Journal, *, clock: Clock, items: int = 4096, weight: int = 8 << 20) -> None:
        self.journal = journal
        self._clock = clock
        self._max_items = items
        self._max_weight = weight
        self._seq = journal.durable_seq
        self._n = 0
        self.live = 0
        self._ring: list[Record] = []
        self._said: dict[str, list[Piece]] = {}
        self._said_at = 0.0
        self.base = 0
        self._weight = 0
        self._turns: dict[str, Turn] = {}
        self._outputs: dict[str, str] = {}
        self.vitals: Callable[[], Mapping[str, Vitals]] = dict
        self._readers: set[Reader] = set()
        self._parked = trio.lowlevel.ParkingLot()
        self._pressing = trio.lowlevel.ParkingLot()
        self._breathing = trio.lowlevel.ParkingLot()
        self.closed = False
        self._view = RunState(histories=False)
        self._folding = trio.Lock()
        journal.subscribe(self.publish)

    # --- writers -------------------------------------------------------------------------------------------------

    def publish(self, records: Sequence[Record]) -> None:
        """Show kept events; the journal calls this when they are durable."""
        self.mark()
        self._seq = records[-1].seq
        self._n = 0
        for record in records:
            kind = type(record.event)
            if kind in _ENDS_TURN:
                self._turns.pop(record.event.actor, None)
            elif isinstance(record.event, ToolFinished):
                self._outputs.pop(record.event.call_id, None)
            elif kind is RunFinished:
                self._turns.clear()
        if self._readers:
            self._ring.extend(records)
            self._weight += sum(_weigh(record.event) for record in records)
            self._trim()
            self.wake()
            pressing = any(map(is_pressing, records))
            if pressing:
                self._pressing.unpark_all()
            if pressing or len(self._ring) >= PLENTY:
                self._breathing.unpark_all()

    def publish_deltas(self, actor: str, deltas: Sequence[Delta]) -> None:
        """Show the pieces of one wake-up."""
        turn = self._turns.get(actor)
        if turn is None:
            turn = self._turns[actor] = Turn()
        turn.add(deltas)
        if self._readers:
            self._say(actor, deltas)

    def publish_live(self, event: ToolOutput) -> None:
        """Show what a tool says while it works."""
        self._outputs[event.call_id] = (self._outputs.get(event.call_id, "") + event.text)[-OUTPUT_KEPT:]
        if self._readers:
            self._say(event.actor, (event,))

    def close(self) -> None:
        """End the stream: readers get what is left, then their iteration ends."""
        self.closed = True
        self.wake()
        self._pressing.unpark_all()
        self._breathing.unpark_all()

    # --- readers -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def subscribe(self, from_seq: int | None = 0, breath: float = 0.0) -> AsyncGenerator[Reader]:
        """A reader of the kept events from `from_seq` on, then of everything live; None begins with a snapshot of now.

        A turn that is running comes whole, as a `model.delta` with `reset`, after the journal's part. `breath` is how
        many seconds it lets come together in a batch, such as BREATH, unless PLENTY is there or somebody is asked: who
        reads at once does so between a reply and the next request, when the run has other things to do.
        """
        reader = Reader(self, from_seq, breath)
        self._readers.add(reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.let_go()

    async def overview(self) -> JsonObject:
        """Where the run stands, for a person or a page: `journal.overview`, with what is said and shown just now.

        Raises JournalError. A cancelled call loses nothing.
        """
        await self.fold_up_to(self._seq)
        return self._overview()

    async def fold_up_to(self, seq: int) -> None:
        """Bring the stream's own view of the run up to `seq`: only those who need a snapshot pay for it."""
        async with self._folding:
            while self._view.seq < seq:
                page = await self.journal.read(self._view.seq + 1, PAGE)
                if not page:
                    raise JournalError(f"the journal has no event {self._view.seq + 1}, which was shown as durable")
                self.fold(page)

    def fold(self, records: Sequence[Record]) -> None:
        """Take records into the view that directly follow it; those it has are passed over."""
        for record in records:
            if record.seq == self._view.seq + 1:
                self._view = fold(self._view, record)

    def snapshot(self) -> Record:
        """The view as an event, for a reader that missed something."""
        return self.synthetic(Snapshot(state=self._overview()))

    def _overview(self) -> JsonObject:
        return {
            **overview(self._view, self.vitals()),
            "turns": self.running_turns,
            "outputs": dict(self._outputs),
        }

    @property
    def folded(self) -> int:
        """The newest kept event the view has."""
        return self._view.seq

    @property
    def running_turns(self) -> JsonObject:
        """What each model call under way has said so far: actor -> pieces of kind, index and text."""
        return {
            actor: [{"kind": each.kind, "index": each.index, "text": each.text} for each in turn.whole()]
            for actor, turn in self._turns.items()
        }

    @property
    def seq(self) -> int:
        """The newest kept event shown."""
        return self._seq

    @property
    def end(self) -> int:
        """The ring's position after its newest record; `base` is that of its oldest."""
        return self.base + len(self._ring)

    def mark(self) -> int:
        """The ring's end once what has been said is in it; whatever comes from now on stands behind it."""
        if self._said:
            for actor, pieces in self._said.items():
                for event in joined(actor, pieces):
                    self._n += 1
                    self.live += 1
                    self._ring.append(Record(self._seq, self._said_at, event, self._n))
            self._said.clear()
            self._trim()
        return self.end

    def since(self, position: int) -> list[Record]:
        return self._ring[position - self.base :]

    def let_go(self) -> None:
        """Forget what every reader has taken."""
        if not self._readers:
            self.mark()
        oldest = min((reader.position for reader in self._readers), default=self.end)
        if oldest > self.base:
            self._drop(oldest - self.base)

    async def wait(self) -> None:
        """Until something is published, or `wake`; a cancelled wait leaves nothing behind."""
        await self._parked.park()

    async def pressing(self) -> None:
        """Until somebody is asked something or the stream ends: no reader should be kept from that."""
        await self._pressing.park()

    async def breath(self) -> None:
        """The same, and until there is plenty to read."""
        await self._breathing.park()

    def wake(self) -> None:
        """Have everybody who waits look again whether there is something."""
        self._parked.unpark_all()

    # --- inside -------------------------------------------------------------------------------------

    def _say(self, actor: str, pieces: Sequence[Piece]) -> None:
        if not self._said:
            self._said_at = self._clock()
        said = self._said.get(actor)
        if said is None:
            said = self._said[actor] = []
        said.extend(pieces)
        for piece in pieces:
            self._weight += len(piece.text)
        if len(said) >= MOST_PIECES or self._weight > self._max_weight:
            self.mark()
        if self._parked:
            self.wake()

    def _trim(self) -> None:
        # Half is dropped at once, so that the cost of dropping stays constant for each record added.
        while len(self._ring) > self._max_items or self._weight > self._max_weight:
            self._drop((len(self._ring) + 1) // 2)

    def _drop(self, count: int) -> None:
        self._weight -= sum(_weigh(record.event) for record in self._ring[:count])
        del self._ring[:count]
        self.base += count

    def synthetic(self, event: Event) -> Record:
        """A live record for one reader only; it takes its own `n`, so that `n` rises for everybody."""
        self._n += 1
        return Record(self._seq, self._clock(), event, self._n)

    def resets(self) -> list[Record]:
        found: list[Record] = []
        for actor, turn in self._turns.items():
            reset = True
            for each in turn.whole():
                said = ModelDelta(actor=actor, kind=each.kind, text=each.text, index=each.index, reset=reset)
                found.append(self.synthetic(said))
                reset = False
        return found


def _weigh(event: Event) -> int:
    match event:
        case ModelDelta() | ToolOutput():
            return len(event.text)
        case ToolFinished():
            return len(event.result)
        case ModelFinished():
            return len(event.text) + len(event.reasoning)
        case _:
            return 0
