"""`elenco --version`."""

from __future__ import annotations

import argparse
import platform

from .version import VERSION


def run(arguments: argparse.Namespace) -> int:
    """Print the version and that of Python."""
    del arguments
    print(f"elenco {VERSION}   Python {platform.python_version()}")
    return 0
