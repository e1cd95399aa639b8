"""The program under which everything runs that tools start: it dies with the runtime and takes all of them along.

Started as `python -I -S warden.py` with a socket as standard input, of the standard library alone. For each message it
gets four descriptors (control, standard input, output, error), or more for the command, and forks a keeper, which reads
from its control what to run, starts it in a session of its own, tells how it ends, and ends whatever is left of it when
the runtime says so, or is gone: a closed control is all it takes. Warden and keepers are subreapers, so a command's
children cannot leave by becoming orphans. Where the system has no subreapers, only its process group is ended.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any, NoReturn

PR_SET_CHILD_SUBREAPER = 36
MESSAGE = b"s"
"""What comes with the four descriptors."""
TERM = b"t"
"""Ask everything below to end; to close the control is to kill."""
FIRST_PASSED = 100
"""The number that the first further descriptor has in the command, where no program has one of its own."""
_MOST = 16
_LONGEST_PAUSE = 0.1


def main() -> None:
    """Serve the runtime until it is gone, then until all keepers are."""
    become_subreaper()
    runtime = socket.socket(fileno=0)
    keepers: set[int] = set()
    ended = _on_child()
    poll = select.poll()
    poll.register(runtime, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if ended.fileno() in ready:
            ended.recv(4096)
            reap(lambda pid, _: keepers.discard(pid))
            # A keeper that was killed leaves its charges to us; those of the others never come here.
            for pid in strays(keepers):
                _kill(pid)
        if runtime.fileno() in ready:
            descriptors = _receive(runtime)
            if descriptors is None:
                break
            pid = os.fork()
            if pid == 0:
                _become_keeper(runtime, ended, *descriptors)
            keepers.add(pid)
            for descriptor in descriptors:
                os.close(descriptor)
    while keepers and reap(lambda pid, _: keepers.discard(pid)):
        time.sleep(0.01)
    kill_all()


def _receive(runtime: socket.socket) -> list[int] | None:
    """The descriptors of the next message, None when the runtime is gone."""
    descriptors = array.array("i")
    try:
        data, extras, _, _ = runtime.recvmsg(1, socket.CMSG_SPACE(_MOST * descriptors.itemsize))
    except OSError:
        return None
    for level, kind, content in extras:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content)
    return list(descriptors) if data and len(descriptors) >= 4 else None


# --- a keeper ----------------------------------------------------------------------------------------------------


def _become_keeper(runtime: socket.socket, ended: socket.socket, *descriptors: int) -> NoReturn:
    status = 1
    try:
        runtime.close()
        ended.close()
        _kept.clear()
        keep(*descriptors)
        status = 0
    finally:
        os._exit(status)


def keep(control: int, stdin: int, stdout: int, stderr: int, *passed: int) -> None:
    """Run one command and stay until nothing of it is left."""
    become_subreaper()
    channel = socket.socket(fileno=control)
    ended = _on_child()
    started = _start(channel, (stdin, stdout, stderr), passed)
    for descriptor in {stdin, stdout, stderr, *passed}:
        os.close(descriptor)
    if started is None:
        return
    process, wraps = started
    code: int | None = None

    def note(pid: int, status: int) -> None:
        nonlocal code
        if pid == process:
            code = os.waitstatus_to_exitcode(status)
            _tell(channel, exit=code)

    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while reap(note):
        ready = {descriptor for descriptor, _ in poll.poll()}
        if ended.fileno() in ready:
            ended.recv(4096)
        if channel.fileno() in ready:
            try:
                said = channel.recv(64)
            except OSError:
                said = b""
            if not said:
                break
            for pid in descendants(os.getpid()) or [-process]:
                if pid != process or not wraps:
                    _kill(pid, signal.SIGTERM)
    _kill(-process)
    kill_all(note)


def _start(channel: socket.socket, streams: tuple[int, int, int], passed: tuple[int, ...]) -> tuple[int, bool] | None:
    """The process and whether it only wraps the command, None where nothing was started."""
    line = b""
    while not line.endswith(b"\n"):
        data = channel.recv(65536)
        if not data:
            return None
        line += data
    order: dict[str, Any] = json.loads(line)
    numbers = range(FIRST_PASSED, FIRST_PASSED + len(passed))
    try:
        for descriptor, number in zip(passed, numbers, strict=True):
            os.dup2(descriptor, number)
        process = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=order["env"],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=tuple(numbers),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        _tell(channel, error=getattr(error, "strerror", None) or str(error), errno=getattr(error, "errno", None) or 0)
        return None
    for number in numbers:
        os.close(number)
    process.returncode = 0  # It is waited for here, by its id.
    _tell(channel, pid=process.pid)
    return process.pid, bool(order["wraps"])


def _tell(channel: socket.socket, **said: object) -> None:
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(said).encode() + b"\n")


# --- processes ---------------------------------------------------------------------------------------------------


def become_subreaper() -> bool:
    """Whether orphans below this process come to it from now on."""
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def descendants(root: int) -> list[int]:
    """Everything below a process, parents first."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def strays(keepers: set[int]) -> list[int]:
    """What hangs below this process and below no keeper."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = [pid for pid in children.get(os.getpid(), ()) if pid not in keepers]
    for pid in found:
        found += children.get(pid, ())
    return found


def reap(note: Callable[[int, int], None] = lambda pid, status: None) -> bool:
    """Take the ends of children that have ended; False when there are no children any more."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True
        note(pid, status)


def kill_all(note: Callable[[int, int], None] = lambda pid, status: None) -> None:
    """Kill what is below until nothing is: whatever loses its parent meanwhile comes to us."""
    pause = 0.001
    while reap(note):
        for pid in descendants(os.getpid()):
            _kill(pid)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _parents() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    found.append((int(name), int(fields[1])))
    return found


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process, or with a negative id its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _on_child() -> socket.socket:
    """A socket that can be read when a child has ended."""
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    _kept.append(writing)
    return reading


_kept: list[socket.socket] = []


if __name__ == "__main__":
    main()
