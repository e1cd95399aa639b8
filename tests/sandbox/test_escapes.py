"""A thousand ways out, tried for real: nothing outside a box changes, is read or is reached. Without walls it is.

Each attempt is composed of a goal (write, read, delete, connect, signal, speak to the control socket), a way to name
the target (plain, dotted, through links of several kinds, through /proc, encoded) and a shell wrapping. Beside them the
commands of the shell cases run, in boxes alone. Sixty in the usual run, a thousand under ELENCO_FULL=1.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest
import trio

from runtime.policy.decision import Sandbox as Level
from runtime.reaper import Reaper
from runtime.sandbox.box import Sandbox
from runtime.sandbox.walls import Caps, Walls

Run: TypeAlias = Callable[..., Awaitable[tuple[int, str]]]
COUNT = 1000 if os.environ.get("ELENCO_FULL") else 60
FORK_BOMB = ":(){ :|:& };:"
"""As root nothing bounds the number of processes (docs/sandbox.md), and this one takes the machine's from all tests."""
CASES = Path(__file__).parents[1] / "cases" / "shell"
SECRET = "the-secret-outside-5f1d"
TOKEN = "control-token-77aa"

GOALS = (
    "echo evil > {t}/planted", "echo evil >> {t}/file.txt", "rm -rf {t}", "mv {t}/file.txt {t}/gone",
    "cat {t}/file.txt",
    "cp {t}/file.txt copied; cat copied", "ln -s {t} link$$; cat link$$/file.txt", 
    "ln {t}/file.txt hard; echo x > hard",
    "chmod 777 {t}/file.txt", "touch -d yesterday {t}/file.txt", "truncate -s 0 {t}/file.txt", "mkdir -p {t}/made",
    "tar cf - -C {t} . | tar xOf - ./file.txt", "dd if=/dev/zero of={t}/file.txt bs=1 count=1 conv=notrunc",
    "find {t} -type f -exec cat {{}} +", "sed -i s/secret/evil/ {t}/file.txt", "tee {t}/planted < /dev/null",
    "grep -r secret {t}", "python3 -c 'open(\"{t}/planted\",\"w\")'", 
    "python3 -c 'print(open(\"{t}/file.txt\").read())'",
    "mkfifo {t}/pipe", "cp /bin/true {t}/tool", "install -m 755 /bin/true {t}/tool", "git init -q {t}/repo",
)  # fmt: skip
OTHERS = (
    "exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3", "echo hello > /dev/udp/127.0.0.1/{port}",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'",
    "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{control}\"); s.send(b\"hello\")'",
    "kill -9 {pid}", "kill -STOP {pid}", "cat /proc/{pid}/environ", 
    "ls /proc/{pid}/cwd/ && cat /proc/{pid}/root{t}/file.txt",
    "cat {state}/token", "find / -name token -exec cat {{}} + 2>/dev/null", "cat $(find / -name file.txt 2>/dev/null)",
    "unshare -Urm sh -c 'mount --bind {t} /mnt; cat /mnt/file.txt'", "mount --bind / /mnt && cat /mnt{t}/file.txt",
    "chroot /proc/1/root cat {t}/file.txt", "nsenter -t 1 -a cat {t}/file.txt", 
    "mknod disk b 254 0 && head -c 100 disk",
    "echo {t}/tool > /proc/sys/kernel/core_pattern", "ls -la /proc/*/fd /proc/*/cwd", "setsid nohup sleep 987 &",
)  # fmt: skip
RACES = (
    "mkdir -p d e; (for i in $(seq 80); do rm -rf d; ln -s {t} d; rm -f d; mkdir d; done) &"
    " for i in $(seq 80); do echo evil > d/planted; cat d/file.txt; done; wait",
    "(while :; do ln -sfn {t} swap; ln -sfn e swap; done) & p=$!;"
    " for i in $(seq 80); do cp /bin/true swap/tool; done; kill $p",
    "for i in $(seq 40); do mv agents a$i; ln -sfn {t} agents; cat agents/file.txt; rm agents; done",
)  # fmt: skip
WRAPPINGS = (
    "{c}", "eval {q}", "bash -c {q}", "sh -c {q}", "env bash -c {q}", "nohup bash -c {q}", "timeout 5 bash -c {q}",
    "( {c} ) & wait", "true && {c}", "echo $({c})", "f() {{ {c}; }}; f", "trap {q} EXIT", "nice bash -c {q}",
    "xargs -0 bash -c < <(printf %s {q})", "bash <<< {q}", "setsid -w bash -c {q}", "cd / && {c}", "python3 -c "
    "'import os,sys; os.system(sys.argv[1])' {q}", "git -c alias.x={g} x", "find . -maxdepth 0 -exec bash -c {q} \\;",
)  # fmt: skip


@attrs.frozen
class Outside:
    """What no command may touch, in a throw-away tree."""

    base: Path
    workspace: Path
    out: Path
    state: Path
    control: Path
    canary: socket.socket

    @property
    def port(self) -> int:
        return int(self.canary.getsockname()[1])


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    base = tmp_path.resolve()
    for name in ("ws/agents", "ws/sub", "out", "state", "rt"):
        (base / name).mkdir(parents=True)
    (base / "ws" / "agents" / "a.md").write_text("ours\n")
    (base / "out" / "file.txt").write_text(f"{SECRET}\n")
    (base / "state" / "token").write_text(f"{TOKEN}\n")
    control = Path(f"/tmp/elenco-escape-{os.getpid()}.sock")
    with socket.create_server(("127.0.0.1", 0)) as canary, socket.socket(socket.AF_UNIX) as listening:
        canary.setblocking(False)
        listening.bind(str(control))
        listening.listen()
        listening.setblocking(False)
        try:
            yield Outside(base, base / "ws", base / "out", base / "state", control, canary)
            with pytest.raises(BlockingIOError):
                listening.accept()
        finally:
            control.unlink()


