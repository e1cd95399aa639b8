"""What a tool starts ends with its call, with the run and with the runtime, whatever it does to get away."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import pytest
import trio
import trio.testing

import runtime
from runtime.reaper import Process, Reaper, open_reaper

GET_AWAY = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(300)
    os._exit(0)
os.wait()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(300)
"""
"""Starts a daemon the old way, tells both ids and stays."""

STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"%d\\n" % os.getpid())
time.sleep(300)
"""

RUNTIME = f"""
import sys, trio
from runtime.reaper import open_reaper
async def main():
    async with open_reaper() as reaper:
        async with reaper.running([sys.executable, "-c", {GET_AWAY!r}]) as process:
            while True:
                sys.stdout.buffer.write(await process.stdout.receive_some())
                sys.stdout.flush()
trio.run(main)
"""


@pytest.fixture
async def reaper() -> AsyncGenerator[Reaper]:
    async with open_reaper() as reaper:
        yield reaper


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


async def lines(stream: trio.abc.ReceiveStream | None, count: int) -> list[bytes]:
    assert stream is not None
    data = b""
    with trio.fail_after(20):
        while data.count(b"\n") < count:
            more = await stream.receive_some()
            assert more, data
            data += more
    return data.split(b"\n")[:count]


async def pids(process: Process, count: int) -> list[int]:
    return [int(line) for line in await lines(process.stdout, count)]


def alive(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


async def all_gone(who: Iterable[int]) -> None:
    with trio.fail_after(10):
        while any(map(alive, who)):  # noqa: ASYNC110  # nobody tells when a stranger ends
            await trio.sleep(0.01)


async def test_a_process_gives_its_output_and_its_exit_code(reaper: Reaper, tmp_path: Path) -> None:
    """A process reads, writes and ends as any other, where and with what environment it was asked to."""
    script = 'read word; echo "$word $PWD $GREETING"; echo oops >&2; exit 7'
    async with reaper.running(
        ["sh", "-c", script], cwd=tmp_path, env={"GREETING": "hello"}, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        await process.stdin.send_all(b"well\n")
        assert await lines(process.stdout, 1) == [f"well {tmp_path} hello".encode()]
        assert await process.stderr.receive_some() == b"oops\n"
        assert await process.wait() == 7
    assert process.returncode == 7


async def test_errors_can_go_where_the_output_goes(reaper: Reaper) -> None:
    """With STDOUT for its errors a process has one stream for both, in the order written."""
    script = "echo one; echo two >&2; echo three"
    async with reaper.running(["sh", "-c", script], stderr=subprocess.STDOUT) as process:
        assert await lines(process.stdout, 3) == [b"one", b"two", b"three"]
    assert process.stderr is None


async def test_what_cannot_be_started_is_an_error_with_its_name(reaper: Reaper) -> None:
    """A program that is not there, or a folder that is not, is the ordinary OSError."""
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await reaper.start(["no-such-program"])
    with pytest.raises(OSError) as caught:
        await reaper.start(["true"], cwd="/no/such/folder")
    assert caught.value.errno == errno.ENOENT
    assert await (await reaper.start(["true"])).end() == 0


async def test_a_long_environment_and_a_long_command_line_arrive(reaper: Reaper) -> None:
    """What is longer than a socket's buffer arrives whole."""
    env = {f"VARIABLE_{number}": "x" * 20_000 for number in range(40)}
    async with reaper.running(["sh", "-c", 'echo "${#VARIABLE_39} ${#1}"', "sh", "y" * 100_000], env=env) as process:
        assert await lines(process.stdout, 1) == [b"20000 100000"]


async def test_a_daemon_does_not_outlive_its_call(reaper: Reaper) -> None:
    """A grandchild that made itself a daemon is gone when the block is left."""
    async with reaper.running(program(GET_AWAY)) as process:
        who = await pids(process, 2)
        assert all(map(alive, who))
    assert not any(map(alive, who))


async def test_what_a_command_left_running_ends_with_the_call(reaper: Reaper) -> None:
    """A command that has ended gives its exit code at once; what it left in the background ends with the block."""
    async with reaper.running(["sh", "-c", "setsid sleep 300 & echo $!; exit 3"]) as process:
        (left,) = await pids(process, 1)
        assert await process.wait() == 3
        assert alive(left)
    assert not alive(left)


