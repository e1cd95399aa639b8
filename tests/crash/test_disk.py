"""What a torn log, a full or read-only disk, a second process and a clock that goes backwards do to a run."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

import runtime
from runtime.app import Resumption
from runtime.events import Record, RunResumed, ToolFinished
from runtime.journal import RunFolder, RunReader, State, create_run, load, open_journal, open_state
from runtime.journal.folder import run_ids
from runtime.journal.memory import MemoryJournal
from runtime.journal.read import runs
from runtime.journal.replay import replay
from runtime.journal.visit import visit
from runtime.report import Report
from runtime.resume import limits_after

FULL = bool(os.environ.get("ELENCO_FULL"))
AGENT = "---\nname: lead\ndescription: Leads.\ntools: [write_file]\n---\nLead.\n"
BODY = "a line of text that takes some room; " * 400
SCRIPT = "lead:\n" + "".join(
    f"  - calls: [{{name: write_file, arguments: {{path: f{number}.txt, content: '{number} {BODY}'}}}}]\n"
    "    usage: {input: 10, output: 10}\n"
    for number in range(14)
)


def records(folder: RunFolder) -> list[Record]:
    with RunReader(folder) as reader:
        return list(reader.records())


async def go_on(play: Any, folder: RunFolder, clock: Callable[[], float] | None = None) -> Report | None:
    state = await trio.to_thread.run_sync(load, folder)
    async with open_journal(folder, clock=clock) if clock is not None else open_journal(folder) as journal:
        report: Report | None = await play._play(journal, Resumption(state, limits_after(state, {})))
    return report


# --- the log -----------------------------------------------------------------------------------------------------


async def test_a_log_cut_anywhere_is_a_run_that_can_go_on(play: Any, tmp_path: Path) -> None:
    """The last commit of a run, cut at any byte, is there or not; either way the run is resumed to the same end."""
    journal = MemoryJournal()
    expected = await play.begin(journal)
    state = open_state(str(tmp_path / "state"))
    chance = random.Random(2)
    for until in chance.sample(range(20, journal.last_seq), 12 if FULL else 3):
        original = create_run(state, chance)
        with visit(original) as visitor:
            visitor.write(journal.records[: until - 5])
            before = (original.path / "journal.db-wal").stat().st_size
            visitor.write(journal.records[until - 5 : until])
            after = (original.path / "journal.db-wal").stat().st_size
            for cut in sorted({before, after - 1, after, *chance.sample(range(before, after), 40 if FULL else 3)}):
                torn = RunFolder(state.runs / "torn")
                shutil.copytree(original.path, torn.path)
                os.truncate(torn.path / "journal.db-wal", cut)
                (torn.path / "journal.db-shm").unlink(missing_ok=True)
                assert len(records(torn)) == (until if cut == after else until - 5)
                play.world.done.clear()
                report = await go_on(play, torn)
                assert report is not None
                assert (report.status, report.text) == (expected.status, expected.text)
                shutil.rmtree(torn.path)


# --- the disk ----------------------------------------------------------------------------------------------------


class Shell:
    """Commands in processes of their own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / "ws" / "agents").mkdir(parents=True)
        (base / "ws" / "agents" / "lead.md").write_text(AGENT)
        (base / "script.yaml").write_text(f"{SCRIPT}  - done\n")
        (base / "rt").mkdir(mode=0o700)

    @property
    def state(self) -> State:
        return State(self.base / "state")

    def start(self, *words: str, before: tuple[str, ...] = (), prelude: str = "") -> subprocess.Popen[str]:
        program = f"import sys\n{prelude}\nfrom runtime.cli import main\nsys.exit(main(sys.argv[1:]))"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base),
            "XDG_RUNTIME_DIR": str(self.base / "rt"),
            "PYTHONPATH": str(Path(runtime.__path__[0]).parent),
        }
        return subprocess.Popen(
            [*before, sys.executable, "-c", program, *words, "--state", str(self.base / "state")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.base / "ws",
            env=environment,
        )

    def run(self, *words: str, **how: Any) -> tuple[int, str, str]:
        with self.start(*words, **how) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def task(self, **how: Any) -> tuple[int, str, str]:
        model = f"scripted/{self.base / 'script.yaml'}"
        return self.run("run", "lead", "write", "--model", model, "--yes", "--quiet", **how)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "shell")


