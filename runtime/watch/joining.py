"""Live events that go on where they stopped, joined while nobody has taken them; pure.

A model's pieces come by the thousand; what a reader is given some dozens of times a second needs one event an actor and
kind.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from runtime.events import ModelDelta, Record, ToolOutput

Kind: TypeAlias = tuple[str, int]
"""What an actor's pieces must share to be one: kind and index of a delta, the call of a tool's output."""

MOST_PIECES = 1000
"""Pieces of one event: so many small texts weigh many times what they say."""


class Pieces:
    """The newest live event of each actor in a ring, as long as more may be added to it.

    Whoever holds the ring closes them where something kept follows, and before a reader takes them.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def add(self, actor: str, kind: Kind, text: str) -> bool:
        """Whether the text belongs to the actor's newest event, to which it is added then."""
        last = self._open.get(actor)
        if last is None or last.kind != kind or len(last.texts) >= MOST_PIECES:
            return False
        last.texts.append(text)
        return True

    def begin(self, ring: list[Record], base: int, actor: str, kind: Kind, text: str) -> None:
        """The actor's newest event is the one that is put into the ring next; the one before is closed."""
        last = self._open.get(actor)
        if last is not None:
            last.close(ring, base)
        self._open[actor] = _Open(kind, base + len(ring), [text])

    def close(self, ring: list[Record], base: int, until: int) -> None:
        """Put into the ring, which begins at place `base`, the whole texts of what stands before place `until`."""
        for actor, each in list(self._open.items()):
            if each.place < until:
                each.close(ring, base)
                del self._open[actor]


@attrs.frozen
class _Open:
    kind: Kind
    place: int
    texts: list[str]

    def close(self, ring: list[Record], base: int) -> None:
        if len(self.texts) > 1:
            record = ring[self.place - base]
            event = record.event
            assert isinstance(event, ModelDelta | ToolOutput)
            ring[self.place - base] = attrs.evolve(record, event=attrs.evolve(event, text="".join(self.texts)))
