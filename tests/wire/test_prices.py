"""What a call costs: every token once, at its rate; what is not known is not free."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import UsageError
from runtime.limits.price import Price
from runtime.messages import Usage
from runtime.prices import LongPrompt, ModelInfo, cost, doubt, lookup, models_from
from runtime.wire.usage import chat_usage, messages_usage, responses_usage

MODEL = ModelInfo(price=Price(3.0, 15.0, 0.3, 3.75))


def test_cached_tokens_are_billed_once() -> None:
    """(R24) A prompt of 2000 with 500 read and 300 written: 1200 at the input rate, the others at their own."""
    usage = chat_usage(
        {"prompt_tokens": 2000, "prompt_tokens_details": {"cached_tokens": 500, "cache_write_tokens": 300}}
    )
    assert cost(MODEL, usage) == pytest.approx((1200 * 3.0 + 500 * 0.3 + 300 * 3.75) / 1e6)  # pyright: ignore[reportUnknownMemberType]


def test_cache_fields_that_the_wire_leaves_out_of_input_are_counted() -> None:
    """(R25) Anthropic's 10 + 9000 read + 500 written are 9510 tokens of input."""
    usage = messages_usage({"input_tokens": 10, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500})
    assert usage.input == 9510
    assert cost(MODEL, usage) == pytest.approx((10 * 3.0 + 9000 * 0.3 + 500 * 3.75) / 1e6)  # pyright: ignore[reportUnknownMemberType]


def test_unknown_models_cost_an_unknown_amount() -> None:
    """(R26) No entry, or no price, is None and never 0."""
    assert cost(None, Usage(10, 10)) is None
    assert cost(ModelInfo(window=1000), Usage(10, 10)) is None
    assert lookup("ollama", "qwen3") is None
    assert lookup("openai", "gpt-99") is None


def test_long_prompts_have_their_own_rates() -> None:
    """Above its threshold a prompt is billed at the other rates, as a whole."""
    info = ModelInfo(price=Price(1.0, 2.0), long_prompt=LongPrompt(100, Price(10.0, 20.0)))
    assert cost(info, Usage(100, 1)) == pytest.approx(102e-6)  # pyright: ignore[reportUnknownMemberType]
    assert cost(info, Usage(101, 1)) == pytest.approx(1030e-6)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-haiku-4-5"),
        ("anthropic", "claude-haiku-4-5-20251001"),
        ("anthropic", "claude-haiku-4.5"),
        ("openrouter", "anthropic/claude-haiku-4.5"),
    ],
)
def test_a_model_is_known_by_its_dated_and_its_routed_name(provider: str, model: str) -> None:
    """Snapshots and routers lead to the same entry."""
    found = lookup(provider, model)
    assert found is not None
    assert found == lookup("anthropic", "claude-haiku-4-5")


def test_a_routers_free_variant_has_no_known_price() -> None:
    """Its window is known, its price is not taken from the paid one."""
    info = lookup("openrouter", "deepseek/deepseek-v4-pro:free")
    assert info is not None
    assert info.price is None


def test_similar_names_do_not_borrow_prices() -> None:
    """A model that is not in the table has no price, whatever its name begins with."""
    assert lookup("anthropic", "claude-opus-5-6") is None
    assert lookup("openai", "gpt-5.5-pro") is None


def test_every_entry_of_the_table_makes_sense() -> None:
    """Cached input is never dearer than input, and output never cheaper."""
    from runtime.prices import _TABLE  # pyright: ignore[reportPrivateUsage]

    for entries in _TABLE.values():
        for name, info in entries.items():
            for price in (info.price, info.long_prompt.price if info.long_prompt else None):
                if price is not None:
                    assert 0 < price.input <= price.output, name
                    assert price.cached_input is None or price.cached_input < price.input, name
                    assert price.cache_write is None or price.cache_write >= price.input, name
            assert info.max_output is None or info.window is None or info.max_output < info.window, name


