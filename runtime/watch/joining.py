"""Live events of one batch joined where that changes nothing for who reads them; pure.

A model's pieces come by the thousand; what a reader is given sixty times a second needs one event an actor and kind.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from runtime.events import ModelDelta, Record, ToolOutput


def joined(records: Iterable[Record]) -> list[Record]:
    """The same records, in their order; a piece is added to its actor's last one where that has its kind.

    Every kept event stays where it is: what came before it still comes before it. A joined event has the place and time
    of its first piece.
    """
    found: list[Record] = []
    pieces: dict[str, tuple[int, list[str]]] = {}
    for record in records:
        event = record.event
        if not isinstance(event, ModelDelta | ToolOutput):
            found.append(record)
            _close(found, pieces)
            continue
        place, texts = pieces.get(event.actor, (-1, []))
        if place >= 0 and _continues(found[place].event, event):
            texts.append(event.text)
            continue
        if place >= 0:
            _close(found, {event.actor: (place, texts)})
        pieces[event.actor] = (len(found), [event.text])
        found.append(record)
    _close(found, pieces)
    return found


def _continues(last: object, event: ModelDelta | ToolOutput) -> bool:
    match event, last:
        case ModelDelta(), ModelDelta():
            return not event.reset and (event.kind, event.index) == (last.kind, last.index)
        case ToolOutput(), ToolOutput():
            return event.call_id == last.call_id
        case _:
            return False


def _close(found: list[Record], pieces: dict[str, tuple[int, list[str]]]) -> None:
    """Put the collected texts into their events; nothing is added to these any more."""
    for place, texts in pieces.values():
        if len(texts) > 1:
            record = found[place]
            event = record.event
            assert isinstance(event, ModelDelta | ToolOutput)
            found[place] = attrs.evolve(record, event=attrs.evolve(event, text="".join(texts)))
    pieces.clear()
