"""Levels, views, environments and captured output: the pure part of the walls."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.config import read
from runtime.errors import DefinitionError
from runtime.policy.decision import NETWORKS, SANDBOXES, Network
from runtime.sandbox.capture import Capture
from runtime.sandbox.entry import command_line
from runtime.sandbox.environment import environment, sounds_secret
from runtime.sandbox.view import Guarded, System, View, arguments, guard
from runtime.sandbox.walls import GB, Caps, SandboxSettings, Walls, composed

SYSTEM = System(("/usr",), ("/etc/passwd",), {"/bin": "usr/bin"})
LEVELS = (None, *SANDBOXES)


def test_a_workspace_can_only_make_walls_higher() -> None:
    """For every flag, user setting and workspace setting: never a lower level than without the workspace's say."""
    for flag, user, here in itertools.product(LEVELS, LEVELS, LEVELS):
        without = composed(SandboxSettings(), SandboxSettings(level=user), flag).level
        with_it = composed(SandboxSettings(level=here), SandboxSettings(level=user), flag).level
        assert with_it == min((without, here or without), key=SANDBOXES.index)
        assert without == (flag or user or "workspace-write")


@pytest.mark.parametrize(("user", "here"), [*itertools.product((None, *NETWORKS), repeat=2)])
def test_a_workspace_opens_no_network(user: Network | None, here: Network | None) -> None:
    """What a workspace says of the network counts where it is stricter."""
    found = composed(SandboxSettings(network=here), SandboxSettings(network=user)).network
    base: Network = user or "tools"
    assert found == min((base, here or base), key=NETWORKS.index)


def test_what_a_workspace_may_not_decide_is_told() -> None:
    """A workspace that wants lower walls, folders or variables gets none of it, and a person is told."""
    here = SandboxSettings(level="unsandboxed", network="all", read=("/root",), env=("HOME",), memory=64 * GB)
    walls = composed(here, SandboxSettings(memory=2 * GB))
    assert walls == Walls(caps=Caps(memory=2 * GB), ignored=("level unsandboxed", "network all", "read", "env"))


def test_settings_are_read_and_their_faults_are_placed() -> None:
    """Sizes, words and lists are read; a wrong value is told with its line, a secret is refused by its name."""
    found = read("sandbox: {level: read-only, network: on, memory: 512MB, cpu: 60}\n", "config.yaml").sandbox
    assert found == SandboxSettings(level="read-only", network="all", memory=512 << 20, cpu=60)
    for text, said in {
        "sandbox: {level: open}": "config.yaml:1:18: level: expected read-only, workspace-write or unsandboxed",
        "sandbox:\n  env: [GITHUB_TOKEN]": "config.yaml:2:8: env: GITHUB_TOKEN sounds like a secret",
        "sandbox:\n  read: [home]": "config.yaml:2:9: read: must be absolute paths of folders, found 'home'",
        "sandbox: {memory: much}": "memory: expected a size such as 512MB or 8GB, found the text 'much'",
        "sandbox: {levl: read-only}": "unknown key 'levl'; did you mean 'level'?",
    }.items():
        with pytest.raises(DefinitionError) as caught:
            read(text, "config.yaml")
        assert said in str(caught.value)


@pytest.mark.parametrize("writable", [True, False])
def test_a_view_has_its_own_everything(writable: bool) -> None:
    """The view has namespaces of its own, no capability, a root that cannot be written, and what was granted."""
    guarded = Guarded(("/ws/.git",), ("/ws/.git/hooks",), ("/ws/state",))
    words = arguments(View("/ws", writable, guarded=guarded, environment={"A": "b"}), SYSTEM, 7)
    text = " ".join(words)
    for part in (
        "--unshare-all --unshare-user --disable-userns --die-with-parent --new-session --cap-drop ALL",
        "--clearenv --ro-bind /usr /usr --symlink usr/bin /bin --ro-bind-try /etc/passwd /etc/passwd",
        "--proc /proc --remount-ro /proc",
        f"{'--bind' if writable else '--ro-bind'} /ws /ws",
        "--ro-bind /ws/.git/hooks /ws/.git/hooks",
        "--tmpfs /ws/state --remount-ro /ws/state --remount-ro / --chdir /ws --setenv A b --seccomp 7 --",
    ):
        assert part in text
    assert "--share-net" not in words
    assert "--share-net" in arguments(View("/ws", network=True), SYSTEM, 7)


