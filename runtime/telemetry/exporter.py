"""Telemetry at the rim: the events of one run become requests to a collector, every few seconds and at the end."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import httpx
import trio

from runtime.events import Record

from .metrics import Metrics
from .otlp import metrics, traces
from .spans import Span, Spans
from .target import Target

EVERY = 5.0
"""Seconds between two requests while a run works."""
MOST = 2000
"""Spans in one request, and eight times as many that wait for a collector that does not answer."""


class Exporter:
    """Takes the records of one run; what ended before the event `from_seq` was sent by an earlier process.

    `problem` is why the collector did not take what it was sent, "" if it did.
    """

    def __init__(
        self, run: str, target: Target, client: httpx.AsyncClient, clock: Callable[[], float], from_seq: int
    ) -> None:
        self.problem = ""
        self.lost = 0
        self._from_seq = from_seq
        self._target = target
        self._client = client
        self._clock = clock
        self._spans = Spans(run)
        self._metrics = Metrics()
        self._since = clock()
        self._waiting: list[Span] = []
        self._sent_at = trio.current_time()

    def take(self, records: Sequence[Record]) -> None:
        """Take records, in order from the run's first."""
        for record in records:
            span = self._spans.take(record)
            if span is not None and record.seq >= self._from_seq:
                self._waiting.append(span)
                self._metrics.count(span)
        if (excess := len(self._waiting) - 8 * MOST) > 0:
            self.lost += excess
            del self._waiting[:excess]

    async def send_if_due(self) -> None:
        """What `send` does, if that was long enough ago."""
        if self._waiting and trio.current_time() - self._sent_at >= EVERY:
            await self.send()

    async def send(self) -> None:
        """Send what waits, and the metrics; what was not taken waits for the next time.

        A cancelled call may have sent a part, which is sent again.
        """
        self._sent_at = trio.current_time()
        while self._waiting:
            batch = self._waiting[:MOST]
            if not await self._post(self._target.traces, traces(batch, self._target.resource)):
                return
            del self._waiting[: len(batch)]
        counted = metrics(self._metrics, self._target.resource, self._since, self._clock())
        await self._post(self._target.metrics, counted)

    @property
    def undelivered(self) -> str:
        """What to tell a person at the end, "" where all is well."""
        if not self.problem:
            return ""
        count = self.lost + len(self._waiting)
        what = f"{count} span{'' if count == 1 else 's'} of" if count else "the metrics of"
        return f"telemetry: {what} this run did not reach the collector: {self.problem}"

    async def _post(self, address: str, body: bytes) -> bool:
        headers = {"content-type": "application/x-protobuf", **self._target.headers}
        try:
            answer = await self._client.post(address, content=body, headers=headers)
        except httpx.HTTPError as error:
            self.problem = f"{address}: {str(error) or type(error).__name__}"
            return False
        self.problem = "" if answer.is_success else f"{address} answered {answer.status_code}"
        return answer.is_success


@asynccontextmanager
async def exporter(
    run: str, target: Target, from_seq: int = 1, clock: Callable[[], float] = time.time
) -> AsyncGenerator[Exporter]:
    """An exporter with a connection of its own; nothing is sent when the block ends but what `send` was called for."""
    async with httpx.AsyncClient(timeout=target.timeout) as client:
        yield Exporter(run, target, client, clock, from_seq)
