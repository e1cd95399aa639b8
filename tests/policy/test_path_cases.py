"""The collection of path cases, each in a fresh tree, through the command that users ask."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.debug_path import path as debug_path
from runtime.policy import beneath

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "cases" / "paths" / "cases.jsonl").read_text("utf-8").splitlines()
]
RACES = 150


@pytest.fixture(params=["openat2", "walk"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to resolve a path, the first only where the kernel has it."""
    if request.param == "openat2" and not beneath.has_openat2():
        pytest.skip("this kernel has no openat2")
    if request.param == "walk":
        monkeypatch.setattr("runtime.policy.paths.has_openat2", lambda: False)
    return str(request.param)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_of_the_collection(case: dict[str, Any], method: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Every case gets an accepted verdict, and what must hold afterwards holds."""
    build(case, tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = contents(case, tmp_path)
    answers = list(ask_again_and_again(case, tmp_path))
    for answer in answers:
        assert answer["verdict"] in case.get("accept", [case["expected"]]), answer
        assert answer["why"]
        for must in case["must"]:
            check(must, answer.get("result", "") + answer["why"] * ("result_contains" not in must), tmp_path, before)


def build(case: dict[str, Any], root: Path) -> None:
    for step in case["setup"]:
        at = root / step["path"]
        match step["op"]:
            case "mkdir":
                at.mkdir(exist_ok=True, parents=True)
            case "file":
                at.parent.mkdir(exist_ok=True, parents=True)
                at.write_text(step["content"], "utf-8")
            case "symlink":
                at.symlink_to(filled(step["target"], case, root))
            case "hardlink":
                os.link(root / step["to"], at)
            case "fifo":
                os.mkfifo(at)
            case "socket":
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind(str(at))
            case other:
                raise AssertionError(other)


def filled(text: str, case: dict[str, Any], root: Path) -> str:
    return text.replace("{WS}", str(root / case["workspace"])).replace("{ROOT}", str(root))


def contents(case: dict[str, Any], root: Path) -> dict[str, bytes]:
    return {m["unchanged"]: (root / m["unchanged"]).read_bytes() for m in case["must"] if "unchanged" in m}


def check(must: dict[str, Any], said: str, root: Path, before: dict[str, bytes]) -> None:
    match must:
        case {"unchanged": name}:
            assert before[name] == (root / name).read_bytes()
        case {"absent": name}:
            assert not os.path.lexists(root / name)
        case {"exists": name}:
            assert os.path.lexists(root / name)
        case {"result_contains": text}:
            assert text in said
        case {"result_not_contains": text}:
            assert text not in said
        case {"max_seconds": _}:
            pass  # A hang shows as a hang.
        case other:
            raise AssertionError(other)


def ask_again_and_again(case: dict[str, Any], root: Path) -> Iterator[dict[str, Any]]:
    line: dict[str, Any] = {key: case[key] for key in ("id", "op", "content") if key in case}
    line |= {"workspace": str(root / case["workspace"]), "path": filled(case["path"], case, root)}
    if "race" not in case:
        yield ask(line)
        return
    swap = RACERS[case["id"]](root)
    stop = threading.Event()

    def race() -> None:
        while not stop.is_set():
            swap()

    racer = threading.Thread(target=race)
    racer.start()
    try:
        for _ in range(RACES):
            yield ask(line)
    finally:
        stop.set()
        racer.join()


def ask(line: dict[str, Any]) -> dict[str, Any]:
    out = io.StringIO()
    assert debug_path([json.dumps(line)], out) == 0
    answer: dict[str, Any] = json.loads(out.getvalue())
    assert answer["id"] == line["id"]
    return answer


def folder_swapped(root: Path) -> Callable[[], None]:
    folder, real = root / "ws" / "d", root / "ws" / "d_real"

    def swap() -> None:
        with suppress(OSError):  # The write may have made a folder of its own in the gap.
            folder.rename(real)
            folder.symlink_to(root / "out")
            folder.unlink()
            real.rename(folder)
            return
        if real.exists():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                real.rename(folder)

    return swap


def leaf_swapped(root: Path) -> Callable[[], None]:
    leaf, spare = root / "ws" / "l.txt", root / "ws" / "spare"

    def swap() -> None:
        spare.symlink_to(root / "out" / "new.txt")
        spare.replace(leaf)
        shutil.copyfile(root / "ws" / "a.txt", spare)
        spare.replace(leaf)

    return swap


RACERS = {"path-race-01": folder_swapped, "path-race-03": leaf_swapped}
