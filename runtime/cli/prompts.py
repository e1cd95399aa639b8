"""Questions to the human at the terminal: what is asked, why, and an answer in one line."""

from __future__ import annotations

import sys

import trio

from runtime.app import LiveRun
from runtime.errors import UsageError
from runtime.events import ApprovalDecided, ApprovalRequested

from .tree import call_text, short

KEYS = "  y once   s stop run   or type why not"


async def ask_on_terminal(live: LiveRun) -> None:
    """Show each approval and read the answer, until cancelled. Another terminal may answer first."""
    async with live.stream.subscribe() as reader:
        lines = _Lines()
        waiting: list[ApprovalRequested] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_answer, live, lines, waiting)
            async for record in reader:
                match record.event:
                    case ApprovalRequested() as request:
                        waiting.append(request)
                        print(card(request), file=sys.stderr, flush=True)
                        lines.start(nursery)
                    case ApprovalDecided() as decided:
                        waiting[:] = [request for request in waiting if request.id != decided.id]
                    case _:
                        pass
            nursery.cancel_scope.cancel()


def card(request: ApprovalRequested) -> str:
    """What is asked, as a person reads it."""
    head = f"? {short(request.actor)} asks ({request.id})    {call_text(request.name, request.arguments)}"
    preview = f"\n{request.preview}" if request.preview else ""
    return f"{head}\n    {request.why}; the clock stands still{preview}\n{KEYS}"


async def _answer(live: LiveRun, lines: _Lines, waiting: list[ApprovalRequested]) -> None:
    async for text in lines.receive:
        if not waiting:
            continue
        request = waiting[0]
        match text.strip():
            case "":
                continue
            case "y" | "yes":
                decision, why = "allow", ""
            case "s":
                live.cancel("you")
                return
            case reason:
                decision, why = "deny", reason
        try:
            await live.approvals.decide(request.id, decision, "you", why=why)
        except UsageError as late:
            print(str(late), file=sys.stderr)


class _Lines:
    """Lines of standard input, read in a thread that is left behind when nobody wants them any more."""

    def __init__(self) -> None:
        self._send, self.receive = trio.open_memory_channel[str](16)
        self._started = False

    def start(self, nursery: trio.Nursery) -> None:
        if not self._started:
            self._started = True
            nursery.start_soon(self._read)

    async def _read(self) -> None:
        while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            await self._send.send(line)
