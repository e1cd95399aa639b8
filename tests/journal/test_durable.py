"""The journal on disk: one commit for all who wait, one failure stops everything, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from runtime.errors import JournalError
from runtime.events import ApprovalDecided, Record, ToolFinished, Unknown, Warned
from runtime.journal import AlreadyRecorded, Blobs, Journal, RunFolder, RunReader, create_run, open_journal, open_state
from runtime.journal.database import SCHEMA, Database
from runtime.journal.durable import PATIENCE


def finished(call_id: str, result: str = "ok") -> ToolFinished:
    return ToolFinished(actor="root", call_id=call_id, name="shell", result=result, is_error=False, seconds=0.1)


def records(folder: RunFolder) -> list[Record]:
    database = Database.for_reader(folder.journal)
    try:
        return database.records(1, 1_000_000)
    finally:
        database.close()


def descriptors() -> set[str]:
    return {os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return create_run(open_state(str(tmp_path / "state")), random.Random(1))


async def test_what_was_awaited_is_on_disk(folder: RunFolder) -> None:
    """After a barrier another connection sees the events, numbered from one."""
    async with open_journal(folder) as journal:
        assert [journal.append(Warned(text=str(number))) for number in range(3)] == [1, 2, 3]
        assert journal.durable_seq == 0
        await journal.barrier()
        assert journal.durable_seq == 3
        assert [record.event for record in records(folder)] == [Warned(text=str(number)) for number in range(3)]


async def test_waiters_share_commits(folder: RunFolder) -> None:
    """Two hundred tasks that wait at once need a handful of commits, and each finds its own event durable."""
    async with open_journal(folder) as journal:

        async def work() -> None:
            for _ in range(5):
                seq = journal.append(Warned(text="x"))
                await journal.barrier()
                assert journal.durable_seq >= seq

        async with trio.open_nursery() as nursery:
            for _ in range(200):
                nursery.start_soon(work)
        assert journal.last_seq == 1000
        assert journal.commits < 50
    assert len(records(folder)) == 1000


async def test_a_few_at_work_do_not_wait_for_one_another(folder: RunFolder) -> None:
    """Each of a small team goes on once its own commit is made: the next is begun when its first has acted."""
    done: list[str] = []

    async def work(name: str) -> None:
        journal.append(Warned(text=name))
        done.append(name)
        await journal.barrier()
        done.append(name)

    spread = False
    async with open_journal(folder) as journal:
        taken: list[float] = []
        for _ in range(20):
            begun = time.perf_counter()
            journal.append(Warned(text="alone"))
            await journal.barrier()
            taken.append(time.perf_counter() - begun)
        if statistics.median(taken) > PATIENCE / 3:
            pytest.skip(f"a commit takes {statistics.median(taken) * 1e3:.1f} ms here: nobody waits for it in place")
        for _ in range(300):  # Now and then a commit is slow, and the next ones are shared.
            done.clear()
            async with trio.open_nursery() as nursery:
                for name in "abc":
                    nursery.start_soon(work, name)
            spread = spread or all(done[at] == done[at + 1] for at in (0, 2, 4))
    assert spread


async def test_a_slow_commit_stops_nobody_else(folder: RunFolder) -> None:
    """An actor alone waits in place for a moment only; while its commit takes long, the others go on."""
    async with open_journal(folder) as journal, trio.open_nursery() as nursery:

        async def append() -> None:
            journal.append(Warned(text="x"))
            await journal.barrier()

        for _ in range(3):
            await append()
        other = sqlite3.connect(folder.journal, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            nursery.start_soon(append)
            await trio.testing.wait_all_tasks_blocked()
            assert journal.durable_seq == 3
        other.close()
        with trio.fail_after(5):
            await append()
        assert journal.durable_seq == journal.last_seq == 6


async def test_an_actor_alone_lets_others_run_at_each_barrier(folder: RunFolder) -> None:
    """Commits that are waited for in place are checkpoints too."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with open_journal(folder) as journal, trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for number in range(20):
            journal.append(Warned(text="x"))
            await journal.barrier()
            assert turns >= number - 1
        nursery.cancel_scope.cancel()


