"""Context windows, output bounds and prices of well-known models; what is not in here is unknown, never free.

USD per million tokens at the standard tier, list prices without batch, priority or regional rates; cache writes at the
shortest lifetime offered. Read on 2026-11-30 from stored copies of these public pages:

- Anthropic: platform.claude.com/docs (models overview; pages of each model; pricing), Fable 5.2 from its announcement
- OpenAI: developers.openai.com/api/docs/models (pages of each model) and .../docs/pricing as quoted on 2026-11-05
- Google: ai.google.dev/gemini-api/docs/pricing as quoted on 2026-10-07; Flash at the rate valid until 2026-12-31
- DeepSeek: its Models & Pricing page as quoted on 2026-10-27, at the higher rate of the peak hours
- xAI: docs.x.ai (Grok 4.3, 4.5, 4.6) as quoted in July and August 2026
- Mistral: docs.mistral.ai model card of Medium 3.5 as quoted in May 2026

Prices change: a `models:` mapping in a config file adds to this table and wins over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .errors import UsageError, did_you_mean
from .known import BUILT_IN
from .limits.price import Price
from .messages import Usage
from .nearness import MOST, letters_apart
from .shapes import is_object


@attrs.frozen
class LongPrompt:
    """What a whole call costs once its prompt has more than `above` tokens."""

    above: int
    price: Price


@attrs.frozen
class ModelInfo:
    """What is known of a model: `window` and `max_output` in tokens; None is unknown."""

    window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    long_prompt: LongPrompt | None = None

    def price_for(self, input_tokens: int) -> Price | None:
        """The rates of a call whose prompt has so many tokens."""
        if self.long_prompt is not None and input_tokens > self.long_prompt.above:
            return self.long_prompt.price
        return self.price


def cost(info: ModelInfo | None, usage: Usage) -> float | None:
    """USD of one call, None where no price is known. A sum of calls may be priced too low: rates go by the prompt."""
    price = info.price_for(usage.input) if info is not None else None
    return None if price is None else price.cost(usage)


def lookup(provider: str, model: str, extra: Mapping[str, ModelInfo] | None = None) -> ModelInfo | None:
    """What is known of a provider's model: the user's own entry, else the table's, also for a dated name of it.

    A router's name of another maker's model leads to that maker's entry, as routers charge the makers' prices; a free
    variant's price is left open.
    """
    own = (extra or {}).get(f"{provider}/{model}")
    if own is not None:
        return own
    if provider == "openrouter":
        maker, _, name = model.partition("/")
        name, _, variant = name.partition(":")
        found = _in_table(_MAKERS.get(maker, maker), name)
        return attrs.evolve(found, price=None, long_prompt=None) if found is not None and variant else found
    return _in_table(provider, model)


def well_known() -> Iterator[tuple[str, ModelInfo]]:
    """Every entry of the table as provider/model."""
    for provider, entries in _TABLE.items():
        for model, info in entries.items():
            yield f"{provider}/{model}", info


def doubt(full_name: str, extra: Mapping[str, ModelInfo] | None = None) -> str:
    """What to tell where a model is unknown and its name nearly that of a known one; nothing for any other.

    A name with other numbers in it is another version, which the table may well not know yet.
    """
    provider, _, model = full_name.partition("/")
    if provider in BUILT_IN or lookup(provider, model, extra) is not None:
        return ""
    names: list[str] = [*(extra or {}), *(name for name, _ in well_known()), *_routed(provider)]
    near = [
        (letters_apart(full_name.casefold(), name.casefold()), name)
        for name in dict.fromkeys(names)
        if name.startswith(f"{provider}/") and _NUMBER.findall(name) == _NUMBER.findall(full_name)
    ]
    least = min((apart for apart, _ in near), default=_SLIPS + 1)
    if least > _SLIPS:
        return ""
    meant = " or ".join([f"'{name}'" for apart, name in near if apart == least][:MOST])
    return f"{full_name} is not in the model table; did you mean {meant}?"


def models_from(data: Mapping[str, Any], path: str) -> dict[str, ModelInfo]:
    """The entries of a config file's `models:` mapping, by provider/model.

    ```yaml
    models:
      openai/my-model: {window: 128000, max_output: 16000, input: 1.0, output: 4.0, cached_input: 0.1,
                        long_prompt: {above: 100000, input: 2.0, output: 6.0}}
    ```

    Raises UsageError that names every fault, each with its entry and key.
    """
    faults: list[str] = []
    entries: dict[str, ModelInfo] = {}
    for name, entry in data.items():
        if "/" not in str(name).strip("/"):
            faults.append(f"models.{name}: write the name as provider/model")
        elif not is_object(entry):
            faults.append(f"models.{name}: must be a mapping with {', '.join(_KEYS)}")
        else:
            entries[str(name)] = _entry(f"models.{name}", entry, faults)
    if faults:
        raise UsageError("\n".join(f"{path}: {fault}" if path else fault for fault in faults))
    return entries


_RATES = ("input", "output", "cached_input", "cache_write")
_KEYS = ("window", "max_output", *_RATES, "long_prompt")


def _entry(where: str, entry: Mapping[str, Any], faults: list[str]) -> ModelInfo:
    _known(where, entry, _KEYS, faults)
    window, most = (_tokens(where, entry, key, faults) for key in ("window", "max_output"))
    long_prompt: LongPrompt | None = None
    nested = entry.get("long_prompt")
    if nested is not None and not is_object(nested):
        faults.append(f"{where}.long_prompt: must be a mapping with above and the rates above it")
    elif nested is not None:
        _known(f"{where}.long_prompt", nested, ("above", *_RATES), faults)
        above = _tokens(f"{where}.long_prompt", nested, "above", faults)
        price = _price(f"{where}.long_prompt", nested, faults)
        if above is None or price is None:
            faults.append(f"{where}.long_prompt: needs above, input and output")
        else:
            long_prompt = LongPrompt(above, price)
    return ModelInfo(window, most, _price(where, entry, faults), long_prompt)


def _known(where: str, entry: Mapping[str, Any], keys: tuple[str, ...], faults: list[str]) -> None:
    faults.extend(f"{where}: unknown key '{key}'{did_you_mean(str(key), keys)}" for key in entry if key not in keys)


def _price(where: str, entry: Mapping[str, Any], faults: list[str]) -> Price | None:
    rates: dict[str, float | None] = {}
    for key in _RATES:
        value = entry.get(key)
        if value is None:
            rates[key] = None
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            faults.append(f"{where}.{key}: must be USD per million tokens, not {value!r}")
        else:
            rates[key] = float(value)
    given, output = rates.get("input"), rates.get("output")
    if given is None or output is None:
        if any(rate is not None for rate in rates.values()):
            faults.append(f"{where}: a price needs both input and output")
        return None
    return Price(given, output, rates.get("cached_input"), rates.get("cache_write"))


def _tokens(where: str, entry: Mapping[str, Any], key: str, faults: list[str]) -> int | None:
    value = entry.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    faults.append(f"{where}.{key}: must be a number of tokens, not {value!r}")
    return None


_MAKERS = {"google": "gemini", "mistralai": "mistral", "x-ai": "xai"}
_VERSION = re.compile(r"(?<=\d)-(?=\d)")
_NUMBER = re.compile(r"\d+")
_SLIPS = 2
"""Letters by which a name may differ from a known one and still be taken for it."""
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


def _in_table(provider: str, model: str) -> ModelInfo | None:
    entries = _TABLE.get(provider)
    if entries is None:
        return None
    name = _DATE.sub("", model)
    if provider == "anthropic":
        name = name.replace(".", "-")  # as routers write it
    for candidate in (model, name, name.removesuffix("-latest"), name.removesuffix("-preview")):
        if candidate in entries:
            return entries[candidate]
    return None


def _routed(provider: str) -> Iterator[str]:
    """The names a router has for the table's models: it writes 5.5 where their maker writes 5-5."""
    if provider == "openrouter":
        theirs = {ours: maker for maker, ours in _MAKERS.items()}
        for name, _ in well_known():
            maker, _, model = name.partition("/")
            yield f"openrouter/{theirs.get(maker, maker)}/{_VERSION.sub(r'.', model)}"


