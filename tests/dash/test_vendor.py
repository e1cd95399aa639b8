"""What is vendored is what its packages hold: every file by its hash, none without one, each with its licence."""

from __future__ import annotations

import hashlib

from runtime.dash.shell import FOLDER

VENDOR = FOLDER / "vendor"


def test_every_vendored_file_has_the_hash_that_stands_beside_its_name() -> None:
    """Every vendored file has the hash that stands beside its name, and each package its licence."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in (VENDOR / "VENDOR.md").read_text().splitlines()
        if line.startswith("|") and line.count("|") == 7
    ][2:]
    listed = {row[4]: row[5] for row in rows}
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "VENDOR.md"
    }
    assert listed == there
    assert {row[0] for row in rows} == {row[0] for row in rows if row[3] == "LICENSE"}
