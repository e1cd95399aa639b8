"""The README tells the truth: its commands, links, citations and code are tried."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent
README = (TOP / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def test_the_two_first_commands_are_one_line_each() -> None:
    """The two first commands are one line each: make the environment, install, and run or test."""
    first, second = (block.strip() for block in blocks("sh")[:2])
    assert "\n" not in first + second
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/elenco run coordinator ")
    assert second.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && ")
    assert second.endswith("pytest")


def test_every_link_leads_to_a_file() -> None:
    """Every relative link leads to a file of the repository."""
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [] == [link for link in links if not (TOP / link).exists()]


def test_what_the_first_command_prints_is_cited_rightly() -> None:
    """The quotes shown stand at the lines they are cited from."""
    lines = README.split("\n")
    cited = re.findall(r'^  "(\w[\w ]*) \|.*\[README\.md:(\d+)\]$', README, re.MULTILINE)
    assert ["Ends", "Never overspends"] == [promise for promise, _ in cited]
    for promise, line in cited:
        assert lines[int(line) - 1].startswith(f"| {promise} |")


def test_every_promise_names_a_test_that_is_there() -> None:
    """Every promise names tests or measurements that are there."""
    rows = re.findall(r"^\| [A-Z].*\| (.*) \|$", README, re.MULTILINE)
    assert 8 == len(rows)
    for shown in rows:
        paths = re.findall(r"\b(?:tests|bench|docs)/[\w./-]*", shown)
        assert paths
        assert [] == [path for path in paths if not (TOP / path).exists()]


def test_the_ten_lines_of_library_use_work(tmp_path: Path) -> None:
    """The library example runs as it stands and prints a report."""
    (tmp_path / "notes.md").write_text("# Notes\n\nWhat is here: a note about the harbour.\n", encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(blocks("python")[0], encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "ELENCO_STATE": str(tmp_path / "state"), "PYTHONPATH": str(TOP)}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert "run.finished" in done.stdout
