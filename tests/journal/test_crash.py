"""What a killed process leaves: always a clean prefix, never half an event, and a lock that is free."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from runtime.errors import JournalError
from runtime.events import ToolFinished, Warned
from runtime.journal import RunFolder, RunReader, create_run, follow, open_journal, open_state
from runtime.journal.database import LOG_AHEAD, Database
from runtime.journal.lock import is_owned

WRITER = """
import sys, trio
from pathlib import Path
from runtime.events import ToolFinished, ToolStarted
from runtime.journal import RunFolder, open_journal

async def agent(journal, name):
    number = journal.last_seq
    while True:
        number += 1
        call = f"{name}-{number}"
        journal.append(ToolStarted(actor=name, call_id=call, name="shell"))
        await journal.barrier()
        big = "x" * 70_000 if number % 7 == 0 else "x" * (number % 300)
        journal.append(ToolFinished(actor=name, call_id=call, name="shell", result=big, is_error=False, seconds=0.0))
        await journal.barrier()
        print(call, flush=True)

async def main():
    async with open_journal(RunFolder(Path(sys.argv[1]))) as journal, trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(agent, journal, f"a{number}")

trio.run(main)
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run(open_state(str(tmp_path / "state")), random.Random(2))


def check(folder: RunFolder) -> list[ToolFinished]:
    with sqlite3.connect(folder.journal) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with RunReader(folder) as reader:
        records = list(reader.records())
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    return [record.event for record in records if isinstance(record.event, ToolFinished)]


