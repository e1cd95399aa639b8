"""Lines that match a regular expression somebody else wrote, without letting it stop the runtime.

A plainly cheap pattern runs here. Any other runs in a process of its own, in batches, which is killed when its time is
over. It asks the kernel to be killed when we die, and limits its own CPU time where no kernel does that.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs

from . import _regex

Text: TypeAlias = tuple[str, str]

MAX_SECONDS = 10.0
BATCH_CHARS = 4_000_000
MAX_LINE_CHARS = 300
_LONG_LINE = 2000
_POLL_SECONDS = 0.05


class TooSlow(Exception):
    """The pattern did not come to an end in its time."""


@attrs.frozen
class Match:
    """A line that matches, `line` counted from 1, its text cut around the match if it is long."""

    path: str
    line: int
    text: str


class Matcher:
    """One search for `pattern`: give it texts, take matches, finish it.

    `checkpoint` is called now and then and may raise to end the search.

    Raises re.error for what is no pattern.
    """

    def __init__(self, pattern: str, limit: int, checkpoint: Callable[[], None]) -> None:
        self._line = _compile(pattern)
        self._cost = _regex.cost(pattern.removeprefix("(?i)"))
        # A text without a match has no line with one, unless the pattern tells a line's end from the text's.
        whole = self._cost == "linear" and "\\A" not in pattern and "\\Z" not in pattern
        self._whole = _compile(pattern, re.MULTILINE) if whole else None
        self._pattern = pattern
        self._limit = limit
        self._found = 0
        self._checkpoint = checkpoint
        self._deadline = time.monotonic() + MAX_SECONDS
        self._batch: list[Text] = []
        self._batched = 0

    @property
    def full(self) -> bool:
        """Whether enough matches were found."""
        return self._found >= self._limit

    def search(self, path: str, text: str) -> Iterator[Match]:
        """Matches in this text, or, where texts are searched in batches, in this and earlier ones.

        Raises TooSlow.
        """
        self._checkpoint()
        text = text.replace("\r\n", "\n")
        if self._whole is not None and not self._whole.search(text):
            return
        if self._cost == "linear" or (
            self._cost == "quadratic" and all(len(line) < _LONG_LINE for line in text.split("\n"))
        ):
            yield from self._here(path, text)
        else:
            self._batch.append((path, text))
            self._batched += len(text)
            if self._batched >= BATCH_CHARS:
                yield from self.finish()

    def finish(self) -> Iterator[Match]:
        """What is left to be found in the last batch. Raises TooSlow."""
        batch, self._batch, self._batched = self._batch, [], 0
        if batch and not self.full:
            for index, line, text in self._elsewhere(batch):
                self._found += 1
                yield Match(batch[index][0], line, text)

    def _here(self, path: str, text: str) -> Iterator[Match]:
        for number, line in enumerate(text.split("\n"), 1):
            if self.full:
                return
            found = self._line.search(line)
            if found is not None:
                self._found += 1
                yield Match(path, number, around(line, found.start()))
            if number % 100 == 0 and time.monotonic() > self._deadline:
                raise TooSlow

    def _elsewhere(self, batch: list[Text]) -> list[tuple[int, int, str]]:
        question = {
            "pattern": self._pattern,
            "limit": self._limit - self._found,
            "width": MAX_LINE_CHARS,
            "texts": [text for _, text in batch],
        }
        libraries = os.environ.get("LD_LIBRARY_PATH")
        # A kernel that kills it when we die takes the end of this thread for that; this thread waits for it below.
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WORKER, str(os.getpid()), str(int(MAX_SECONDS) + 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LD_LIBRARY_PATH": libraries} if libraries else {},
            start_new_session=True,
        )
        data: bytes | None = json.dumps(question).encode()
        try:
            while True:
                try:
                    answer, _ = process.communicate(data, timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    data = None  # It is still being sent.
                    self._checkpoint()
                    if time.monotonic() > self._deadline:
                        raise TooSlow from None
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        if process.returncode:
            raise TooSlow  # Its own limit on time or memory ended it.
        return [(index, line, text) for index, line, text in json.loads(answer)]


_QUIET = threading.Lock()


def _compile(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile without the warnings Python has for odd but valid patterns; those belong to their author."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern, flags)


def around(line: str, at: int, width: int = MAX_LINE_CHARS) -> str:
    """At most `width` characters of a line, among them those from `at` on."""
    if len(line) <= width:
        return line
    start = max(0, min(at - width // 4, len(line) - width))
    return ("…" if start else "") + line[start : start + width] + ("…" if start + width < len(line) else "")


_WORKER = """
import json, os, re, signal, sys, warnings
parent, seconds = map(int, sys.argv[1:])
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
except (ImportError, OSError, AttributeError):
    pass
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
except (ImportError, OSError, ValueError):
    pass
if os.getppid() != parent:
    sys.exit(1)
warnings.simplefilter("ignore")
question = json.loads(sys.stdin.buffer.read())
search, limit, width, found = re.compile(question["pattern"]).search, question["limit"], question["width"], []
for index, text in enumerate(question["texts"]):
    for number, line in enumerate(text.split("\\n"), 1):
        match = search(line)
        if match and len(found) < limit:
            start = max(0, min(match.start() - width // 4, len(line) - width))
            end = start + width
            cut = ("\\u2026" if start else "") + line[start:end] + ("\\u2026" if end < len(line) else "")
            found.append((index, number, cut))
    if len(found) >= limit:
        break
sys.stdout.write(json.dumps(found))
"""
