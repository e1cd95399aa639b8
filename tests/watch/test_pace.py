"""When watchers are told: at the same moments, no later than a breath after, and nobody waits for another."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.events import ApprovalRequested, Warned
from runtime.journal import MemoryJournal
from runtime.model import Delta
from runtime.watch import LogStream, Reader
from runtime.watch.pace import BREATH, MOST_BATCHES, Pace


@attrs.define(eq=False)
class Watcher:
    """Takes what it is offered, as long as it may: when, and the texts."""

    reader: Reader
    takes: bool = True
    told: list[tuple[float, list[str]]] = attrs.field(factory=list[tuple[float, list[str]]])
    done: float | None = None

    def offer(self, data: bytes) -> bool:
        if self.takes:
            texts = [json.loads(each).get("text", "asked") for each in data.splitlines()]
            self.told.append((trio.current_time(), texts))
        return self.takes

    @property
    def texts(self) -> str:
        return "".join(text for _, texts in self.told for text in texts)


@attrs.define
class Scene:
    journal: MemoryJournal
    stream: LogStream
    watchers: list[Watcher]

    def say(self, text: str) -> None:
        self.stream.publish_deltas("a", [Delta("text", text)])

    def keep(self, *events: Warned | ApprovalRequested) -> None:
        for event in events:
            self.journal.append(event)
        self.journal.flush()


@asynccontextmanager
async def staged(count: int) -> AsyncGenerator[Scene]:
    """A stream with so many watchers in step."""
    journal = MemoryJournal(clock=lambda: 1.0)
    stream = LogStream(journal, clock=lambda: 1.0)
    pace = Pace(stream, "r")

    async def watch(task_status: trio.TaskStatus[Watcher]) -> None:
        async with stream.subscribe() as reader:
            assert await reader.catch_up() == []
            watcher = Watcher(reader)
            task_status.started(watcher)
            await pace.keep_step(reader, watcher.offer)
            watcher.done = trio.current_time()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pace.run)
        yield Scene(journal, stream, [await nursery.start(watch) for _ in range(count)])
        nursery.cancel_scope.cancel()


async def test_text_flows_in_breaths(autojump_clock: MockClock) -> None:
    """What is said all the time comes a breath apart and no later than a breath after, each time as one event."""
    async with staged(1) as scene:
        said: list[float] = []
        for number in range(400):
            said.append(trio.current_time())
            scene.say(f"{number:03d} ")
            await trio.sleep(0.001)
        await trio.sleep(1)
        (watcher,) = scene.watchers
        assert "".join(f"{number:03d} " for number in range(400)) == watcher.texts
        assert all(len(texts) == 1 for _, texts in watcher.told)
        times = [time for time, _ in watcher.told]
        assert min(later - sooner for sooner, later in pairwise(times)) >= BREATH - 1e-9
        came = [time for time, texts in watcher.told for _ in texts[0].split()]
        assert max(time - when for time, when in zip(came, said, strict=True)) <= BREATH + 1e-9


async def test_after_a_silence_nothing_waits(autojump_clock: MockClock) -> None:
    """Where nothing was told for a breath, what is new is told at once."""
    async with staged(1) as scene:
        for _ in range(3):
            await trio.sleep(1)
            scene.say("x")
        await trio.sleep(1)
        start = trio.current_time() - 3
        assert [start, start + 1, start + 2] == pytest.approx([time for time, _ in scene.watchers[0].told])


async def test_a_question_does_not_wait(autojump_clock: MockClock) -> None:
    """Who is asked something learns it at once, with all that came before it; a note waits out the breath."""
    asked = ApprovalRequested(actor="a", id="a1", call_id="c", name="shell", arguments={}, why="")
    async with staged(1) as scene:
        await trio.sleep(1)
        start = trio.current_time()
        scene.say("1")
        await trio.sleep(0.01)
        scene.say("2")
        scene.keep(Warned(text="note"))
        await trio.sleep(0.01)
        scene.keep(asked)
        await trio.sleep(1)
        told = [(round(time - start, 9), texts) for time, texts in scene.watchers[0].told]
        assert [(0.0, ["1"]), (0.02, ["2", "note", "asked"])] == told


async def test_the_end_does_not_wait(autojump_clock: MockClock) -> None:
    """When the stream ends every watcher is let go at once, and takes what is left by itself."""
    async with staged(3) as scene:
        await trio.sleep(1)
        scene.say("1")
        await trio.sleep(0.01)
        scene.keep(Warned(text="2"))
        ended = trio.current_time()
        scene.stream.close()
        await trio.testing.wait_all_tasks_blocked()
        assert [ended] * 3 == [each.done for each in scene.watchers]
        assert ["1"] * 3 == [each.texts for each in scene.watchers]
        left = [each.reader.take(scene.stream.mark()) for each in scene.watchers]
        assert [[1]] * 3 == [[record.seq for record in found or ()] for found in left]


async def test_nobody_waits_for_another(autojump_clock: MockClock) -> None:
    """A watcher that takes nothing is out of step from then on; the others are told as ever."""
    async with staged(3) as scene:
        scene.watchers[1].takes = False
        for _ in range(5):
            await trio.sleep(1)
            scene.say("x")
        await trio.sleep(1)
        assert ["x" * 5, "", "x" * 5] == [each.texts for each in scene.watchers]
        assert [False, True, False] == [each.done is not None for each in scene.watchers]


async def test_a_watcher_that_lost_its_place_must_catch_up(autojump_clock: MockClock) -> None:
    """Who was overtaken by the ring is out of step: it is told by the journal and a snapshot what it missed."""
    async with staged(1) as scene:
        await trio.sleep(1)
        scene.keep(Warned(text="first"))
        await trio.sleep(0.001)
        scene.keep(*(Warned(text="") for _ in range(5000)))
        await trio.sleep(1)
        (watcher,) = scene.watchers
        assert watcher.texts == "first"
        assert watcher.done is not None
        found = await watcher.reader.catch_up()
        assert found[0].seq == 2


async def test_a_crowd_is_told_less_often(autojump_clock: MockClock) -> None:
    """A hundred watchers together are told so many times a second as is bearable, all at the same moments."""
    async with staged(100) as scene:
        for _ in range(1000):
            scene.say("x")
            await trio.sleep(0.001)
        await trio.sleep(1)
        assert {"x" * 1000} == {each.texts for each in scene.watchers}
        assert 1 == len({tuple(time for time, _ in each.told) for each in scene.watchers})
        assert 100 * len(scene.watchers[0].told) <= MOST_BATCHES + 200
