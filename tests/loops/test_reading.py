"""Which shell calls only look."""

import pytest

from runtime.limits.loops.reading import only_reads


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "sed -n '1,40p' a.py",
        "cat a.py | head -20",
        "git log --oneline -5",
        "grep -rn 'eval(' . 2>/dev/null || true",
        "ls *.toml 2>/dev/null | wc -l",
        "git diff --stat; git status",
    ],
)
def test_looking_is_recognised(command: str) -> None:
    """A line made of nothing but commands that look is judged by what it shows."""
    assert only_reads({"command": command})
    assert only_reads({"cmd": command, "cwd": "/srv"})


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/a/b/' a.py",
        "cat a > b",
        "ls; make",
        "find . -name x -delete",
        "git commit -m x",
        "cd /srv && ls",
        "ls $(rm x)",
        "ls `rm x`",
        "ls & rm x",
        "cat x | xargs rm",
        "git",
        "",
    ],
)
def test_anything_else_may_change_something(command: str) -> None:
    """Redirections, substitutions, unknown commands and changing flags are no looks."""
    assert not only_reads({"command": command})


def test_other_arguments_are_no_command() -> None:
    """Only a text under `command` or `cmd` is a command line."""
    assert not only_reads({"path": "ls"})
    assert not only_reads({"command": ["ls"]})
