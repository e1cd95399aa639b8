"""The wheel in an environment of its own, as a user installs it; slow, so only where everything is tested."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not (os.environ.get("ELENCO_FULL") or os.environ.get("CI")), reason="builds a wheel: set ELENCO_FULL=1"
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with nothing but the wheel and what it needs."""
    base = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(base / "dist"), str(ROOT)], check=True, timeout=300)
    (wheel,) = (base / "dist").glob("elenco-*.whl")
    venv.create(base / "env", with_pip=True)
    python = base / "env" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", str(wheel)], check=True, timeout=600
    )
    return python.parent


def test_wheel_runs_in_a_folder_without_agents(installed: Path, tmp_path: Path) -> None:
    """Installed from the wheel, in an empty folder with one file: the shipped cast answers from that file."""
    (tmp_path / "notes.md").write_text("Words are separated by blanks.\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "ELENCO_STATE": str(tmp_path / "state")}

    def elenco(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [installed / "elenco", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    assert "coordinator > researcher, reviewer, writer" in elenco().stdout
    assert "shipped:agents/coordinator.md" in elenco("agents").stdout
    done = elenco("run", "How are words separated?")
    assert 0 == done.returncode, done.stderr
    assert "[notes.md:1]" in done.stdout
    assert "elenco 0." in elenco("--version").stdout


def test_environment_is_small(installed: Path) -> None:
    """The whole environment has at most 100 MB, pip not counted."""
    total = sum(
        path.stat().st_size
        for path in installed.parent.rglob("*")
        if path.is_file() and not path.is_symlink() and "site-packages/pip" not in str(path)
    )
    assert total <= 100_000_000, f"{total / 1e6:.0f} MB"