async def test_a_killed_writer_leaves_all_it_had_acknowledged(folder: RunFolder) -> None:
    """Killed again and again while three agents write: no gap, nothing acknowledged lost, nothing finished twice."""
    acknowledged: set[str] = set()
    chance = random.Random(3)
    for _ in range(8):
        process = await trio.lowlevel.open_process(
            [sys.executable, "-c", WRITER, str(folder.path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        with trio.fail_after(20):
            received = await process.stdout.receive_some()
            with trio.move_on_after(chance.random() * 0.15):
                while True:
                    received += await process.stdout.receive_some()
            process.send_signal(signal.SIGKILL)
            while data := await process.stdout.receive_some():
                received += data
            await process.wait()
        await process.stdout.aclose()
        lines = received.decode().split("\n")
        assert lines[0]
        acknowledged.update(lines[:-1])
        assert not is_owned(folder.lock)
        calls = [event.call_id for event in check(folder)]
        assert len(calls) == len(set(calls))
        assert acknowledged <= set(calls)


def test_a_log_cut_anywhere_gives_a_clean_prefix(folder: RunFolder, tmp_path: Path) -> None:
    """The write-ahead log cut at every byte of the last commit: the commit is there whole or not at all."""
    with sqlite3.connect(folder.journal) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    connection.close()
    database = Database.for_writer(folder.journal, 0.0)
    for seq in range(1, 4):
        database.commit([(seq, 0.0, "root", "warning", None, f'{{"text":"{seq}"}}', None)])
    wal = folder.path / "journal.db-wal"
    before = wal.stat().st_size
    database.commit([(seq, 0.0, "root", "warning", None, f'{{"text":"{seq}"}}', None) for seq in (4, 5)])
    torn = RunFolder(tmp_path / "torn")
    torn.path.mkdir()
    shutil.copy(folder.journal, torn.journal)
    torn_wal = torn.path / "journal.db-wal"
    shutil.copy(wal, torn_wal)
    after = wal.stat().st_size
    database.close()
    assert after > before
    for cut in range(after, before - 1, -1):
        os.truncate(torn_wal, cut)
        (torn.path / "journal.db-shm").unlink(missing_ok=True)
        with RunReader(torn) as reader:
            found = [record.event for record in reader.records()]
        assert found == [Warned(actor="root", text=str(seq)) for seq in range(1, 6 if cut == after else 4)]


def test_a_log_written_ahead_and_torn_anywhere_gives_a_clean_prefix(folder: RunFolder, tmp_path: Path) -> None:
    """Zeros stand after the log, as a long run has them: what was written of the last commit counts whole or not."""
    database = Database.for_writer(folder.journal, 0.0)
    database.commit([(1, 0.0, "root", "warning", None, '{"text":"1"}', None)])
    wal = folder.path / "journal.db-wal"
    before = wal.stat().st_size
    while database.lengthen_log():
        assert wal.stat().st_size > before
    assert LOG_AHEAD <= wal.stat().st_size < 2 * LOG_AHEAD
    database.commit([(2, 0.0, "root", "warning", None, '{"text":"2"}', None)])
    earlier, main = wal.read_bytes(), folder.journal.read_bytes()
    database.commit([(3, 0.0, "root", "warning", None, '{"text":"3"}', None)])
    later = wal.read_bytes()
    database.close()
    assert len(earlier) == len(later)
    changed = [at for at, (old, new) in enumerate(zip(earlier, later, strict=True)) if old != new]
    for cut in (*range(changed[0], changed[-1] + 1, 13), changed[-1] + 1):
        torn = RunFolder(tmp_path / f"torn-{cut}")
        torn.path.mkdir()
        torn.journal.write_bytes(main)
        (torn.path / "journal.db-wal").write_bytes(later[:cut] + earlier[cut:])
        again = Database.for_writer(torn.journal, 0.0)
        assert again.last_seq() == (3 if cut > changed[-1] else 2)
        again.commit([(again.last_seq() + 1, 0.0, "root", "warning", None, '{"text":"new"}', None)])
        assert [record.event for record in again.records(1, 9)][-1] == Warned(actor="root", text="new")
        again.close()
        shutil.rmtree(torn.path)


def test_a_log_is_begun_again_before_it_is_longer_than_what_was_written_ahead(folder: RunFolder) -> None:
    """Thousands of commits of a run write over the same log, however much they hold."""
    database = Database.for_writer(folder.journal, 0.0)
    chance = random.Random(5)
    for seq in range(1, 2001):
        database.commit([(seq, 0.0, "root", "warning", None, f'{{"text":"{"x" * chance.randrange(9000)}"}}', None)])
        if seq > 16:
            database.lengthen_log()
    assert LOG_AHEAD <= (folder.path / "journal.db-wal").stat().st_size < 2 * LOG_AHEAD
    database.close()
    assert not (folder.path / "journal.db-wal").exists()
    check(folder)
    with RunReader(folder) as reader:
        assert reader.last_seq() == 2000


def test_garbage_after_the_log_is_passed_over(folder: RunFolder, tmp_path: Path) -> None:
    """Zeros or noise where the last commit was torn: what came before is read, and the next owner goes on from it."""
    database = Database.for_writer(folder.journal, 0.0)
    database.commit([(1, 0.0, "root", "warning", None, '{"text":"1"}', None)])
    wal = folder.path / "journal.db-wal"
    before = wal.stat().st_size
    database.commit([(2, 0.0, "root", "warning", None, '{"text":"2"}', None)])
    log, main = wal.read_bytes(), folder.journal.read_bytes()
    database.close()
    chance = random.Random(4)
    for cut in range(before + 1, len(log), 403):
        for tail in (bytes(len(log) - cut), chance.randbytes(len(log) - cut)):
            torn = RunFolder(tmp_path / "torn")
            torn.path.mkdir()
            torn.journal.write_bytes(main)
            (torn.path / "journal.db-wal").write_bytes(log[:cut] + tail)
            again = Database.for_writer(torn.journal, 0.0)
            assert again.last_seq() == 1
            again.commit([(2, 0.0, "root", "warning", None, '{"text":"new"}', None)])
            assert [record.event for record in again.records(1, 9)][1:] == [Warned(actor="root", text="new")]
            again.close()
            shutil.rmtree(torn.path)


async def test_damage_is_told_and_never_guessed(folder: RunFolder) -> None:
    """A database damaged in the middle, or a missing event, is an error that names the file."""
    async with open_journal(folder) as journal:
        for number in range(400):
            journal.append(Warned(text=f"{number}" * 50))
    whole = folder.journal.read_bytes()
    page = 4096
    folder.journal.write_bytes(whole[: 3 * page] + os.urandom(4 * page) + whole[7 * page :])
    with pytest.raises(JournalError, match=r"cannot read the journal .*journal\.db"), RunReader(folder) as reader:
        list(reader.records())
    folder.journal.write_bytes(b"this is no database at all " * 400)
    with pytest.raises(JournalError, match="not a database"), RunReader(folder) as reader:
        list(reader.records())
    with pytest.raises(JournalError, match="not a database"):
        async with open_journal(folder):
            pass
    folder.journal.write_bytes(whole)
    with sqlite3.connect(folder.journal) as connection:
        connection.execute("DELETE FROM events WHERE seq = 7")
    connection.close()
    with pytest.raises(JournalError, match="event 7 is missing"), RunReader(folder) as reader:
        list(reader.records())


async def test_a_run_is_followed_from_another_process(folder: RunFolder) -> None:
    """A reader in another process sees every event once and in order while the owner writes, and ends with it."""
    script = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from runtime.journal import RunFolder, follow\n"
        "async def main():\n"
        "    async with follow(RunFolder(Path(sys.argv[1]))) as records:\n"
        "        async for record in records: print(record.seq, flush=True)\n"
        "trio.run(main)\n"
    )
    async with open_journal(folder) as journal:
        for _ in range(600):
            journal.append(Warned(text="x"))
        await journal.barrier()
        process = await trio.lowlevel.open_process(
            [sys.executable, "-c", script, str(folder.path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        output = await process.stdout.receive_some()
        for _ in range(50):
            for _ in range(10):
                journal.append(Warned(text="y"))
            await journal.barrier()
    with trio.fail_after(10):
        while data := await process.stdout.receive_some():
            output += data
        await process.wait()
    await process.stdout.aclose()
    assert [int(line) for line in output.split()] == list(range(1, 1101))


async def test_a_follower_of_a_dead_run_ends(folder: RunFolder) -> None:
    """Following a run that nobody owns gives what there is, from the event asked for, and ends."""
    async with open_journal(folder) as journal:
        for _ in range(5):
            journal.append(Warned(text="x"))
    async with follow(folder, 4) as records:
        assert [record.seq async for record in records] == [4, 5]
    async with follow(RunFolder(folder.path.parent / "none")) as records:
        assert [record async for record in records] == []
