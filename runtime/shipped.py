"""Where the cast and the skills that ship are: in the wheel, or beside the packages in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def folder(kind: Literal["agents", "skills"]) -> Path:
    """The shipped folder of that kind."""
    package = Path(__file__).parent
    in_wheel = package / "shipped" / kind
    return in_wheel if in_wheel.is_dir() else package.parent / kind