def test_a_config_file_adds_models_and_wins() -> None:
    """A user's entry is found first."""
    entry = {
        "window": 128000,
        "max_output": 16000,
        "input": 1,
        "output": 4.0,
        "cached_input": 0.1,
        "long_prompt": {"above": 100000, "input": 2, "output": 6},
    }
    extra = models_from({"lab/big-1": entry, "anthropic/claude-haiku-4-5": {"input": 9, "output": 9}}, "elenco.yaml")
    assert lookup("lab", "big-1", extra) == ModelInfo(
        128000, 16000, Price(1.0, 4.0, 0.1), LongPrompt(100000, Price(2.0, 6.0))
    )
    found = lookup("anthropic", "claude-haiku-4-5", extra)
    assert found is not None
    assert found.price == Price(9.0, 9.0)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"lab": {}}, "provider/model"),
        ({"lab/a": 3}, "must be a mapping"),
        ({"lab/a": {"imput": 1}}, "did you mean 'input'"),
        ({"lab/a": {"input": 1}}, "both input and output"),
        ({"lab/a": {"input": "1", "output": 2}}, "USD per million"),
        ({"lab/a": {"input": -1, "output": 2}}, "USD per million"),
        ({"lab/a": {"input": True, "output": 2}}, "USD per million"),
        ({"lab/a": {"window": 0}}, "number of tokens"),
        ({"lab/a": {"window": 1.5}}, "number of tokens"),
        ({"lab/a": {"long_prompt": 3}}, "must be a mapping"),
        ({"lab/a": {"long_prompt": {"above": 5}}}, "needs above, input and output"),
    ],
)
def test_a_wrong_entry_is_named(entry: dict[str, Any], words: str) -> None:
    """Every fault names the file, the entry and the key."""
    with pytest.raises(UsageError, match=r"elenco\.yaml: models\.lab") as error:
        models_from(entry, "elenco.yaml")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "usage",
    [
        chat_usage(
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 99},
                "completion_tokens_details": {"reasoning_tokens": 99},
            }
        ),
        responses_usage(
            {
                "input_tokens": 10,
                "output_tokens": 5,
                "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 8},
                "output_tokens_details": {"reasoning_tokens": 9},
            }
        ),
        messages_usage({"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 6}}),
        chat_usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": "x", "prompt_tokens_details": 3}),
        chat_usage({"prompt_tokens": -10, "completion_tokens": float("nan"), "total_tokens": True}),
    ],
)
def test_parts_never_exceed_their_whole(usage: Usage) -> None:
    """Whatever a server counts, no part is larger than its whole, so no price is negative."""
    assert 0 <= usage.cached_input + usage.cache_write <= usage.input
    assert 0 <= usage.reasoning <= usage.output


def test_reasoning_counted_on_top_is_added_to_the_output() -> None:
    """(012) xAI's total says that reasoning is not in the completion tokens."""
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 170,
        "completion_tokens_details": {"reasoning_tokens": 50},
    }
    assert chat_usage(raw) == Usage(100, 70, reasoning=50)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("anthropic/claude-sonet-5", "anthropic/claude-sonnet-5"),
        ("anthropic/Claude-Sonnet-5", "anthropic/claude-sonnet-5"),
        ("openai/gpt5", "openai/gpt-5"),
        ("openrouter/anthropic/claude-sonet-5.5", "openrouter/anthropic/claude-sonnet-5.5"),
        ("lab/smal", "lab/small"),
    ],
)
def test_a_near_miss_of_a_known_model_is_doubted(name: str, meant: str) -> None:
    """A model in no table that is named nearly like a known one is doubted."""
    told = doubt(name, {"lab/small": ModelInfo()})
    assert f"{name} is not in the model table; did you mean '{meant}'?" == told


@pytest.mark.parametrize(
    "name",
    [
        "anthropic/claude-sonnet-5",
        "anthropic/claude-sonnet-5.5",
        "anthropic/claude-sonnet-5-6",
        "anthropic/claude-sonnet-6",
        "openai/gpt-6-terra",
        "openrouter/meta/llama-4",
        "ollama/qwen3",
        "offline/extract",
        "scripted/b.yaml",
    ],
)
def test_a_known_model_another_version_and_a_strange_name_are_not_doubted(name: str) -> None:
    """Known models, other versions of them and names like no other are not doubted: no table knows every model."""
    assert "" == doubt(name, {"scripted/a.yaml": ModelInfo()})