async def test_a_process_is_asked_before_it_is_killed(reaper: Reaper) -> None:
    """At the end of its block a process gets TERM and may tidy up."""
    script = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = await reaper.start(["sh", "-c", script])
    await lines(process.stdout, 1)
    await process.terminate()
    assert await lines(process.stdout, 1) == [b"bye"]
    assert await process.end() == 9


async def test_a_process_that_ignores_term_is_killed(reaper: Reaper) -> None:
    """What ignores TERM is killed after the grace it was given."""
    async with reaper.running(program(STUBBORN), grace=0.1) as process:
        who = await pids(process, 1)
    assert process.returncode == -signal.SIGKILL
    assert not any(map(alive, who))


async def test_a_cancelled_call_leaves_nothing(reaper: Reaper) -> None:
    """A call cancelled while its process works ends the process before it lets go."""
    who: list[int] = []
    with trio.move_on_after(20) as scope:
        async with reaper.running(program(GET_AWAY)) as process:
            who += await pids(process, 2)
            scope.cancel()
            await process.wait()
    assert scope.cancelled_caught
    assert not any(map(alive, who))


async def test_a_start_cancelled_anywhere_leaves_nothing() -> None:
    """Starts cancelled at random moments, and runs of them side by side: no process and no descriptor is left."""
    chance = random.Random(1)
    before = len(os.listdir("/proc/self/fd"))
    async with open_reaper() as reaper:

        async def one() -> None:
            with trio.move_on_after(chance.random() * 0.05):
                async with reaper.running(["sleep", "300"], grace=0):
                    await trio.sleep_forever()

        for _ in range(10):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(one)
        (warden,) = wardens()
        await all_gone(children(warden))
    assert wardens() == []
    assert len(os.listdir("/proc/self/fd")) == before


async def test_the_run_ends_what_its_tools_forgot() -> None:
    """Processes that nobody ended are gone when the reaper is closed, and nothing is started after."""
    async with open_reaper() as reaper:
        process = await reaper.start(program(GET_AWAY))
        who = await pids(process, 2)
    assert not any(map(alive, who))
    with pytest.raises(OSError, match="the run is over"):
        await reaper.start(["true"])


async def test_a_killed_runtime_takes_its_processes_along() -> None:
    """After kill -9 of the runtime its commands, and their daemons, are gone a moment later."""
    path = str(Path(runtime.__path__[0]).parent)
    process = await trio.lowlevel.open_process(
        program(RUNTIME), stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    who = [int(line) for line in await lines(process.stdout, 2)]
    assert all(map(alive, who))
    family = [each for child in children(process.pid) for each in (child, *children(child))]
    process.kill()
    await process.wait()
    assert process.stdout is not None
    await process.stdout.aclose()
    await all_gone([*who, *family])


async def test_a_killed_warden_is_replaced(reaper: Reaper) -> None:
    """When the warden was killed, what runs still ends with its block, and the next start has a new warden."""
    async with reaper.running(program(GET_AWAY)) as process:
        who = await pids(process, 2)
        (warden,) = wardens()
        os.kill(warden, signal.SIGKILL)
        await all_gone([warden])
        async with reaper.running(["echo", "again"]) as other:
            assert await lines(other.stdout, 1) == [b"again"]
    await all_gone(who)


async def test_what_a_killed_keeper_kept_is_killed_too(reaper: Reaper) -> None:
    """When the process above a command was killed, the command and its daemons are gone and the call knows."""
    async with reaper.running(program(GET_AWAY)) as process:
        who = await pids(process, 2)
        (warden,) = wardens()
        (keeper,) = children(warden)
        os.kill(keeper, signal.SIGKILL)
        with trio.fail_after(10):
            assert await process.wait() == -signal.SIGKILL
        await all_gone(who)


async def test_two_may_wait_for_one_process(reaper: Reaper) -> None:
    """Every waiter gets the exit code, also when another task ends the process."""
    codes: list[int] = []
    process = await reaper.start(["sleep", "300"])

    async def waiter() -> None:
        codes.append(await process.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        nursery.start_soon(waiter)
        await trio.testing.wait_all_tasks_blocked()
        await process.end()
    assert codes == [-signal.SIGTERM, -signal.SIGTERM]


def wardens() -> list[int]:
    """This process's; other tests may have left a server of theirs for all that follow."""
    return [pid for pid in children(os.getpid()) if b"warden.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def children(mine: int) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == mine and fields[0] != b"Z":
                found.append(int(name))
    return found
