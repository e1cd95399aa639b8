"""The control socket: steering from another process, first decision wins, and nobody can hurt the run."""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import attrs
import pytest
import trio

from runtime.errors import ElencoError, JournalError, UsageError
from runtime.events import (
    ActorFinished,
    ActorStarted,
    ApprovalDecided,
    ApprovalRequested,
    BudgetSettled,
    CancelRequested,
    Event,
    ModelDelta,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
    RunStarted,
    Snapshot,
    SteerReceived,
    Warned,
)
from runtime.journal import MemoryJournal, RunFolder, create_run, load, open_journal, open_state
from runtime.messages import JsonObject
from runtime.model import Delta
from runtime.watch import (
    Answer,
    Approve,
    Cancel,
    ChangeLimits,
    Command,
    Continue,
    Control,
    Deny,
    Disconnected,
    Hold,
    LogStream,
    NotRunning,
    Say,
    SetModel,
    Status,
    append_command,
    connect,
    deliver,
    runtime_folder,
    serve,
)


class Recorder:
    """Commands that only notes what it was told."""

    def __init__(self) -> None:
        self.seen: list[Command] = []

    async def run(self, command: Command) -> JsonObject:
        await trio.lowlevel.checkpoint()
        self.seen.append(command)
        match command:
            case Approve(id="a9"):
                raise UsageError("a9 waits for no decision; open: a1")
            case Cancel():
                raise ElencoError("it cannot be")
            case _:
                return {"number": len(self.seen)}


@attrs.define
class Live:
    journal: MemoryJournal
    stream: LogStream
    commands: Recorder
    control: Control
    folder: RunFolder

    def write(self, *texts: str) -> None:
        for text in texts:
            self.journal.append(Warned(text=text))
        self.journal.flush()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    # A state folder whose own path is far too long for a socket.
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    return create_run(open_state(str(deep)), random.Random(1))


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("run"))}


@asynccontextmanager
async def running(folder: RunFolder, env: dict[str, str]) -> AsyncGenerator[Live]:
    journal = MemoryJournal()
    stream = LogStream(journal, clock=lambda: 1.0)
    commands = Recorder()
    async with serve(stream, commands, folder, env) as control:
        yield Live(journal, stream, commands, control, folder)


async def raw(live: Live) -> trio.SocketStream:
    return await trio.open_unix_socket(str(live.control.socket))


def subscription(live: Live) -> bytes:
    return json.dumps({"re": 1, "op": "subscribe", "from": 1, "token": live.control.token}).encode() + b"\n"


async def answer(stream: trio.SocketStream) -> dict[str, object] | None:
    """The next line a server sends, None when it closed the connection."""
    data = b""
    with trio.fail_after(5):
        while not data.endswith(b"\n"):
            try:
                more = await stream.receive_some(1)
            except trio.BrokenResourceError:
                return None
            if not more:
                return None
            data += more
    return cast("dict[str, object]", json.loads(data))