def attempts(chance: random.Random, place: Outside) -> Iterator[str]:
    """Command lines without end, each an attempt that touches the throw-away tree alone, if anything."""
    target = str(place.out)
    spellings = (
        target, "../out", "./../out", "sub/../../out", f"//{target}", f"{target}/.", "up/out", "lnk", "lnk2", "rel",
        f"/proc/self/root{target}", "/proc/self/cwd/../out", "$PWD/../out", '"$(dirname "$PWD")/out"', "{..,}/out",
        f"/proc/thread-self/root{target}", "../ou?", "../o*t",
    )  # fmt: skip
    links = (
        f"ln -sfn {target} lnk; ln -sfn lnk lnk2; ln -sfn .. up; ln -sfn ../out rel; ",
        f'python3 -c \'import os; os.path.lexists("lnk") or os.symlink("{target}", "lnk")\'; ln -sfn lnk lnk2; '
        "ln -sfn .. up; ln -sfn ../out rel; ",
    )
    while True:
        goal = chance.choices((GOALS, OTHERS, RACES), (12, 5, 2))[0]
        filled = chance.choice(goal).format(
            t=chance.choice(spellings) if goal is not RACES else target,
            port=place.port,
            control=place.control,
            pid=os.getpid(),
            state=place.state,
        )
        quoted = shlex.quote(filled)
        wrapping = chance.choice(WRAPPINGS)
        line = wrapping.format(c=filled, q=quoted, g=shlex.quote("!" + filled))
        yield chance.choice(links) + line


def fingerprint(*folders: Path) -> str:
    """Everything of the trees that a command could change: names, kinds, modes, times, contents."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted([folder, *folder.rglob("*")]):
            seen = path.lstat()
            found.update(f"{path} {seen.st_mode} {seen.st_uid} {seen.st_mtime_ns} {seen.st_nlink}\n".encode())
            if path.is_file():
                found.update(path.read_bytes())
    return found.hexdigest()


def box_of(reaper: Reaper, place: Outside) -> Sandbox:
    caps = Caps(memory=2 << 30, file_size=1 << 26, cpu=5)
    return Sandbox(reaper, str(place.workspace), Walls(caps=caps), [place.state, place.base / "rt"])


async def reaped(run_within: Run, sandbox: Sandbox, command: str, level: Level = "workspace-write") -> str:
    """What a command printed before its time was over."""
    with trio.move_on_after(10):
        return (await run_within(sandbox, command, level))[1]
    return ""


async def test_no_attempt_gets_out(
    reaper: Reaper, box: Sandbox, outside: Outside, run_within: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many attempts, none changes, reads or reaches anything outside; what governs agents is as it was."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-in-us")
    sandbox = box_of(reaper, outside)
    guarded = (outside.out, outside.state, outside.workspace / "agents")
    before = fingerprint(*guarded)
    made = attempts(random.Random(6), outside)
    for _ in range(COUNT):
        command = next(made)
        said = await reaped(run_within, sandbox, command)
        for word in (SECRET, TOKEN, "sk-planted-in-us"):
            assert word not in said, command
        assert fingerprint(*guarded) == before, command
    with pytest.raises(BlockingIOError):
        outside.canary.accept()
    assert not sleeping("987")


async def test_no_shell_case_gets_out(reaper: Reaper, box: Sandbox, outside: Outside, run_within: Run) -> None:
    """The commands of the shell cases, hostile ones among them, change nothing outside their box."""
    sandbox = box_of(reaper, outside)
    guarded = (outside.out, outside.state, outside.workspace / "agents")
    lines = [line for file in sorted(CASES.glob("**/*.jsonl")) for line in file.read_text().splitlines() if line]
    commands = [json.loads(line)["command"] for line in lines]
    before = fingerprint(*guarded)
    chosen = commands if os.environ.get("ELENCO_FULL") else random.Random(6).sample(commands, 30)
    for command in chosen:
        if "\0" in command or (command == FORK_BOMB and os.geteuid() == 0):
            continue
        with trio.move_on_after(3):
            await run_within(sandbox, command)
        assert fingerprint(*guarded) == before, command
    assert (outside.workspace / "agents" / "a.md").read_text() == "ours\n"


async def test_without_walls_the_same_attempts_do_get_out(reaper: Reaper, outside: Outside, run_within: Run) -> None:
    """The control: unsandboxed, attempts of the same making write and read the throw-away tree outside and knock."""
    sandbox = box_of(reaper, outside)
    before = fingerprint(outside.out)
    target = str(outside.out)
    written, read, knocked = 0, 0, 0
    for goal in (GOALS[0], GOALS[1], GOALS[4], GOALS[8], OTHERS[0], OTHERS[8]):
        for spelling in (target, "../out", "lnk"):
            filled = goal.format(t=spelling, port=outside.port, control=outside.control, pid=0, state=outside.state)
            said = await reaped(run_within, sandbox, f"ln -sfn {target} lnk; {filled}", "unsandboxed")
            read += SECRET in said or TOKEN in said
            now = fingerprint(outside.out)
            written += now != before
            before = now
            try:
                outside.canary.accept()[0].close()
                knocked += 1
            except BlockingIOError:
                pass
    assert written >= 5
    assert read == 6
    assert knocked == 3


def sleeping(seconds: str) -> bool:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if Path(f"/proc/{name}/cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                    return True
            except OSError:
                continue
    return False
