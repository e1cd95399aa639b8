"""A search that runs in a process of its own ends with the runtime, however that ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_SEARCH = """
from runtime.tools import _grep
_grep.MAX_SECONDS = 1000.0
matcher = _grep.Matcher("(a+)+$", 10, lambda: None)
list(matcher.search("a.txt", "a" * 60 + "!"))
list(matcher.finish())
"""


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def runs(pid: int, word: str) -> bool:
    """Whether a process is there, not ended, and was started with this word."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and word in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_the_process_of_a_search_dies_with_a_killed_runtime() -> None:
    """When the runtime is killed, the process that runs a pattern without an end is killed by the kernel."""
    with subprocess.Popen([sys.executable, "-c", _SEARCH]) as runtime:
        try:
            found: list[int] = []
            while not found and runtime.poll() is None:
                found = [pid for pid in children(runtime.pid) if runs(pid, "PR_SET_PDEATHSIG") and _is_busy(pid)]
                time.sleep(0.01)
            assert found
        finally:
            runtime.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(runs(pid, "PR_SET_PDEATHSIG") for pid in found):
        assert time.monotonic() < deadline, "it outlived the runtime"
        time.sleep(0.01)


def _is_busy(pid: int) -> bool:
    """Whether a process has read its question and computes: its time grows beyond what starting takes."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) >= 30