async def test_commands_are_carried_out_and_answered(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A client's commands reach the application as values; results and errors come back as they are."""
    sent: list[Command] = [
        Approve(id="a1", arguments={"x": [1]}),
        Deny(id="a2", why="no"),
        Say(text="é\n", interrupt=True),
        Status(),
    ]
    async with running(folder, sockets) as live, connect(folder) as client:
        assert [await client.send(command) for command in sent] == [
            {"number": 1},
            {"number": 2},
            {"number": 3},
            {"number": 4},
        ]
        with pytest.raises(UsageError, match="a9 waits for no decision; open: a1"):
            await client.send(Approve(id="a9"))
        with pytest.raises(ElencoError, match="it cannot be"):
            await client.send(Cancel())
        assert live.commands.seen[:4] == sent


async def test_a_watcher_gets_journal_then_live_then_the_end(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A subscription gives the kept events from the seq asked for, live ones, and ends with the run."""
    texts: list[str] = []
    async with trio.open_nursery() as nursery:
        async with running(folder, sockets) as live:
            live.write("1", "2", "3")

            async def watch(task_status: trio.TaskStatus[None]) -> None:
                async with connect(folder) as client, client.subscribe(2) as records:
                    async for record in records:
                        texts.append(getattr(record.event, "text", "?"))
                        if len(texts) == 2:
                            task_status.started()

            with trio.fail_after(5):
                await nursery.start(watch)
            live.write("4")
            live.stream.publish_deltas("a", [Delta("text", "live")])
            live.write("last")
    assert texts == ["2", "3", "4", "live", "last"]


async def test_a_watcher_may_begin_with_a_snapshot(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A subscription from null begins with a snapshot, a running turn comes whole after it."""
    async with running(folder, sockets) as live, connect(folder) as client:
        live.write("1")
        live.stream.publish_deltas("a", [Delta("text", "so far")])
        async with client.subscribe(None) as records:
            first, second = await anext(records), await anext(records)
        assert isinstance(first.event, Snapshot)
        assert first.event.state["warnings"] == ["1"]
        assert second.event == ModelDelta(actor="a", kind="text", text="so far", reset=True)


async def test_nothing_is_left_behind(folder: RunFolder, sockets: dict[str, str]) -> None:
    """While it is served the socket and the token are private; afterwards neither is there, nor a descriptor."""
    before = len(os.listdir("/proc/self/fd"))
    async with running(folder, sockets) as live:
        assert len(os.fsencode(live.control.socket)) < 108
        assert stat.S_IMODE(live.control.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(live.control.socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.control.stat().st_mode) == 0o600
        silent = await raw(live)
        await silent.send_all(b'{"half a line')
    assert not live.control.socket.exists()
    assert not folder.control.exists()
    await silent.aclose()
    with pytest.raises(NotRunning, match="no process works on run"):
        async with connect(folder):
            pass
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("token", ["", "wrong", None, 7, "ä", ["x"]])
async def test_without_the_token_nothing_is_done(folder: RunFolder, sockets: dict[str, str], token: object) -> None:
    """A command, or a subscription, without the run's token is refused and the connection closed."""
    async with running(folder, sockets) as live:
        for op in ("status", "subscribe"):
            stream = await raw(live)
            await stream.send_all(json.dumps({"re": 1, "op": op, "token": token}).encode() + b"\n")
            assert await answer(stream) == {"re": 1, "ok": False, "error": "the token is not the run's", "usage": False}
            assert await answer(stream) is None
            await stream.aclose()
        assert live.commands.seen == []


GARBAGE = [
    b"\n",
    b"\xff\xfe\x00\n",
    b"GET / HTTP/1.1\n",
    b"[]\n",
    b"null\n",
    b'{"op": "status"\n',
    b"[" * 100_000 + b"\n",
    b'{"op": NaN}\n',
    b"\x00" * 5000 + b"\n",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_is_refused_and_hurts_nobody(folder: RunFolder, sockets: dict[str, str], garbage: bytes) -> None:
    """Whatever a client sends, it gets a refusal or is cut off, and others are served as ever."""
    async with running(folder, sockets) as live, connect(folder) as client:
        stream = await raw(live)
        await stream.send_all(garbage)
        refused = await answer(stream)
        assert refused is not None
        assert refused["ok"] is False
        assert await client.send(Status()) == {"number": 1}
        await stream.aclose()


async def test_a_line_without_end_is_cut_off(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A client that sends a line without an end is cut off when it is too long."""
    async with running(folder, sockets) as live, connect(folder) as client:
        stream = await raw(live)
        with trio.fail_after(10), pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"x" * (8 << 20))
        assert await client.send(Status()) == {"number": 1}
        await stream.aclose()


async def test_a_client_that_keeps_making_mistakes_is_cut_off(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A flood of wrong requests ends its own connection."""
    async with running(folder, sockets) as live, connect(folder) as client:
        stream = await raw(live)
        wrong = json.dumps({"re": 1, "op": "aprove", "token": live.control.token}).encode() + b"\n"
        await stream.send_all(wrong * 20)
        first = await answer(stream)
        assert first == {
            "re": 1,
            "ok": False,
            "error": "unknown command 'aprove'; did you mean 'approve'?",
            "usage": True,
        }
        for _ in range(19):
            assert await answer(stream) is not None
        assert await answer(stream) is None
        assert await client.send(Status()) == {"number": 1}
        await stream.aclose()


async def test_a_watcher_that_does_not_read_hurts_nobody(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A watcher that never reads keeps neither the run, nor other clients, nor the end of the run waiting for long."""
    with trio.fail_after(20):
        async with running(folder, sockets) as live, connect(folder) as client:
            stalled = await raw(live)
            await stalled.send_all(subscription(live))
            for _ in range(300):
                live.write("x" * 10_000)
                live.stream.publish_deltas("a", [Delta("text", "y" * 10_000)])
                await trio.lowlevel.checkpoint()
            assert await client.send(Status()) == {"number": 1}
        await stalled.aclose()


async def test_stalled_watchers_do_not_keep_a_run_from_ending(
    folder: RunFolder, sockets: dict[str, str], autojump_clock: trio.testing.MockClock
) -> None:
    """Watchers that took nothing for half a second are not waited for; one that only just stopped is, for no longer."""
    for patience in (1.0, 0.0):
        async with running(folder, sockets) as live:
            stalled = [await raw(live) for _ in range(20)]
            for each in stalled:
                await each.send_all(subscription(live))
            for _ in range(3):
                live.write("x" * 100_000)
                await trio.sleep(0.1)
            await trio.sleep(patience)
            before = trio.current_time()
        waited = trio.current_time() - before
        assert waited < 0.01 if patience else 0.1 < waited < 0.51
        for each in stalled:
            await each.aclose()


async def test_who_reads_in_fits_and_starts_gets_whole_lines(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A watcher that reads little by little, and asks in between, gets every kept event, answer and word once."""
    said, asks = "", [0, 1, 2, 148]
    with trio.fail_after(20):
        async with running(folder, sockets) as live:
            stream = await raw(live)
            await stream.send_all(subscription(live))
            data, answered = bytearray(), trio.Event()

            async def read(task_status: trio.TaskStatus[None]) -> None:
                choose = random.Random(3)
                task_status.started()
                while some := await stream.receive_some(choose.randint(1, 20_000)):
                    data.extend(some)
                    if data.count(b'{"re":') > len(asks):
                        answered.set()
                    await trio.sleep(choose.choice((0, 0, 0.01)))

            async with trio.open_nursery() as nursery:
                await nursery.start(read)
                for number in range(150):
                    live.write(f"{number} " + "k" * 12_000)
                    live.stream.publish_deltas("a", [Delta("text", f"{number} ")])
                    said += f"{number} "
                    if number in asks:
                        ask = json.dumps({"re": number, "op": "status", "token": live.control.token})
                        await stream.send_all(ask.encode() + b"\n")
                    await trio.sleep(0.002)
                await answered.wait()  # who closes a socket with requests unread resets it
                live.stream.close()
            await stream.aclose()
    lines = [json.loads(each) for each in data.splitlines()]
    assert asks == [each["re"] for each in lines if "re" in each][1:]
    assert list(range(1, 151)) == [each["seq"] for each in lines if "seq" in each]
    heard = ""
    for each in lines:
        if each.get("type") == "model.delta":
            heard = each["text"] if each["reset"] else heard + each["text"]
    assert said == heard


async def test_too_many_clients_are_turned_away(folder: RunFolder, sockets: dict[str, str]) -> None:
    """Silent clients take no more than the places there are; one too many is told why, asking or not."""
    async with running(folder, sockets) as live:
        silent = [await raw(live) for _ in range(256)]
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(ElencoError, match=r"^256 clients are connected already$"):
            async with connect(folder) as client:
                await client.send(Status())
        late = await raw(live)
        refused = await answer(late)
        assert refused is not None
        assert refused["error"] == "256 clients are connected already"
        await silent[0].aclose()
        await trio.testing.wait_all_tasks_blocked(0.01)
        async with connect(folder) as client:
            assert await client.send(Status()) == {"number": 1}
        for stream in (*silent, late):
            await stream.aclose()


async def test_a_client_that_says_nothing_loses_its_place(
    folder: RunFolder, sockets: dict[str, str], autojump_clock: trio.testing.MockClock
) -> None:
    """A connection without a first request is closed after a while."""
    async with running(folder, sockets) as live:
        stream = await raw(live)
        with trio.fail_after(60):
            assert await stream.receive_some() == b""
        await stream.aclose()


async def test_a_client_learns_that_the_run_went_away(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A command to a run that has just ended is an error, not silence."""
    async with running(folder, sockets):
        context = connect(folder)
        client = await context.__aenter__()
    with pytest.raises(Disconnected):
        await client.send(Status())
    await context.__aexit__(None, None, None)


async def test_sockets_of_killed_processes_are_swept(folder: RunFolder, sockets: dict[str, str]) -> None:
    """A socket nobody listens on any more goes when the next run is served; a live one stays."""
    other = create_run(open_state(str(folder.path.parent.parent)), random.Random(2))
    async with running(other, sockets) as live:
        dead = live.control.socket.with_name("dead.sock")
        with trio.socket.socket(trio.socket.AF_UNIX) as listening:
            await listening.bind(os.fspath(dead))
        assert dead.exists()
        async with running(folder, sockets):
            assert not dead.exists()
            assert live.control.socket.exists()


def test_sockets_have_a_short_private_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The runtime folder is used when it is ours and short enough, else a private one under the temporary folder."""
    place = tmp_path_factory.mktemp("r")
    temporary = {"TMPDIR": str(place)}
    assert runtime_folder({**temporary, "XDG_RUNTIME_DIR": str(place)}) == place / "elenco"
    for env in ({}, {"XDG_RUNTIME_DIR": str(place / ("x" * 200))}, {"XDG_RUNTIME_DIR": "relative"}):
        found = runtime_folder({**temporary, **env})
        assert found == place / f"elenco-{os.getuid()}"
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
    (place / "elenco").chmod(0o755)
    assert runtime_folder({**temporary, "XDG_RUNTIME_DIR": str(place)}) == place / f"elenco-{os.getuid()}"


# --- with nobody there -------------------------------------------------------------------------------------------


ASK = ApprovalRequested(actor="root", id="a1", call_id="c1", name="shell", arguments={}, why="")
QUESTION = QuestionAsked(actor="root", id="q1", call_id="c2", text="Which?")


async def left(folder: RunFolder, *more: Event) -> None:
    """A run that its process has left."""
    root = ActorStarted(
        actor="root", agent="root", number=0, parent=None, task="t", model="m", limits={}, prompt=(), tools=()
    )
    async with open_journal(folder) as journal:
        for event in (RunStarted(task="t", agent="root", model="m", limits={}), root, ASK, QUESTION, *more):
            journal.append(event)


async def test_with_no_owner_commands_are_recorded(folder: RunFolder) -> None:
    """approve, answer, say and cancel of a run nobody works on are in its record, for who resumes it."""
    await left(folder)
    new_id = iter("st").__next__
    assert await deliver(folder, Approve(id="a1", by="ada"), new_id) == {"recorded": 5, "seq": 5}
    await deliver(folder, Answer(id="q1", text="this", by="ada"), new_id)
    await deliver(folder, Say(text="hello", by="ada"), new_id)
    await deliver(folder, Cancel(by="ada"), new_id)
    state = load(folder)
    assert state.decisions == {"a1": ApprovalDecided(actor="root", id="a1", decision="allow", by="ada")}
    assert state.answers == {"q1": QuestionAnswered(actor="root", id="q1", answer="this", by="ada")}
    assert list(state.actors["root"].steers.values()) == [SteerReceived(actor="root", id="s", text="hello", by="ada")]
    assert state.cancel == CancelRequested(actor="root", by="ada")
    with pytest.raises(UsageError, match="root is cancelled already, by ada"):
        await deliver(folder, Cancel(by="bob"), new_id)


async def test_with_no_owner_a_run_is_held_and_let_go(folder: RunFolder) -> None:
    """hold and continue without a process are on record; each is refused where it would change nothing."""
    await left(folder)
    await deliver(folder, Hold(by="ada"), str)
    await deliver(folder, Hold(actor="root", by="bob"), str)
    state = load(folder)
    assert ("ada", "bob") == (getattr(state.held, "by", ""), getattr(state.actors["root"].held, "by", ""))
    with pytest.raises(UsageError, match="the run is held already, by ada"):
        await deliver(folder, Hold(by="eve"), str)
    with pytest.raises(UsageError, match="root is held already, by bob"):
        await deliver(folder, Hold(actor="root", by="eve"), str)
    assert {"recorded": 8, "seq": 8} == await deliver(folder, Continue(by="eve"), str)
    state = load(folder)
    assert (None, None) == (state.held, state.actors["root"].held)
    with pytest.raises(UsageError, match="the run is not held"):
        await deliver(folder, Continue(), str)
    with pytest.raises(UsageError, match="root is not held"):
        await deliver(folder, Continue(actor="root"), str)


async def test_with_no_owner_limits_are_set(folder: RunFolder) -> None:
    """Limits changed without a process hold for the next one, only while they are what their sender believes."""
    await left(folder)
    answer = await deliver(folder, ChangeLimits(limits={"max_steps": "60"}, expect={}, by="ada"), str)
    assert {"max_steps": 60, "sources": {"max_steps": "ada"}} == answer["limits"]
    await deliver(folder, ChangeLimits(limits={"max_steps": "+20"}, expect={"max_steps": 60}), str)
    assert 80 == load(folder).limits["max_steps"]
    with pytest.raises(UsageError, match="max_steps of root is 80 by now, not 60"):
        await deliver(folder, ChangeLimits(limits={"max_steps": "+20"}, expect={"max_steps": 60}), str)
    with pytest.raises(UsageError, match="unknown limit 'max_step'; did you mean 'max_steps'"):
        await deliver(folder, ChangeLimits(limits={"max_step": 1}), str)
    with pytest.raises(UsageError, match="no actor 'rot'; did you mean 'root'"):
        await deliver(folder, ChangeLimits(limits={"max_steps": 1}, actor="rot"), str)


async def test_with_no_owner_no_limit_goes_below_what_is_used(folder: RunFolder) -> None:
    """As in a live run: such a limit could only stop it, which is what `cancel` is for."""
    used = BudgetSettled(actor="root", id=1, usage={"input": 900, "output": 100}, cost_usd=None, replied=True)
    await left(folder, used)
    with pytest.raises(UsageError, match="token_budget of root cannot go below 1k tokens: so much is used already"):
        await deliver(folder, ChangeLimits(limits={"token_budget": 999}), str)
    await deliver(folder, ChangeLimits(limits={"token_budget": 1000}), str)
    assert {"token_budget": 1000} == {name: of for name, of in load(folder).limits.items() if name != "sources"}


async def test_where_a_run_stands_is_told_without_a_process(folder: RunFolder) -> None:
    """status of a run nobody works on is its snapshot, made of the journal."""
    await left(folder)
    told = await deliver(folder, Status(), str)
    assert (folder.id, "running", ["root"]) == (told["run"], told["phase"], [each["path"] for each in told["actors"]])
    assert [{"kind": "approval", "id": "a1"}] == [{"kind": "approval", "id": each["id"]} for each in told["approvals"]]


async def test_the_first_decision_wins(folder: RunFolder) -> None:
    """Of many who decide at once one wins; the others are told who was first; nobody decides what was not asked."""
    await left(folder)
    outcomes: list[str] = []

    async def decide(number: int) -> None:
        try:
            await deliver(folder, Approve(id="a1", by=f"p{number}"), str)
        except UsageError as error:
            outcomes.append(str(error))
        except JournalError:  # on a busy machine one of the others has had the lock for too long: it tries again
            await decide(number)
        else:
            outcomes.append("won")

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(decide, number)
    assert outcomes.count("won") == 1
    winner = load(folder).decisions["a1"].by
    assert set(outcomes) == {"won", f"a1 was decided before: allow, by {winner}"}
    with pytest.raises(UsageError, match="a7 waits for no decision; open: none"):
        await deliver(folder, Deny(id="a7"), str)


async def test_too_late_is_said(folder: RunFolder) -> None:
    """A message to an actor that has ended, or an unknown one, is refused; so is anything to an ended run."""
    await left(folder, ActorFinished(actor="root", report={"status": "completed"}))
    with pytest.raises(UsageError, match="too late: root is completed"):
        append_command(folder, Say(text="x"), str)
    with pytest.raises(UsageError, match="no actor 'boss'; it has root"):
        append_command(folder, Cancel(actor="boss"), str)
    async with open_journal(folder) as journal:
        journal.append(RunFinished(report={"status": "completed"}))
    with pytest.raises(UsageError, match=f"too late: run {folder.id} has ended"):
        append_command(folder, Cancel(), str)


async def test_what_only_a_live_run_could_do_is_told_and_not_recorded(folder: RunFolder) -> None:
    """Another model cannot be chosen for a run no process works on: that is said, and nothing is written."""
    await left(folder)
    before = load(folder).seq
    with pytest.raises(NotRunning, match="no process works on run"):
        await deliver(folder, SetModel(model="lab/x"), str)
    assert before == load(folder).seq


async def test_an_owned_run_is_not_written_by_others(folder: RunFolder) -> None:
    """While a process owns the run nobody else appends to it."""
    await left(folder)
    async with open_journal(folder):
        with pytest.raises(JournalError, match="is owned by process"):
            append_command(folder, Cancel(), str)
        with pytest.raises(JournalError, match="is owned by process"):
            await deliver(folder, Cancel(), str)


async def test_a_run_whose_control_file_cannot_be_written_is_told_so_and_leaves_nothing(
    tmp_path: Path, sockets: dict[str, str]
) -> None:
    """On a full disk, or where the run's folder is gone, serving fails with one line that names the file."""
    gone = RunFolder(tmp_path / "gone")
    with pytest.raises(ElencoError, match=r"cannot write .*/gone/control\.json: No such file or directory"):
        async with running(gone, sockets):
            raise AssertionError
    assert [] == list((Path(sockets["XDG_RUNTIME_DIR"]) / "elenco").iterdir())
