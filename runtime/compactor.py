"""How one actor's requests stay inside its model's window: measured before each, compacted in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from .context.compaction import (
    Step,
    cut_before,
    folded,
    handles,
    shortened,
    size,
    unmeasured,
    without_old_reasoning,
)
from .context.squeeze import squeezed
from .context.summary import (
    PROMPT,
    Split,
    digest,
    fixed_size,
    note,
    question,
    records,
    skill_note,
    split,
    transcript,
    with_words_cut,
    within,
)
from .context.window import Window, counts_reply, window_in
from .errors import UsageError
from .events import SUMMARISED, CompactionRequested, ContextCompacted
from .known import OFFLINE
from .limits.budget import MIN_OUTPUT, Ask
from .limits.estimate import byte_length, tokens_of_bytes
from .messages import Message, ToolResult, size_of
from .model import ModelRequest, ProviderError
from .skills.active import REOFFER_CHARS
from .stop import Stop
from .turn import BYTES_PER_TOKEN, Aside, call_model

if TYPE_CHECKING:
    from .agent import Agent
    from .journal.state import ActorState

NOTE_OVERHEAD = 900
"""Bytes of a summary's frame: what it is, where the full record is."""
MOST_SQUEEZES = 3
"""How often what came since the last reply is cut for a last turn: some texts have more tokens than others."""
READER = "read_result"


