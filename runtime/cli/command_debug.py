"""`elenco debug FAMILY`: JSON lines in, JSON lines out, one module a family."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TextIO, TypeAlias

from runtime.errors import UsageError, did_you_mean

from .parser import DEBUG

Family: TypeAlias = Callable[[Iterable[str], TextIO], int]


def run(arguments: argparse.Namespace) -> int:
    """Answer the lines of standard input. Raises UsageError for a family that is not there."""
    family = _family(arguments.family)
    lines = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape", newline="\n")
    return family(lines, sys.stdout)


def _family(name: str) -> Family:
    there = [known for known, module in DEBUG.items() if find_spec(f"{__package__}.debug_{module}") is not None]
    if name not in there:
        raise UsageError(f"unknown family '{name}'{did_you_mean(name, there)}; there is: {', '.join(there)}")
    found: Family = getattr(importlib.import_module(f".debug_{DEBUG[name]}", __package__), name)
    return found