def test_a_full_disk_stops_the_run_and_loses_nothing(shell: Shell) -> None:
    """When no more can be written the run ends with an error that says so; with room again it goes on to its end."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    code, out, err = shell.task(prelude=limit)
    assert (1, "") == (code, out)
    assert "cannot write the journal" in err
    assert "are safe" in err
    assert "Traceback" not in err
    (run,) = run_ids(shell.state)
    folder = shell.state.run(run)
    before = records(folder)
    assert "interrupted" == runs(shell.state)[0].status
    code, out, _ = shell.run("resume", run, "--quiet")
    assert (0, "done\n") == (code, out)
    after = records(folder)
    assert before == after[: len(before)]
    finished = [record.event.call_id for record in after if isinstance(record.event, ToolFinished)]
    assert 14 == len(finished) == len(set(finished))


def test_a_state_folder_that_cannot_be_written_is_told_at_once(shell: Shell) -> None:
    """With a read-only state folder nothing is started, and one line says which folder and what to do."""
    assert 0 == shell.task()[0]
    state = shell.base / "state"
    script = f'mount --bind "{state}" "{state}" && mount -o remount,ro,bind "{state}" && exec "$@"'
    read_only: tuple[str, ...] = ("unshare", "-m", "sh", "-c", script, "sh")
    if os.getuid():
        state.chmod(0o500)
        (state / "runs").chmod(0o500)
        read_only = ()
    elif subprocess.run([*read_only, "true"], check=False, capture_output=True).returncode:
        pytest.skip("nothing here can be mounted read-only")
    for words in (("run", "lead", "x", "--model", "offline/extract"), ("resume", run_ids(shell.state)[0])):
        code, out, err = shell.run(*words, before=read_only)
        assert (2, "") == (code, out), err
        assert err.splitlines()[-1].startswith(f"error: cannot use the state folder {state}")


WRITE_NOTHING = "mount -o remount,ro ."
FILL = "dd if=/dev/zero of=fill bs=1k 2>/dev/null; rm -f index.db-shm runs/*/journal.db-shm"


def test_where_nothing_can_be_written_runs_can_still_be_read(shell: Shell) -> None:
    """On a full disk and in a read-only folder an ended run and one whose process was killed are listed and shown."""
    killed = "import os, runtime.undo; from runtime.journal.database import Database; "
    killed += "write = Database.commit; Database.commit = lambda self, rows: write(self, rows) if self.last_seq() < 9 "
    killed += "else os.kill(os.getpid(), 9)"
    assert 0 == shell.task()[0]
    assert -9 == shell.task(prelude=killed)[0]
    ended, broken = (each.row.id for each in reversed(runs(shell.state)))
    assert 0 == shell.run("rename", ended, "first")[0]
    expected = [len(records(shell.state.run(run))) for run in (ended, broken)]
    kept = shell.base / "kept"
    shell.state.path.rename(kept)
    shell.state.path.mkdir()
    for spoil, refusal, ends_with in ((WRITE_NOTHING, "cannot use the state folder", 2), (FILL, "no space is left", 1)):
        script = (
            f'mount -t tmpfs -o size=4m none "{shell.state.path}" && cp -a "{kept}/." "{shell.state.path}" && '
            f'(cd "{shell.state.path}" && {{ {spoil}; true; }}) && exec "$@"'
        )
        place = ("unshare", "-m", "sh", "-c", script, "sh")
        if subprocess.run([*place, "true"], check=False, capture_output=True).returncode:
            pytest.skip("nothing here can be mounted")
        code, out, err = shell.run("runs", before=place)
        assert (0, True, True) == (code, "first" in out, "interrupted" in out), err
        assert "warning" not in err
        for run, count in zip(("first", broken), expected, strict=True):
            code, out, err = shell.run("show", run, "--format", "jsonl", before=place)
            assert (0, count, "") == (code, len(out.splitlines()), err)
        assert 0 == shell.run("tail", broken, before=place)[0]
        code, out, err = shell.run("resume", broken, before=place)
        assert (ends_with, "", True) == (code, out, refusal in err), err


def test_a_run_refused_for_want_of_space_leaves_nothing(shell: Shell) -> None:
    """On a full disk a new run is refused in words, wherever its beginning failed, and no trace of it is listed."""
    assert 0 == shell.task()[0]
    (run,) = run_ids(shell.state)
    kept = shell.base / "kept"
    shell.state.path.rename(kept)
    shell.state.path.mkdir()
    lister = shell.base / "lister.py"
    lister.write_text(f"from runtime.cli import main\nmain(['runs', '--state', {str(shell.state.path)!r}])\n")
    for free in (0, 12, 60):
        script = (
            f'mount -t tmpfs -o size=4m none "{shell.state.path}" && cp -a "{kept}/." "{shell.state.path}" || exit 99; '
            f'(cd "{shell.state.path}"; dd if=/dev/zero of=fill bs=1k 2>/dev/null; truncate -s -{free}k fill); '
            f'"$@"; code=$?; ls -A "{shell.state.runs}"; {sys.executable} "{lister}"; exit $code'
        )
        code, out, err = shell.task(before=("unshare", "-m", "sh", "-c", script, "sh"))
        if code == 99 or "unshare" in err:
            pytest.skip("nothing here can be mounted")
        assert (1, True) == (code, "no space is left" in err), (free, err)
        assert [run, "RUN", run] == [line.split()[0] for line in out.splitlines()], (free, out)
        assert "warning" not in err


def test_where_not_a_byte_can_be_written_a_run_is_refused_in_words_and_one_can_be_deleted(shell: Shell) -> None:
    """With no byte to write, a new run is refused by a line that names its journal, and an old one makes room."""
    assert 0 == shell.task()[0]
    (run,) = run_ids(shell.state)
    os.truncate(shell.state.run(run).lock, 0)
    nothing = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    code, _, err = shell.task(prelude=nothing)
    assert (1, True) == (code, f"cannot open the journal {shell.state.runs}" in err), err
    code, _, err = shell.run("delete", run, prelude=nothing)
    assert 0 == code, err
    assert run not in run_ids(shell.state)


def test_of_two_that_resume_the_same_run_one_does(shell: Shell) -> None:
    """Two processes resume one run at the same moment: one brings it to its end, the other says why it does not."""
    shell.task(prelude="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))")
    (run,) = run_ids(shell.state)
    both = [shell.start("resume", run, "--quiet") for _ in range(2)]
    said: list[tuple[int, str]] = []
    for process in both:
        with process:
            _, err = process.communicate(timeout=60)
            said.append((process.returncode, err))
    said.sort()
    assert 0 == said[0][0]
    assert said[1][0] in (1, 2), said
    assert any(words in said[1][1] for words in ("live in another", "owned by", "went on", "gone on", "is completed"))
    events = [record.event for record in records(shell.state.run(run))]
    assert 1 == sum(isinstance(event, RunResumed) for event in events)


# --- the clock ---------------------------------------------------------------------------------------------------


async def test_a_clock_that_goes_backwards_does_no_harm(play: Any, tmp_path: Path) -> None:
    """Times on record may fall; order comes from the events' numbers, and resume goes by its own clock."""
    state = open_state(str(tmp_path / "state"))
    folder = create_run(state, random.Random(1))
    falling = (1e9 - 3600 * step for step in itertools.count())
    async with open_journal(folder, clock=lambda: next(falling)) as journal:
        expected = await play.begin(journal)
    whole = records(folder)
    assert whole[0].at > whole[-1].at
    assert expected is not None
    for until in range(5, len(whole), 9):
        torn = RunFolder(state.runs / "torn")
        torn.path.mkdir()
        with visit(torn) as visitor:
            visitor.write(whole[:until])
        play.world.done.clear()
        report = await go_on(play, torn, lambda: next(falling))
        assert report is not None
        assert (report.status, report.text) == (expected.status, expected.text)
        assert all(actor.elapsed >= 0 for actor in replay(records(torn)).actors.values())
        assert {"completed"} == {each.status for each in runs(state)}
        shutil.rmtree(torn.path)