async def test_what_nobody_awaits_is_committed_soon(folder: RunFolder) -> None:
    """Events without a barrier are shown to subscribers all the same."""
    shown: list[Record] = []
    seen = trio.Event()

    def publish(batch: Sequence[Record]) -> None:
        shown.extend(batch)
        if len(shown) == 2:
            seen.set()

    async with open_journal(folder) as journal:
        journal.subscribe(publish)
        journal.append(Warned(text="a"))
        journal.append(Warned(text="b"))
        assert shown == []
        with trio.fail_after(5):
            await seen.wait()
        assert [record.seq for record in shown] == [1, 2]


async def test_closing_writes_the_rest(folder: RunFolder) -> None:
    """What was appended is durable when the journal is closed, even by a cancellation."""
    used: list[Journal] = []
    with trio.CancelScope() as scope:
        async with open_journal(folder) as journal:
            used.append(journal)
            journal.append(Warned(text="a"))
            scope.cancel()
            await trio.sleep_forever()
    assert len(records(folder)) == 1
    with pytest.raises(JournalError, match="closed"):
        used[0].append(Warned(text="b"))


async def test_a_cancelled_waiter_leaves_its_event_to_be_written(folder: RunFolder) -> None:
    """A cancelled barrier ends at once; the event is written all the same and the others are not disturbed."""
    async with open_journal(folder) as journal:
        journal.append(Warned(text="a"))
        with trio.CancelScope() as scope:
            scope.cancel()
            await journal.barrier()
        assert scope.cancelled_caught
        journal.append(Warned(text="b"))
        await journal.barrier()
        assert journal.durable_seq == 2


async def test_an_error_of_the_body_comes_out_as_it_is(folder: RunFolder) -> None:
    """What the block raises is not wrapped in a group."""
    with pytest.raises(KeyError):
        async with open_journal(folder):
            raise KeyError("x")


