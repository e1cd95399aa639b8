"""What fills each actor's window, as a page to read; pure."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.context.filling import Filling, filling
from runtime.context.window import START
from runtime.journal.state import ActorState, RunState
from runtime.limits.limits import count_text
from runtime.messages import Usage

from .faults import count_of
from .visible import one_line

BAR = 24


def context_page(state: RunState) -> Iterator[str]:
    """The lines: each actor with its model's window, and the parts of its next request, the largest first."""
    for number, actor in enumerate(state.actors.values()):
        if number:
            yield ""
        yield from _actor(actor)


def filling_of(actor: ActorState) -> Filling:
    """What fills the window of one actor, from a state with histories."""
    return filling(actor.prompt, actor.tools, actor.history, window=actor.window, measured=actor.measured)


def cached_share(usage: Usage) -> int | None:
    """Percent of the input tokens that came from the provider's cache, None where no provider has counted."""
    if not usage.input or (usage.estimated and not usage.cached_input):
        return None
    return round(100 * usage.cached_input / usage.input)


def _actor(actor: ActorState) -> Iterator[str]:
    found = filling_of(actor)
    mark = "" if found.counted else "~"
    model = one_line(actor.model, 60)
    if found.window is None:
        yield f"{actor.path}   {mark}{count_text(found.used)} tokens; the window of {model} is not known"
    else:
        left = max(0, found.window * START // 100 - found.used)
        yield (
            f"{actor.path}   {mark}{count_text(found.used)} of {count_text(found.window)} tokens"
            f" ({found.percent} %)   {model}"
        )
        yield f"  compacts at {START} %: {count_text(left)} tokens from here"
    if actor.compactions:
        yield f"  compacted {count_of(actor.compactions, 'time')}, {actor.summaries} with a summary"
    if (cached := cached_share(actor.usage)) is not None:
        yield f"  read from the provider's cache: {cached} % of {count_text(actor.usage.input)} input tokens"
    for share in found.shares:
        part = share.tokens / max(1, found.used)
        bar = "█" * round(BAR * part) or "·"
        count = f" ({share.count:,})" if share.count > 1 else ""
        yield f"  {bar:<{BAR}} {100 * part:>3.0f} %  {count_text(share.tokens):>7}  {one_line(share.name, 40)}{count}"
