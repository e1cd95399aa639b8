"""A model's window and what is kept free in it: when to compact, how far, how long a reply may be; pure."""

from __future__ import annotations

import re

import attrs

from runtime.limits.budget import LEAST_RESULTS, MIN_OUTPUT, WRAP_UP_OUTPUT

START, TARGET = 80, 50
"""Percent of the window at which compaction begins, and to which it goes down."""
LEAST_GAIN = 5
"""Percent of the window that a compaction must free; none is begun for less, so none follows another for ever."""


@attrs.frozen
class Window:
    """`size` in tokens: input and output together."""

    size: int

    @property
    def start(self) -> int:
        return self.size * START // 100

    @property
    def target(self) -> int:
        return self.size * TARGET // 100

    @property
    def least_gain(self) -> int:
        return max(1, self.size * LEAST_GAIN // 100)

    @property
    def reserve(self) -> int:
        """Kept free for the last answer."""
        return min(WRAP_UP_OUTPUT, self.size // 16)

    @property
    def most_results(self) -> int:
        """What the results of one round may add, so that the round alone can never fill the window."""
        return max(LEAST_RESULTS, self.size // 4)

    @property
    def most_summary(self) -> int:
        return max(MIN_OUTPUT, min(self.size // 10, 4096))

    def output_cap(self, wanted: int, used: int) -> int:
        """Tokens a reply may have behind a request of `used` ones; never under MIN_OUTPUT, unless less is wanted."""
        room = min(self.size // 3, self.size - used - self.reserve)
        return min(wanted, max(MIN_OUTPUT, room))

    def is_full(self, used: int) -> bool:
        """Whether to compact before a request of so many tokens."""
        return used > self.start

    def holds(self, used: int) -> bool:
        """Whether a request of so many tokens, a short reply and the reserve fit."""
        return used + MIN_OUTPUT + self.reserve <= self.size


_SAID = (
    re.compile(r"maximum context length (?:is|of) (\d{3,8})", re.IGNORECASE),
    re.compile(r"context (?:window|length|size)\D{0,40}?(\d{3,8}) tokens", re.IGNORECASE),
    re.compile(r"> (\d{3,8}) maximum", re.IGNORECASE),
)


def window_in(message: str) -> int | None:
    """The window a server names where it refuses a prompt as too long."""
    for pattern in _SAID:
        if found := pattern.search(message):
            return int(found[1])
    return None


_REPLY = re.compile(r"in the completion|max_(?:completion_|output_)?tokens|output tokens", re.IGNORECASE)


def counts_reply(message: str) -> bool:
    """Whether a refusal says that prompt and reply together are too long: a shorter reply may then do."""
    return _REPLY.search(message) is not None
