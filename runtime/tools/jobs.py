"""Background jobs: commands that go on while their actor does, and are gone when it is.

`start_job` gives a job's name, `job_output` what it has printed since an offset, `stop_job` ends it. A job is named by
the call that started it, so that after a resume no name means another job than the history says.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

import attrs
import trio

from runtime.journal.nursery import serving
from runtime.reaper import GRACE
from runtime.sandbox.box import Box, Confined
from runtime.sandbox.capture import Capture, Piece

from ._tool import Output, Tool, ToolContext, ToolError, tool
from .shell import DRAIN, command_preview, command_subject, made_note

MOST_JOBS = 8
MOST_WAIT = 60
PAGE_CHARS = 20_000
KEPT_CHARS = 1_000_000
"""Kept of a job's head, and of its tail."""


@attrs.define(eq=False)
class Job:
    """One job; `code` is its exit code once it has ended."""

    name: str
    command: str
    box: Box
    capture: Capture
    code: int | None = None
    stopped: bool = False
    ended: trio.Event = attrs.Factory(trio.Event)
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    stir: trio.Event = attrs.Factory(trio.Event)

    def state(self) -> str:
        """How it stands, in words."""
        if self.code is None:
            return "running"
        if self.stopped:
            return "stopped"
        return f"exit code {self.code}" if self.code >= 0 else f"ended by signal {-self.code}"

    async def news(self, offset: int) -> None:
        """Until it has printed something after an offset, or has ended. A cancelled wait changes nothing."""
        while self.capture.chars <= offset and not self.ended.is_set():
            await self.stir.wait()


class Jobs:
    """The jobs of one actor. Leave the block, and they are ended."""

    def __init__(self, *, needed: bool) -> None:
        """Most actors have no tool to start one: for them the block is nothing."""
        self._needed = needed
        self._jobs: dict[str, Job] = {}
        self._block: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None

    async def __aenter__(self) -> None:
        if self._needed:
            self._block = serving()
            self._nursery = await self._block.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._block is None:
            return None
        return await self._block.__aexit__(kind, error, trace)

    async def begin(self, confined: Confined, command: str, call_id: str) -> Job:
        """Start a job. Raises ToolError, SandboxError. A cancelled call leaves no process."""
        if self._nursery is None:
            raise ToolError("jobs are started in a run alone")
        if sum(job.code is None for job in self._jobs.values()) >= MOST_JOBS:
            raise ToolError(f"{MOST_JOBS} jobs are running already; stop one with stop_job first")
        job = Job(f"job-{call_id}", command, await confined.start(command), Capture(KEPT_CHARS, KEPT_CHARS))
        self._jobs[job.name] = job
        self._nursery.start_soon(self._tend, job)
        return job

    def find(self, name: str) -> Job:
        """The job of a name. Raises ToolError."""
        job = self._jobs.get(name)
        if job is None:
            known = ", ".join(self._jobs) or "none"
            raise ToolError(f"there is no job {name!r}; a job ends with the process that started it. There is: {known}")
        return job

    async def stop(self, job: Job) -> None:
        """End a job and all it has started. A cancelled call ends it too."""
        if job.code is None:
            job.stopped = True
            job.scope.cancel()
            with trio.CancelScope(shield=True):
                await job.ended.wait()

    async def _tend(self, job: Job) -> None:
        process = job.box.process
        assert process.stdout is not None
        stdout = process.stdout
        try:
            with job.scope:
                async with trio.open_nursery() as nursery:

                    async def read() -> None:
                        while data := await stdout.receive_some():
                            job.capture.feed(data)
                            job.stir.set()
                            job.stir = trio.Event()

                    nursery.start_soon(read)
                    await process.wait()
                    nursery.cancel_scope.deadline = trio.current_time() + DRAIN
        finally:
            job.code = await process.end(GRACE)
            job.capture.feed(b"", final=True)
            job.ended.set()
            job.stir.set()


@tool(subject=command_subject, preview=command_preview)
async def start_job(ctx: ToolContext, command: str) -> Output:
    """Start a command line in the background, in the same sandbox as shell, and go on. It does not outlive you.

    Args:
        command: The command line, run under bash in the workspace.
    """
    if ctx.jobs is None or ctx.sandbox is None:
        raise ToolError("jobs are started in a run alone")
    job = await ctx.jobs.begin(ctx.sandbox, command, ctx.call_id)
    text = f"{job.name} has started [{job.box.walls}]. See what it prints: job_output(job='{job.name}')"
    return Output(text, data={"job": job.name, "walls": job.box.walls})


@tool(effects="none", poll=True, private=True, timeout=MOST_WAIT + 30)
async def job_output(ctx: ToolContext, job: str, offset: int = 0, wait: int = 0) -> Output:
    """What a job has printed from an offset on, and whether it still runs.

    Args:
        job: The name start_job gave.
        offset: The first character to show, counted from 0; the last answer says where to go on.
        wait: Seconds to wait for something new, at most 60.
    """
    found = _find(ctx, job)
    if wait > 0:
        with trio.move_on_after(min(wait, MOST_WAIT)):
            await found.news(offset)
    piece = found.capture.since(offset, PAGE_CHARS)
    note = await made_note(ctx, found.box) if found.ended.is_set() else ""
    return Output(
        "\n".join(filter(None, (_shown(piece), note, f"[{_status(found, piece)}]"))), data=_data(found, piece)
    )


@tool(effects="idempotent", progress=False, private=True)
async def stop_job(ctx: ToolContext, job: str) -> Output:
    """Stop a job and everything it has started; gives the end of what it printed.

    Args:
        job: The name start_job gave.
    """
    found = _find(ctx, job)
    await found_jobs(ctx).stop(found)
    piece = found.capture.since(max(0, found.capture.chars - PAGE_CHARS), PAGE_CHARS)
    note = await made_note(ctx, found.box)
    return Output(
        "\n".join(filter(None, (_shown(piece), note, f"[{_status(found, piece)}]"))), data=_data(found, piece)
    )


def found_jobs(ctx: ToolContext) -> Jobs:
    """The jobs of the actor. Raises ToolError."""
    if ctx.jobs is None:
        raise ToolError("there are jobs in a run alone")
    return ctx.jobs


def _find(ctx: ToolContext, name: str) -> Job:
    return found_jobs(ctx).find(name)


def _shown(piece: Piece) -> str:
    lost = f"[{piece.lost} characters before this are kept no more]\n" if piece.lost else ""
    return lost + piece.text.rstrip("\n")


def _status(job: Job, piece: Piece) -> str:
    more = "; there is more" if piece.end < job.capture.chars else ""
    return f"{job.name}: {job.state()}; go on with offset={piece.end}{more}"


def _data(job: Job, piece: Piece) -> dict[str, object]:
    return {"job": job.name, "exit_code": job.code, "offset": piece.end, "chars": job.capture.chars}


JOB_TOOLS: tuple[Tool, ...] = (start_job, job_output, stop_job)
