"""One tiny call to each provider that could be asked: does the key work, does the model answer, how fast."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import attrs
import trio

from runtime.config import ProviderConfig
from runtime.errors import ElencoError
from runtime.known import KNOWN, ModelFlags
from runtime.messages import UserMessage
from runtime.model import ModelRequest, ProviderError
from runtime.models import Models
from runtime.prices import ModelInfo, well_known

from .advice import span
from .command_models import key_state
from .visible import one_line

PATIENCE = 30.0
"""Seconds a provider has for the one call."""


@attrs.define
class Result:
    name: str
    good: bool = False
    text: str = f"no answer within {PATIENCE:.0f} s"


def check_all(
    flags: ModelFlags, providers: Mapping[str, ProviderConfig], own: Mapping[str, ModelInfo], chosen: str
) -> int:
    """Ask, and say what came of it; 1 if one did not answer or none could be asked.

    Raises UsageError for a model that was named and cannot be asked: no such provider, no key.
    """
    named = [flags.model] if flags.model else _askable(providers, own, chosen)
    if not named:
        print("no provider has a key, so none was asked (elenco doctor tells how to connect one)", file=sys.stderr)
        return 1
    models = Models(flags, providers, own)
    if flags.model:
        models.resolve(flags.model)
    for told in filter(None, map(models.doubt, named)):
        print(f"! {told}", file=sys.stderr)
    results = trio.run(_ask_all, models, [Result(name) for name in named])
    for result in results:
        print(f"{'✓' if result.good else '✗'} {one_line(result.name, 80)}   {result.text}")
    return 0 if all(result.good for result in results) else 1


def _askable(providers: Mapping[str, ProviderConfig], own: Mapping[str, ModelInfo], chosen: str) -> list[str]:
    """One model of every provider whose key is set, the run's own first; what needs no key is asked only if named."""
    found = [] if chosen.startswith(("offline/", "scripted/")) else [chosen]
    there = [*own, *(name for name, _ in well_known())]
    for provider in [*providers, *(name for name in KNOWN if name not in providers)]:
        if not key_state(provider, providers.get(provider))[1] or any(_is_of(name, provider) for name in found):
            continue
        known = KNOWN.get(provider)
        default = f"{provider}/{known.default}" if known is not None and known.default else None
        model = default or next((name for name in there if _is_of(name, provider)), None)
        if model is not None:
            found.append(model)
        else:
            print(f"{provider}: name a model to ask: elenco models --model {provider}/NAME", file=sys.stderr)
    return found


def _is_of(model: str, provider: str) -> bool:
    return model.partition("/")[0] == provider


async def _ask_all(models: Models, results: list[Result]) -> list[Result]:
    try:
        async with trio.open_nursery() as nursery:
            for result in results:
                nursery.start_soon(_ask, models, result)
    finally:
        await models.aclose()
    return results


async def _ask(models: Models, result: Result) -> None:
    started = trio.current_time()
    with trio.move_on_after(PATIENCE):
        try:
            model = models.resolve(result.name)
            request = ModelRequest(
                model.name,
                (),
                (UserMessage("Answer with the word ok."),),
                max_output_tokens=64,
                agent="check",
                actor="check",
            )
            reply = await model.provider.complete(request, lambda deltas: None)
        except (ElencoError, ProviderError) as error:
            result.text = one_line(str(error), 200)
        else:
            result.good = True
            used = f", {reply.usage.input} tokens in, {reply.usage.output} out" if reply.usage is not None else ""
            result.text = f"answered in {span(trio.current_time() - started)}{used}"
