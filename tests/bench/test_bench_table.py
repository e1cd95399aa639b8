"""The table of the benches: medians, ratios and targets; a missed target is a word in it, never an error."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.__main__ import served
from bench.table import Line, Target, lines, text
from bench.workloads import WORKLOADS, measure


def test_a_figure_is_the_median_beside_the_references_own() -> None:
    """Each line has the median of all repeats, their range, the reference's median, and the median of the ratios."""
    ours = [{"cpu_ms": 1.0}, {"cpu_ms": 9.0}, {"cpu_ms": 1.5}]
    others = [{"cpu_ms": 1.0}, {"cpu_ms": 6.0}, {"cpu_ms": 0.5}]
    [line] = lines({("elenco", "W1"): ours, ("raw", "W1"): others}, "raw")
    assert (line.value, line.range, line.reference, line.ratio) == (1.5, (1.0, 9.0), 1.0, 1.5)
    assert line.kept


def test_a_target_is_of_the_ratio_or_of_the_figure() -> None:
    """A target bounds the ratio or the figure itself; without a reference a ratio is neither kept nor missed."""
    bound = Target("W1", "cpu_ms", "CPU", 1.5, ratio=True)
    assert [Line(bound, 3.0, (3.0, 3.0), 2.0, ratio).kept for ratio in (1.5, 1.55)] == [True, False]
    assert Line(bound, 3.0, (3.0, 3.0), None, None).kept is None
    assert Line(Target("W3", "wall", "wall", 1.06), 1.2, (1.2, 1.2), 1.2, 1.0).kept is False


def test_only_what_was_measured_is_shown() -> None:
    """A workload that was left out has no line."""
    shown = text(lines({("elenco", "W3"): [{"wall": 1.031}]}, "raw"), "raw")
    head, rule, *rows = shown.splitlines()
    assert "raw" in head
    assert set(rule) <= set("|-:")
    assert len(rows) == 1
    assert "1.03" in rows[0]
    assert "<= 1.06" in rows[0]
    assert len({len(row) for row in (head, rule, *rows)}) == 1


def test_the_program_prints_the_table() -> None:
    """`python -m bench` measures what it is told to, and prints one table on standard output."""
    command = [sys.executable, "-m", "bench", "--repeats", "1", "--only", "imports"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert "import runtime" in done.stdout
    assert "repeat 1: imports" in done.stderr


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """The fake model server, in a process of its own."""
    with served() as url:
        yield url


@pytest.mark.parametrize("subject", ["elenco", "raw-h11", "raw-httpx"])
async def test_every_subject_does_the_workloads(
    subject: str, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every subject goes through every workload, cut short here."""
    for name, value in {
        "LOOPS": 1,
        "ROUNDS": 1,
        "AGENTS": 3,
        "DELTAS": 50,
        "PACED": 5,
        "CROWD_MS": 5,
        "ROUND_MS": 5,
    }.items():
        monkeypatch.setattr(f"bench.workloads.{name}", value)
    for workload in WORKLOADS:
        folder = tmp_path / workload
        folder.mkdir()
        assert await measure(subject, workload, url, folder)