@pytest.mark.parametrize("waiters", [1, 40])
async def test_a_failed_commit_stops_everything(folder: RunFolder, waiters: int) -> None:
    """When the file cannot grow, every waiter gets the error, nothing more is written, what was durable stays."""
    failures: list[str] = []
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    async with open_journal(folder) as journal:
        for _ in range(10):
            journal.append(Warned(text="kept"))
        await journal.barrier()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:

            async def work(number: int) -> None:
                try:
                    journal.append(Warned(text=f"{number}" + "x" * 50_000))
                    await journal.barrier()
                except JournalError as error:
                    failures.append(str(error))

            async with trio.open_nursery() as nursery:
                for number in range(waiters):
                    nursery.start_soon(work, number)
            if waiters == 1:
                await work(2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert failures
        assert all("a file size limit" in failure and "the run stops here" in failure for failure in failures)
        durable = journal.durable_seq
        assert len(failures) + durable >= 10 + waiters
        assert len(failures) >= waiters - 1
        with pytest.raises(JournalError, match="the run stops here"):
            journal.append(Warned(text="more"))
        with pytest.raises(JournalError, match="the run stops here"):
            await journal.barrier()
    found = records(folder)
    assert len(found) == durable
    assert [record.event for record in found[:10]] == [Warned(text="kept")] * 10
    with sqlite3.connect(folder.journal) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


async def test_a_commit_nobody_awaits_stops_the_run_too(folder: RunFolder) -> None:
    """When the delayed commit fails, the next append says so, and closing the journal raises nothing new."""

    async def append_until_it_fails(journal: Journal) -> None:
        while True:
            journal.append(Warned(text="x" * 50_000))
            await trio.sleep(0.02)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with open_journal(folder) as journal:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        try:
            with trio.fail_after(10), pytest.raises(JournalError, match="the first 0 events are safe"):
                await append_until_it_fails(journal)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert records(folder) == []


async def test_a_call_has_one_outcome_and_a_request_one_decision(folder: RunFolder) -> None:
    """A second outcome or decision is refused at once, also after a restart, and the journal goes on."""
    decision = ApprovalDecided(id="a1", decision="allow", by="ada")
    async with open_journal(folder) as journal:
        journal.append(finished("c1"))
        journal.append(decision)
        with pytest.raises(AlreadyRecorded, match="c1 of root already has its outcome"):
            journal.append(finished("c1", "other"))
    async with open_journal(folder) as journal:
        with pytest.raises(AlreadyRecorded, match="first decision counts"):
            journal.append(ApprovalDecided(id="a1", decision="deny", by="bob"))
        with pytest.raises(AlreadyRecorded):
            journal.append(finished("c1", "other"))
        journal.append(finished("c2"))
        await journal.barrier()
    assert [record.event for record in records(folder)] == [finished("c1"), decision, finished("c2")]


def test_one_outcome_is_the_databases_own_promise(folder: RunFolder) -> None:
    """The database refuses a second outcome of a call whoever writes it, and takes none of that commit."""
    database = Database.for_writer(folder.journal, 0.0)
    row = (1, 0.0, "root", "tool.finished", "c1", "{}", None)
    database.commit([row])
    with pytest.raises(sqlite3.IntegrityError):
        database.commit([(2, 0.0, "root", "warning", None, '{"text":""}', None), (3, *row[1:])])
    assert database.last_seq() == 1
    database.close()


async def test_big_results_go_to_files(folder: RunFolder) -> None:
    """A result over 64 KiB is kept once in a file named by its content, and read back as if it were in the row."""
    big = "é\ud800\n" * 50_000
    nested = {"deep": ["y" * 70_000]}
    async with open_journal(folder) as journal:
        journal.append(finished("c1", big))
        journal.append(finished("c2", big))
        journal.append(Unknown(name="newer.kind", body=nested))
        await journal.barrier()
        with sqlite3.connect(folder.journal) as connection:
            assert connection.execute("SELECT max(length(body)) FROM events").fetchone()[0] < 65536
        connection.close()
    assert len(list(folder.blobs.iterdir())) == 2
    assert [record.event for record in records(folder)] == [
        finished("c1", big),
        finished("c2", big),
        Unknown(name="newer.kind", body=nested),
    ]


async def test_the_same_content_may_be_kept_by_many_at_once(folder: RunFolder) -> None:
    """Threads that keep one content at the same moment all succeed, and one file is left."""
    blobs = Blobs(folder.blobs)
    start = threading.Barrier(8)
    names: list[str] = []

    def put(data: bytes) -> None:
        start.wait()
        names.append(blobs.put(data))

    for number in range(30):
        data = bytes([number]) * 100_000
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(trio.to_thread.run_sync, put, data)
    assert 240 == len(names)
    assert set(names) == {path.name for path in folder.blobs.iterdir()}


async def test_a_damaged_file_is_told(folder: RunFolder) -> None:
    """A big result whose file was changed or removed is an error that names the file."""
    async with open_journal(folder) as journal:
        journal.append(finished("c1", "x" * 100_000))
    (blob,) = folder.blobs.iterdir()
    blob.write_bytes(b"y" * 100_000)
    with pytest.raises(JournalError, match="damaged"):
        records(folder)
    blob.unlink()
    with pytest.raises(JournalError, match="No such file"):
        records(folder)


async def test_unknown_types_are_kept(folder: RunFolder) -> None:
    """An event of a newer version is read back whole under its own name."""
    async with open_journal(folder) as journal:
        journal.append(Unknown(actor="root", name="tea.brewed", body={"minutes": 4}))
    assert [record.event for record in records(folder)] == [
        Unknown(actor="root", name="tea.brewed", body={"minutes": 4})
    ]


async def test_a_newer_database_is_refused(folder: RunFolder) -> None:
    """A database of a newer Elenco is refused for reading and writing, naming both versions, and not touched."""
    async with open_journal(folder) as journal:
        journal.append(Warned(text="a"))
    with sqlite3.connect(folder.journal) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 6}")
    connection.close()
    before = folder.journal.read_bytes()
    with pytest.raises(JournalError, match=f"schema version {SCHEMA + 6}; this Elenco knows versions up to {SCHEMA}"):
        async with open_journal(folder):
            pass
    with pytest.raises(JournalError, match=f"version {SCHEMA + 6}"):
        records(folder)
    assert folder.journal.read_bytes() == before


