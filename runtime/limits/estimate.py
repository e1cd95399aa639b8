"""How many tokens the next request will have, before it is sent: pure, incremental, no tokenizer.

UTF-8 bytes / 2 is more than any tokenizer in use makes of prose or code. Only what was added since the last reply is
guessed so; everything before is known from that reply's usage.
"""

from __future__ import annotations

import attrs

from runtime.messages import Usage


def byte_length(text: str) -> int:
    """UTF-8 bytes; half a surrogate pair counts as three, as if it could be written."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def tokens_of_bytes(count: int) -> int:
    return (count + 1) // 2


def tokens_of(text: str) -> int:
    """A safe guess, rounded up."""
    return tokens_of_bytes(byte_length(text))


@attrs.frozen
class Gauge:
    """The size of one conversation: `known` tokens the provider has counted, and `added` bytes it has not seen yet.

    `margin` is by how many tokens `known` may be too low, where it is itself worked out.
    """

    known: int = 0
    added: int = 0
    margin: int = 0

    def add(self, text: str) -> Gauge:
        """Something goes into the next request: prompt, tools, a message, a round of results."""
        return self.add_bytes(byte_length(text))

    def add_bytes(self, count: int) -> Gauge:
        return Gauge(self.known, self.added + count, self.margin)

    def after_reply(self, usage: Usage) -> Gauge:
        """A reply came with its usage: all of the request, and the reply itself, are now counted."""
        return Gauge(known=usage.input + usage.output)

    def after_unreported(self, reply: str) -> Gauge:
        """A reply came without usage: the guess stands, and the reply adds to it."""
        return self.add(reply)

    def tokens(self, counted: int | None = None) -> int:
        """Input to reserve for the next request; `counted` is the provider's own exact count where it has one."""
        return counted if counted is not None else self.known + tokens_of_bytes(self.added) + self.margin

    def likely(self, counted: int | None = None) -> int:
        """The next request's size as far as anybody can tell: what to compare with the model's window."""
        return counted if counted is not None else self.known + tokens_of_bytes(self.added)

    def compacted(self, used: int, before: int, after: int) -> Gauge:
        """The request had `used` tokens in `before` bytes, and has `after` bytes now: its tokens in proportion.

        What is left is never thought to have more tokens than it all had.
        """
        likely = min(used, -(-used * after // max(1, before)))
        return Gauge(likely, 0, max(0, min(tokens_of_bytes(after), max(used, self.tokens())) - likely))