class Compactor:
    """Keeps an actor's history inside `window`, None where nobody knows the model's. It belongs to the actor's task.

    `number` counts compactions and `summaries` those with a summary, over all processes of the run. `wanted_by` is who
    has asked for one that has not been tried yet.
    """

    def __init__(self, me: Agent, window: int | None) -> None:
        self._me = me
        self.fit(window)
        self.number = 0
        self.summaries = 0
        self.wanted_by = ""

    def fit(self, window: int | None) -> None:
        """From now on the history goes to a model with this window, in tokens; what is known of another's is void."""
        self.window = Window(window) if window else None

    def restore(self, state: ActorState) -> None:
        """Take over what an earlier process had counted and learned."""
        self.number, self.summaries, self.wanted_by = state.compactions, state.summaries, state.compact
        known = self.window.size if self.window is not None else state.learned
        if state.learned and known and state.model == self._me.model.full_name:
            self.window = Window(min(known, state.learned))

    def ask_for(self, by: str) -> None:
        """Compact before the next request because a person wants it. Raises UsageError where there will be none."""
        me = self._me
        if me.standing.too_late:
            raise UsageError(f"too late: {me.path} {me.standing.too_late}")
        me.run.append(CompactionRequested(actor=me.path, by=by))
        self.wanted_by = by

    # --- sizes -------------------------------------------------------------------------------------------------------

    def used(self) -> int:
        """Tokens of the next request: counted where the provider can, else its last usage and what came since."""
        me = self._me
        return me.history.gauge.likely(me.model.provider.count(me.request("turn", 0)))

    def fitted(self, request: ModelRequest) -> ModelRequest:
        """The request with an output cap that leaves its reply room behind the history."""
        if self.window is None:
            return request
        used = self._me.history.gauge.likely(self._me.model.provider.count(request))
        cap = self.window.output_cap(request.max_output_tokens, used)
        return request if cap == request.max_output_tokens else attrs.evolve(request, max_output_tokens=cap)

    def result_cap(self, most: int) -> int:
        """Tokens that the results of one round may add."""
        return most if self.window is None else min(most, self.window.most_results)

    # --- before each request -----------------------------------------------------------------------------------------

    async def before_call(self) -> Stop | None:
        """Look at the next request's size and compact where it is due; a Stop where it cannot fit any more.

        A cancelled call leaves the history as it was, or compacted and on record.
        """
        if self.wanted_by:
            await self.by_hand(self.wanted_by)
        window = self.window
        if window is None:
            return None
        me = self._me
        used = self.used()
        if not window.is_full(used):
            return None
        if await self._compact(used, window.target, f"{used:,} of {window.size:,} tokens"):
            now = self.used()
            if now > used - window.least_gain:
                return self._stop(now)  # The provider counts as much as before.
            used = now
        unknown = me.history.gauge.known == 0 and me.model.provider.count(me.request("turn", 0)) is None
        return None if window.holds(used) or unknown else self._stop(used)

    async def before_last_turn(self) -> None:
        """Make room for one more reply with what costs nothing, as far as window and budget ask for it.

        A cancelled call leaves the history as it was, or smaller and on record.
        """
        if self.window is not None and not self.window.holds(used := self.used()):
            await self._compact(used, self.window.target, "the last turn", asks=False)
        for _ in range(MOST_SQUEEZES):
            if (excess := self._excess_of_last_turn()) <= 0:
                return
            history = self._me.history
            before = history.bytes
            history.squeeze(squeezed(history.conversation.messages, excess))
            self._me.alerts.tell("compaction")
            if history.bytes == before:
                return

    def _excess_of_last_turn(self) -> int:
        """By how many bytes the last turn's request is too long for the budget, or the window."""
        me = self._me
        request = me.request("wrap_up", 0)
        ask = me.ask(request, "wrap_up")
        room = me.run.gate.ledger.wrap_up_room(me.path, ask.price, ask.output_cap)
        excess = ask.input_tokens - room if room >= 0 else 0
        if self.window is not None:
            excess = max(excess, self.used() - max(0, self.window.size - MIN_OUTPUT))
        counted = me.model.provider.count(request)
        rate = BYTES_PER_TOKEN if counted is None else max(BYTES_PER_TOKEN, -(-me.history.bytes // max(1, counted)))
        return excess * rate

    async def refused(self, error: ProviderError) -> bool:
        """A provider said that the request is too long: whether a smaller one can be sent now.

        Its window is then at most what it names, else what it has just refused. A cancelled call leaves the
        history as it was, or compacted and on record.
        """
        me, before = self._me, self.window
        used, cap = self.used(), me.request("turn", 0).max_output_tokens
        said = window_in(error.message)
        named = said if said is not None and said < used + cap else None
        learned = used if named is None else named
        window = self.window = Window(max(MIN_OUTPUT, learned if before is None else min(learned, before.size)))
        if counts_reply(error.message) and not window.is_full(used) and (before is None or window.size < before.size):
            return me.request("turn", 0).max_output_tokens < cap
        return await self._compact(used, min(window.target, used // 2), "the provider refused the prompt as too long")

    async def by_hand(self, by: str) -> str:
        """Compact because a person asked for it; what came of it, in words. A cancelled call leaves it asked for."""
        me, used = self._me, self.used()
        done = await self._compact(used, used // 2, f"asked for by {by}", least=1, by=by)
        if not done:
            me.run.append(ContextCompacted(actor=me.path, before=used, after=used, why=f"asked for by {by}", by=by))
        self.wanted_by = ""
        if not done:
            return f"nothing to compact: about {used:,} tokens"
        return f"compacted: about {used:,} tokens before, {self.used():,} after"

    def _stop(self, used: int) -> Stop:
        assert self.window is not None
        text = f"context_window: about {used:,} of {self.window.size:,} tokens are taken, and compacting frees no more"
        return Stop("context_window", text)

    # --- compaction --------------------------------------------------------------------------------------------------

    async def _compact(
        self, used: int, target: int, why: str, *, least: int | None = None, asks: bool = True, by: str = ""
    ) -> bool:
        """Bring the history down to `target` tokens, or as near as it goes; False, and nothing done, for too little."""
        me = self._me
        before = me.history.conversation.messages
        rate = me.history.bytes / max(1, used)
        window = self.window or Window(max(used, 4 * MIN_OUTPUT))
        least_bytes = max(1, int((window.least_gain if least is None else least) * rate))
        goal = int(target * rate)
        cut = cut_before(before, int(min(window.size // 4, target // 2) * rate))
        if cut < 1 or size(before[:cut]) < least_bytes:
            return False
        messages, steps, kept = await self._cheaply(before, cut, goal)
        now = me.history.bytes - size(before) + size(messages)
        parts = split(messages, cut)
        prompt = me.history.bytes - size(before)
        tokens = window.most_summary
        room = max(int(MIN_OUTPUT * rate), min(int(tokens * rate), goal - prompt - fixed_size(parts) - NOTE_OVERHEAD))
        worth = size(parts.gone) - room - NOTE_OVERHEAD
        if now > goal and (worth >= least_bytes or (least == 1 and worth > 0)):
            messages, said, more = await self._summed_up(parts, room, max(MIN_OUTPUT, int(room / rate)), rate, asks)
            steps, kept = [*steps, said], kept | more
        messages = unmeasured(messages)
        if size(before) - size(messages) < least_bytes:
            return False
        await me.user_hooks.compacting(why, by)
        names = {handle: await self._keep(handle, text) for handle, text in kept.items()}
        self.number += 1
        me.history.compact(
            messages,
            steps,
            why,
            number=self.number,
            kept={handle: name for handle, name in names.items() if name},
            used=used,
            by=by,
            window=self.window.size if self.window is not None else None,
        )
        self.summaries += any(step.startswith(SUMMARISED) for step in steps)
        me.alerts.tell("compaction")
        return True

    async def _cheaply(
        self, messages: Sequence[Message], cut: int, goal: int
    ) -> tuple[tuple[Message, ...], list[str], dict[str, str]]:
        """The steps that cost nothing, as far as they are needed."""
        me = self._me
        full = {id: text for id in handles(messages, cut) if (text := await me.run.results.fetch(id)) is not None}

        def whole(result: ToolResult) -> str:
            return full.get(result.call_id, result.content)

        done, said, kept = tuple(messages), list[str](), dict[str, str]()
        rest = me.history.bytes - size(messages)
        steps: tuple[Callable[[tuple[Message, ...]], Step], ...] = (
            lambda given: shortened(given, cut, rest + size(given) - goal, whole),
            lambda given: without_old_reasoning(given, cut),
            lambda given: folded(given, cut, whole),
        )
        for take in steps:
            if rest + size(done) <= goal:
                break
            step = take(done)
            if step.said:
                done, kept = step.messages, kept | {id: text for id, text in step.whole.items() if id not in kept}
                said.append(step.said)
        return done, said, kept

    async def _summed_up(
        self, parts: Split, room: int, cap: int, rate: float, asks: bool
    ) -> tuple[tuple[Message, ...], str, dict[str, str]]:
        """The history with a summary in the place of what is gone."""
        me = self._me
        words = sum(byte_length(message.text) for message in parts.first[1:])
        limit = int((self.window.size if self.window is not None else me.history.bytes / rate) // 8 * rate)
        skills = skill_note(me.skills.reoffer(parts.shows, chars=min(REOFFER_CHARS, limit)))
        first, kept = parts.first, dict[str, str]()
        place = f"a{me.number}k{self.number + 1}"
        if words > limit:
            first, kept = with_words_cut(first, limit, place)
        text, why = await self._summary(parts, cap) if asks else ("", "the last turn is due")
        writer, said = f"Written by {me.model.full_name}:", f"{SUMMARISED} {len(parts.gone)} messages"
        if not text:
            text, writer = digest(parts, room), f"Put together from the record, because {why}:"
            said = f"{len(parts.gone)} messages listed without a model ({why})"
        reads = me.toolbox.get(READER) is not None
        if reads:
            kept[place] = transcript(parts.gone)
        known = [*records(me.run.results.handles, me.number), place] if reads else []
        summary = note(within(text, room), writer=writer, handles=known, todo=me.memory.notes)
        return (*first, *skills, summary, *parts.rest), said, kept

    async def _summary(self, parts: Split, cap: int) -> tuple[str, str]:
        """What a model makes of it, or why there is none."""
        me = self._me
        name = me.run.settings.summary_model
        model = me.model if name is None else me.run.models.resolve(name)
        if model.full_name == OFFLINE:
            return "", "no model is connected"
        most = model.window or (self.window.size if self.window is not None else 0)
        bound = max(1000, (most * 3 // 4 - cap) * 2 - byte_length(PROMPT)) if most else None
        actor = f"{me.path}#summary"
        asked = question(parts.first[0].text, transcript(parts.gone, bound))
        request = ModelRequest(
            model=model.name,
            system=(PROMPT,),
            messages=(asked,),
            max_output_tokens=model.output_cap(cap),
            agent="summary",
            actor=actor,
            turn=self.summaries,
        )
        tokens = model.provider.count(request)
        tokens = tokens_of_bytes(byte_length(PROMPT) + size_of(asked) + 100) if tokens is None else tokens
        ask = Ask(tokens, request.max_output_tokens, model.price_for(tokens), purpose="summary")
        try:
            reply = await call_model(me, "summary", Aside(model, request, ask))
        except ProviderError as error:
            return "", error.message
        finally:
            model.provider.forget(actor)
        if isinstance(reply, Stop):
            return "", reply.detail
        return (reply.text, "") if reply.text.strip() else ("", "the model wrote nothing")

    async def _keep(self, handle: str, text: str) -> str:
        """Keep a whole text where `read_result` finds it, now and after a resume; its name on disk."""
        results = self._me.run.results
        return "" if results.keep(handle, text) is None else await results.save(handle)