def test_migrations_are_written_down(folder: RunFolder) -> None:
    """The database says which schema it has and when it got it."""
    Database.for_writer(folder.journal, 12.5).close()
    Database.for_writer(folder.journal, 99.0).close()
    with sqlite3.connect(folder.journal) as connection:
        assert connection.execute("SELECT * FROM migrations").fetchall() == [(1, 12.5)]
    connection.close()


async def test_only_one_process_owns_a_run(folder: RunFolder) -> None:
    """While a journal is open, no other process, and no second task, can open it; afterwards both can."""
    script = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from runtime.errors import JournalError\n"
        "from runtime.journal import RunFolder, open_journal\n"
        "async def main():\n"
        "    async with open_journal(RunFolder(Path(sys.argv[1]))): pass\n"
        "try: trio.run(main)\n"
        "except JournalError as error: sys.exit(str(error))\n"
    )

    async def other() -> subprocess.CompletedProcess[bytes]:
        return await trio.run_process(
            [sys.executable, "-c", script, str(folder.path)], check=False, capture_stderr=True
        )

    async with open_journal(folder):
        refused = await other()
        assert refused.returncode == 1
        assert f"run {folder.id} is owned by process {os.getpid()}" in refused.stderr.decode()
        with pytest.raises(JournalError, match="is owned by"):
            async with open_journal(folder):
                pass
    assert (await other()).returncode == 0


async def test_nothing_is_left_open(folder: RunFolder) -> None:
    """A closed journal leaves no descriptor and no thread, whether it ended well, failed or was refused."""
    async with open_journal(folder):
        pass
    before, threads = descriptors(), threading.active_count()
    for _ in range(3):
        async with open_journal(folder) as journal:
            journal.append(Warned(text="a"))
            await journal.barrier()
            await journal.read(1, 10)
            with pytest.raises(JournalError):
                async with open_journal(folder):
                    pass
        with pytest.raises(ZeroDivisionError):
            async with open_journal(folder):
                raise ZeroDivisionError
    assert descriptors() == before
    assert threading.active_count() <= threads + 1


async def test_what_is_not_json_fails_at_its_author(folder: RunFolder) -> None:
    """An event that cannot be written is refused when it is appended, and leaves no gap."""
    async with open_journal(folder) as journal:
        with pytest.raises(TypeError):
            journal.append(Unknown(name="x", body={"value": object()}))
        assert journal.append(Warned(text="\ud800 half a pair")) == 1
    assert records(folder)[0].event == Warned(text="\ud800 half a pair")


async def test_shared_values_are_taken_as_they_are(folder: RunFolder) -> None:
    """Changing a mapping after its event was appended does not change what is written."""
    body = {"a": 1}
    async with open_journal(folder) as journal:
        journal.append(Unknown(name="x", body=body))
        body["a"] = 2
        await journal.barrier()
    assert records(folder)[0].event == Unknown(name="x", body={"a": 1})


@pytest.mark.parametrize("where", ["append", "publish"])
def test_a_ctrl_c_within_the_journal_comes_after_it(folder: RunFolder, where: str) -> None:
    """Whoever embeds Elenco may be interrupted anywhere: no event is lost, told of late, or leaves a gap."""
    armed = False
    shown: list[int] = []

    def interrupt(at: str) -> None:
        nonlocal armed
        if armed and at == where:
            armed = False
            signal.raise_signal(signal.SIGINT)

    def clock() -> float:
        interrupt("append")
        return 0.0

    def publish(records: Sequence[Record]) -> None:
        interrupt("publish")
        shown.extend(record.seq for record in records)

    async def main() -> None:
        nonlocal armed
        async with open_journal(folder, clock=clock) as journal:
            journal.subscribe(publish)
            journal.append(Warned(text="1"))
            await journal.barrier()
            armed = True
            journal.append(Warned(text="2"))
            await journal.barrier()
            journal.append(Warned(text="3"))
            await journal.barrier()

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    with RunReader(folder) as reader:
        found = [record.seq for record in reader.records()]
    assert not armed
    assert 2 <= len(found)
    assert found == shown == list(range(1, len(found) + 1))