def _model(
    window: int,
    max_output: int | None,
    rates: tuple[float, ...],
    above: int | None = None,
    longer: tuple[float, ...] = (),
) -> ModelInfo:
    """Rates: input, output, cached input, cache write (the last two as far as they differ from input)."""
    long_prompt = LongPrompt(above, Price(*longer)) if above is not None else None
    return ModelInfo(window, max_output, Price(*rates), long_prompt)


def _openai(given: float, output: float, cached: float, written: float | None = None) -> ModelInfo:
    """The GPT-5.4 generation and later: a million tokens, and other rates above 272,000 of them."""
    long_written = None if written is None else written * 2
    longer = Price(given * 2, output * 1.5, cached * 2, long_written)
    return ModelInfo(1_050_000, 128_000, Price(given, output, cached, written), LongPrompt(272_000, longer))


_M = 1_000_000
_K200 = 200_000
_OPUS = (5.0, 25.0, 0.50, 6.25)
_SONNET = (3.0, 15.0, 0.30, 3.75)

_TABLE: Mapping[str, Mapping[str, ModelInfo]] = {
    "anthropic": {
        "claude-fable-5-2": _model(_M, 128_000, (8.0, 40.0, 0.20, 10.0)),
        "claude-fable-5-1": _model(_M, 128_000, (10.0, 50.0, 0.25, 12.5)),
        "claude-fable-5": _model(_M, 128_000, (10.0, 50.0, 1.0, 12.5)),
        "claude-opus-5-5": _model(_M, 128_000, (4.0, 20.0, 0.20, 5.0)),
        "claude-opus-5": _model(_M, 128_000, _OPUS),
        "claude-opus-4-8": _model(_M, 128_000, _OPUS),
        "claude-opus-4-7": _model(_M, 128_000, _OPUS),
        "claude-opus-4-6": _model(_M, 128_000, _OPUS),
        "claude-opus-4-5": _model(_K200, 64_000, _OPUS),
        "claude-opus-4-1": _model(_K200, 32_000, (15.0, 75.0, 1.50, 18.75)),
        "claude-sonnet-5-5": _model(_M, 128_000, (2.0, 10.0, 0.10, 2.5)),
        "claude-sonnet-5": _model(_M, 128_000, (2.0, 10.0, 0.20, 2.5)),
        "claude-sonnet-4-6": _model(_M, 64_000, _SONNET),
        "claude-sonnet-4-5": _model(_K200, 64_000, _SONNET),
        "claude-sonnet-4": _model(_K200, 64_000, _SONNET),
        "claude-haiku-5-5": _model(_M, 128_000, (0.10, 0.50, 0.01, 0.125), 100_000, (0.50, 2.50, 0.05, 0.625)),
        "claude-haiku-4-5": _model(_K200, 64_000, (1.0, 5.0, 0.10, 1.25)),
    },
    "openai": {
        # Where a cached rate was not to be found, cached tokens are priced like others: at most too high.
        "gpt-6.2-astra": ModelInfo(1_050_000, 128_000, Price(8.0, 40.0), LongPrompt(272_000, Price(16.0, 60.0))),
        "gpt-6.2-sol": _openai(2.0, 10.0, 0.10, 2.5),
        "gpt-6.1-sol": _openai(2.0, 10.0, 0.10, 2.5),
        "gpt-6.1-terra": _openai(1.0, 5.0, 0.05, 1.25),
        "gpt-6-astra": _openai(10.0, 50.0, 1.0, 12.5),
        "gpt-6-sol": _openai(2.0, 10.0, 0.20, 2.5),
        "gpt-6-luna": _openai(0.10, 0.50, 0.01, 0.125),
        "gpt-5.6-sol": _openai(4.0, 20.0, 0.40, 5.0),
        "gpt-5.6-terra": _openai(2.0, 12.0, 0.20, 2.5),
        "gpt-5.6-luna": _openai(0.20, 1.20, 0.02, 0.25),
        "gpt-5.5": _openai(5.0, 30.0, 0.50),
        "gpt-5.4": _openai(2.5, 15.0, 0.25),
        "gpt-5.4-mini": _model(400_000, 128_000, (0.75, 4.5, 0.075)),
        "gpt-5.4-nano": _model(400_000, 128_000, (0.20, 1.25, 0.02)),
        "gpt-5.2": _model(400_000, 128_000, (1.75, 14.0, 0.175)),
        "gpt-5.1": _model(400_000, 128_000, (1.25, 10.0, 0.125)),
        "gpt-5": _model(400_000, 128_000, (1.25, 10.0, 0.125)),
        "gpt-5-mini": _model(400_000, 128_000, (0.25, 2.0, 0.025)),
        "gpt-5-nano": _model(400_000, 128_000, (0.05, 0.40, 0.005)),
        "gpt-4.1": _model(1_047_576, 32_768, (2.0, 8.0, 0.50)),
        "gpt-4.1-mini": _model(1_047_576, 32_768, (0.40, 1.60, 0.10)),
        "gpt-4o": _model(128_000, 16_384, (2.5, 10.0, 1.25)),
        "gpt-4o-mini": _model(128_000, 16_384, (0.15, 0.60, 0.075)),
    },
    "gemini": {
        "gemini-3.8-flash": _model(1_048_576, 65_536, (0.75, 3.75, 0.075)),
        "gemini-3.7-flash": _model(1_048_576, 65_536, (0.75, 3.75, 0.075)),
        "gemini-3.5-flash-lite": _model(1_048_576, 65_536, (0.30, 2.5, 0.03)),
        "gemini-3.1-pro": _model(1_048_576, 65_536, (2.0, 12.0, 0.20), _K200, (4.0, 18.0, 0.40)),
        "gemini-3.1-flash-lite": _model(1_048_576, 65_536, (0.25, 1.5)),
        "gemini-2.5-pro": _model(1_048_576, 65_536, (1.25, 10.0), _K200, (2.5, 15.0)),
        "gemini-2.5-flash": _model(1_048_576, 65_536, (0.30, 2.5)),
        "gemini-2.5-flash-lite": _model(1_048_576, 65_536, (0.10, 0.40)),
    },
    "deepseek": {
        "deepseek-flash": ModelInfo(price=Price(0.30, 1.20, 0.006)),
        "deepseek-v4-pro": ModelInfo(price=Price(1.32, 3.96, 0.044)),
    },
    "xai": {
        "grok-4.6": _model(500_000, None, (2.0, 6.0, 0.50), 204_800, (4.0, 12.0, 1.0)),
        "grok-4.5": _model(500_000, None, (2.0, 6.0, 0.50), 204_800, (4.0, 12.0, 1.0)),
        "grok-4.3": _model(_M, None, (1.25, 2.5, 0.20), 204_800, (2.5, 5.0, 0.40)),
    },
    "mistral": {
        "mistral-large-4": ModelInfo(window=1_048_576),
        "mistral-large-4-0": ModelInfo(window=1_048_576),
        "mistral-medium-3.5": ModelInfo(window=256_000, price=Price(1.5, 7.5)),
        "mistral-medium": ModelInfo(window=256_000, price=Price(1.5, 7.5)),
    },
}