def test_outer_folders_are_mounted_first() -> None:
    """A folder granted around or inside the workspace covers nothing of it."""
    words = arguments(View("/home/me/ws", read=("/home/me/ws/data", "/home")), SYSTEM, 7)
    places = [words[at + 1] for at, word in enumerate(words) if word in ("--bind", "--ro-bind")]
    assert places == ["/usr", "/home", "/home/me/ws", "/home/me/ws/data"]


def test_nobody_moves_a_guarded_place_away_with_its_folder() -> None:
    """Every folder between the workspace and a guarded place is pinned, and nothing is treated twice."""
    found = guard("/ws", ["/ws/.git/hooks", "/ws/.git/config", "/ws/agents"], ["/ws/a/b/state", "/ws/a/b/state/runs"])
    assert found == Guarded(
        pinned=("/ws/a", "/ws/a/b", "/ws/.git"),
        frozen=("/ws/.git/hooks", "/ws/.git/config", "/ws/agents"),
        hidden=("/ws/a/b/state",),
    )


def test_the_environment_is_built_anew() -> None:
    """Nothing but the language and what settings name is handed on, and no secret under any name."""
    ours = {
        "OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "y", "LD_PRELOAD": "/x.so",
        "BASH_ENV": "/x", "LANG": "de_DE.UTF-8", "JAVA_HOME": "/opt/java", "HOME": "/root", "PATH": "/evil",
    }  # fmt: skip
    found = environment(ours, ["JAVA_HOME", "GITHUB_TOKEN"])
    assert {"sk-1", "x", "y", "/x.so", "/x", "/root", "/evil"}.isdisjoint(found.values())
    assert found["LANG"] == "de_DE.UTF-8"
    assert found["JAVA_HOME"] == "/opt/java"
    assert environment(ours, walled=False)["PATH"] == "/evil"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "apikey", "X_TOKEN", "DB_PASSWORD", "KEY", "AWS_SECRET_ACCESS_KEY"])
def test_names_of_secrets_are_known(name: str) -> None:
    """A variable that sounds like a secret is one."""
    assert sounds_secret(name)
    assert not sounds_secret("KEYBOARD")


def test_a_command_stays_one_word() -> None:
    """Whatever a command line holds, it is one argument of the program that runs it."""
    command = 'echo "$1"; exit 3\n\''
    assert command in command_line("/bin/bash", command, Caps())


@given(st.text(), st.lists(st.integers(0, 40)))
def test_output_is_the_same_at_every_cut(text: str, cuts: list[int]) -> None:
    """Bytes give the same text however they are cut, broken characters included."""
    data = text.encode(errors="surrogatepass") + b"\xf0\x9f"
    capture = Capture()
    told = ""
    for size in cuts:
        told += capture.feed(data[:size])
        data = data[size:]
    told += capture.feed(data) + capture.feed(b"", final=True)
    assert capture.text == told == (text.encode(errors="surrogatepass") + b"\xf0\x9f").decode(errors="replace")


@given(st.lists(st.text(max_size=30)), st.integers(0, 20), st.integers(1, 20), st.integers(1, 7))
def test_head_and_tail_are_kept_and_pages_leave_no_gap(parts: list[str], head: int, tail: int, most: int) -> None:
    """Of long output exactly head and tail are kept; pages follow each other, and what is lost is counted."""
    capture = Capture(head, tail)
    for part in parts:
        capture.feed(part.encode(errors="replace"))
    whole = "".join(parts).encode(errors="replace").decode()
    if len(whole) <= head + tail:
        assert capture.text == whole
    else:
        lost = len(whole) - head - tail
        assert capture.text == f"{whole[:head]}\n[... {lost} characters were not kept ...]\n{whole[-tail:]}"
    at, seen, lost = 0, "", 0
    while at < capture.chars:
        piece = capture.since(at, most)
        seen, lost = seen + piece.text, lost + piece.lost
        assert piece.end == at + piece.lost + len(piece.text)
        at = piece.end
    assert len(seen) + lost == len(whole)
    assert seen == whole[:head] + whole[max(head, len(whole) - tail) :]
