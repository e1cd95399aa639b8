"""What a model's tokens cost, and the worst a call can cost."""

from __future__ import annotations

import math

import attrs

from runtime.messages import Usage

PICO = 1_000_000_000_000


def _worst_input(price: Price) -> int:
    return _pico(max(price.input, price.cached_input or 0.0, price.cache_write or 0.0))


def _worst_output(price: Price) -> int:
    return _pico(price.output)


def _pico(usd_per_million: float) -> int:
    exact = usd_per_million * (PICO // 1_000_000)
    # A rate such as 0.1 is no binary fraction: its product lies a hair beside the whole number it stands for.
    return round(exact) if math.isclose(exact, round(exact), rel_tol=1e-12) else math.ceil(exact)


@attrs.frozen
class Price:
    """USD per million tokens. A rate that is None is the plain input rate.

    `cached_input` is for prompt tokens read from a cache, `cache_write` for those written to one; both are parts of a
    usage's input and are billed instead of, never beside, the plain rate.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    worst_input: int = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_worst_input, takes_self=True)
    )
    """Picodollars a prompt token costs at most: which of them a cache will serve is not known before the call."""
    worst_output: int = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_worst_output, takes_self=True)
    )
    """Picodollars a generated token costs at most."""

    def cost(self, usage: Usage) -> float:
        """USD for what was used: each token once, at its own rate."""
        cached = self.input if self.cached_input is None else self.cached_input
        written = self.input if self.cache_write is None else self.cache_write
        plain = max(0, usage.input - usage.cached_input - usage.cache_write)
        return (
            plain * self.input + usage.cached_input * cached + usage.cache_write * written + usage.output * self.output
        ) / 1_000_000


def to_pico(usd: float) -> int:
    """Money is summed in whole picodollars, so that a million additions and subtractions end at exactly zero."""
    return round(usd * PICO)


def to_usd(pico: int) -> float:
    return pico / PICO
