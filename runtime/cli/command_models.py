"""`elenco models`: providers, whether their key is set, the models known with window and prices; nothing is asked."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from runtime.config import ProviderConfig
from runtime.known import KNOWN, OFFLINE, ModelFlags, default_model, key_variable
from runtime.limits.limits import count_text
from runtime.outline import settings_of
from runtime.prices import ModelInfo, models_from, well_known
from runtime.secrecy import without_password
from runtime.workplace import check_workspace

from .table import columns
from .visible import one_line

HEAD = ("MODEL", "WINDOW", "OUTPUT", "INPUT $/M", "OUTPUT $/M", "CACHED $/M", "FROM")


def run(arguments: argparse.Namespace) -> int:
    """Print what is known, or ask each provider once with --check. No part of a key is ever shown."""
    workspace = Path(arguments.workspace or ".")
    check_workspace(workspace)
    here, user = settings_of(workspace)
    providers = {**user.providers, **here.providers}
    own = {**models_from(user.models, user.path), **models_from(here.models, here.path)}
    flags = ModelFlags(arguments.model, arguments.base_url, arguments.wire)
    if arguments.check or arguments.model or arguments.base_url:
        from .checks import check_all

        return check_all(flags, providers, own, default_model(flags, here.model or user.model, os.environ))
    chosen = default_model(flags, here.model or user.model, os.environ)
    rows = [*((name, info, "yours") for name, info in own.items())]
    rows += [(name, info, "table") for name, info in well_known() if name not in own]
    if arguments.json:
        _print_json(chosen, providers, rows)
        return 0
    print(f"a run uses  {one_line(chosen, 80)}   (agent files may name another; --model PROVIDER/MODEL)\n")
    print(columns([("PROVIDER", "KEY", "MODEL WHERE NONE IS NAMED"), *_providers(providers)]))
    print("offline/extract needs none: it quotes your files; scripted/FILE.yaml replays a script\n")
    print(columns([HEAD, *(_row(name, info, origin) for name, info, origin in rows)]))
    print("try them: elenco models --check   prices of others: 'models:' in elenco.yaml", file=sys.stderr)
    return 0


def key_state(name: str, own: ProviderConfig | None) -> tuple[str, bool]:
    """Where a provider's key is looked for, in words, and whether it could be asked."""
    variable = key_variable(name, own)
    if variable is None:
        return "needs none", False
    is_set = bool(os.environ.get(variable))
    return f"{variable} {'is set' if is_set else 'not set'}", is_set


def _place(name: str, config: ProviderConfig) -> str:
    if config.base_url is not None:
        return f"at {one_line(without_password(config.base_url), 60)}, {config.wire}"
    known = KNOWN.get(name)
    return (known.default or "-") if known is not None else "-"


def _providers(own: dict[str, ProviderConfig]) -> list[tuple[str, str, str]]:
    rows = [(one_line(name, 40), key_state(name, config)[0], _place(name, config)) for name, config in own.items()]
    return rows + [
        (name, key_state(name, None)[0], known.default or "-") for name, known in KNOWN.items() if name not in own
    ]


def _row(name: str, info: ModelInfo, origin: str) -> tuple[str, ...]:
    price = info.price
    cached = price.cached_input if price is not None else None
    return (
        one_line(name, 60),
        count_text(info.window) if info.window else "?",
        count_text(info.max_output) if info.max_output else "?",
        f"{price.input:g}" if price is not None else "unknown",
        f"{price.output:g}" if price is not None else "unknown",
        f"{cached:g}" if cached is not None else "-",
        f"{origin}{', dearer above ' + count_text(info.long_prompt.above) if info.long_prompt else ''}",
    )


def _print_json(chosen: str, own: dict[str, ProviderConfig], rows: list[tuple[str, ModelInfo, str]]) -> None:
    print(json.dumps({"model": chosen, "offline": chosen == OFFLINE}))
    for name in [*own, *(name for name in KNOWN if name not in own)]:
        variable = key_variable(name, own.get(name))
        is_set = bool(variable and os.environ.get(variable))
        print(json.dumps({"provider": name, "key_variable": variable, "key_is_set": is_set}))
    for name, info, origin in rows:
        price = info.price
        print(
            json.dumps(
                {
                    "name": name,
                    "from": origin,
                    "window": info.window,
                    "max_output": info.max_output,
                    "input": price.input if price is not None else None,
                    "output": price.output if price is not None else None,
                    "cached_input": price.cached_input if price is not None else None,
                }
            )
        )
