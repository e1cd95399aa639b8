"""Where a workspace's skills are, and the cast and the skills that ship: in the wheel, or beside the packages."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

SKILL_PLACES = ("skills", ".agents/skills", ".claude/skills", ".opencode/skills", ".opencode/skill")
"""Where a workspace has skills, the first place wins."""


def folder(kind: Literal["agents", "skills"]) -> Path:
    """The shipped folder of that kind."""
    package = Path(__file__).parent
    in_wheel = package / "shipped" / kind
    return in_wheel if in_wheel.is_dir() else package.parent / kind
