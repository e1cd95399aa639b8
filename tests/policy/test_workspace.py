"""What a workspace lets through, refuses, and leaves behind, by each of its two ways to resolve a path."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import runtime
from runtime.policy import beneath
from runtime.policy.beneath import Method, PathFault
from runtime.policy.paths import PathError, Workspace, looks_like_text

METHODS: list[Method] = ["openat2", "walk"] if beneath.has_openat2() else ["walk"]


@pytest.fixture(params=METHODS)
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A workspace `ws` with a neighbour `out`; it counts that no descriptor is left open."""
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("INSIDE a\n")
    (root / "sub" / "b.txt").write_text("INSIDE b\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.txt").write_text("OUTSIDE\n")
    return Workspace(root, method=request.param)


def refused(fault: PathFault, call: object, *arguments: object) -> str:
    assert callable(call)
    with pytest.raises(PathError) as caught:
        call(*arguments)
    assert fault == caught.value.fault, caught.value
    return str(caught.value)


def test_paths_that_come_back_are_inside(workspace: Workspace, tmp_path: Path) -> None:
    """A path or link that climbs out and comes straight back names a file of the workspace."""
    root = Path(workspace.root)
    (root / "back").symlink_to("../ws/sub")
    (root / "over").symlink_to(tmp_path / "out" / ".." / "ws" / "a.txt")
    for path in ("../ws/a.txt", f"{root}/../ws/./a.txt", "sub/../a.txt", "back/../a.txt", "over"):
        assert workspace.read_bytes(path) == b"INSIDE a\n", path
    assert workspace.read_bytes("back/b.txt") == b"INSIDE b\n"


def test_links_that_lead_out_are_refused_with_one_reason(workspace: Workspace, tmp_path: Path) -> None:
    """Every way through a link to the outside, dangling or not, is refused as outside, and says so."""
    root = Path(workspace.root)
    (root / "l").symlink_to(tmp_path / "out")
    (root / "up").symlink_to("..")
    (root / "new").symlink_to("../out/new.txt")
    (root / "magic").symlink_to("/proc/self/cwd")
    for path in ("l/secret.txt", "l/nothing", "up/out/secret.txt", "new", "magic", "magic/a.txt", "l/../secret.txt"):
        assert "through a link to outside" in refused("outside", workspace.read_bytes, path)
        refused("outside", workspace.write_bytes, path, b"x")
        refused("outside", workspace.real_path, path)
    assert sorted(os.listdir(tmp_path / "out")) == ["secret.txt"]


@pytest.mark.parametrize("path", ["", "a\0b", "x\ud800", "a/" * 3000 + "f", "n" * 256, "sub/" + "é" * 128])
def test_what_can_be_no_path_is_malformed(workspace: Workspace, path: str) -> None:
    """Empty, NUL, lone surrogates and names too long are refused before anything is touched."""
    refused("malformed", workspace.read_bytes, path)
    refused("malformed", workspace.write_bytes, path, b"x")
    assert sorted(os.listdir(workspace.root)) == ["a.txt", "sub"]


@pytest.mark.parametrize(
    "path",
    [
        "~/x",
        "~root/x",
        "C:\\x",
        "C:/x",
        "file:///x",
        "..\\x",
        "%2e%2e/x",
        "\uff0e\uff0e/x",
        "..;/x",
        "....//x",
        "a\nb",
        "a\x1b[2J",
        "a\u202eb",
        "\u2026/x",
    ],
)
def test_names_that_are_surely_a_mistake_are_not_made(workspace: Workspace, path: str) -> None:
    """Home signs, drives, URLs, disguised dots and control characters make no new file and no folder."""
    refused("malformed", workspace.write_bytes, path, b"x")
    assert sorted(os.listdir(workspace.root)) == ["a.txt", "sub"]


@pytest.mark.parametrize("name", ["...", "-rf", " lead", "trail ", "~", "a\\b", "a\nb", "[a]*", "$HOME", "%2e%2e", "é"])
def test_odd_names_that_exist_are_ordinary(workspace: Workspace, name: str) -> None:
    """A file that is there is read and replaced, whatever it is called."""
    (Path(workspace.root) / name).write_text("INSIDE\n")
    assert workspace.read_bytes(name) == b"INSIDE\n"
    assert not workspace.write_bytes(name, b"new").created
    assert workspace.read_bytes(name) == b"new"


def test_a_failed_write_leaves_no_folder_behind(workspace: Workspace, tmp_path: Path) -> None:
    """Folders made on the way to a place that is then refused are removed again."""
    refused("outside", workspace.write_bytes, "x/y/../../../out/new", b"")
    refused("malformed", workspace.write_bytes, "x/y/a\tb", b"")
    refused("kind", workspace.write_bytes, "a.txt/y", b"")
    refused("malformed", workspace.write_bytes, "d/" * 250 + "f", b"")
    assert sorted(os.listdir(workspace.root)) == ["a.txt", "sub"]
    assert sorted(os.listdir(tmp_path)) == ["out", "ws"]


def test_a_write_that_breaks_off_changes_nothing(workspace: Workspace) -> None:
    """When the block of open_write fails, the old file stands and no temporary one is left."""

    def write_half(path: str) -> None:
        with workspace.open_write(path) as file:
            file.write(b"half")
            raise ZeroDivisionError

    for path in ("new/a.txt", "a.txt"):
        with pytest.raises(ZeroDivisionError):
            write_half(path)
    assert workspace.read_bytes("a.txt") == b"INSIDE a\n"
    assert sorted(os.listdir(workspace.root)) == ["a.txt", "sub"]


def test_a_write_keeps_the_mode_and_the_link(workspace: Workspace) -> None:
    """The new file has the old one's mode, and a link to it still is one."""
    root = Path(workspace.root)
    (root / "sub" / "b.txt").chmod(0o750)
    (root / "l").symlink_to("sub/b.txt")
    written = workspace.write_bytes("l", b"new")
    assert (written.path, written.created, written.before) == ("sub/b.txt", False, b"INSIDE b\n")
    assert stat.S_IMODE((root / "sub" / "b.txt").stat().st_mode) == 0o750
    assert (root / "l").is_symlink()
    assert workspace.write_bytes("a/b/c", b"").created


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_write_protected_file_stays(workspace: Workspace) -> None:
    """A file its user may not write is not replaced behind his back."""
    (Path(workspace.root) / "a.txt").chmod(0o444)
    refused("failed", workspace.write_bytes, "a.txt", b"x")


def test_other_names_of_a_file_keep_their_content(workspace: Workspace, tmp_path: Path) -> None:
    """Writing to a hard link gives the name a new file; the outside file is as it was."""
    os.link(tmp_path / "out" / "secret.txt", Path(workspace.root) / "h")
    workspace.write_bytes("h", b"new")
    assert (tmp_path / "out" / "secret.txt").read_bytes() == b"OUTSIDE\n"


def test_removing_never_goes_through_a_link(workspace: Workspace, tmp_path: Path) -> None:
    """Deleting removes the thing that is named, never what a link points to, and never the workspace."""
    root = Path(workspace.root)
    (root / "in").symlink_to("sub")
    (root / "out").symlink_to(tmp_path / "out")
    (root / "round").symlink_to("round")
    (root / "d").mkdir()
    (root / "d" / "l").symlink_to(tmp_path / "out")
    refused("kind", workspace.delete, "in/")
    refused("kind", workspace.delete, "in/.")
    refused("kind", workspace.delete, "a.txt/")
    refused("outside", workspace.delete, "out")
    refused("outside", workspace.delete, "out/secret.txt")
    for path in (".", "./", "sub/..", "in/..", str(root), f"{root}/", "../ws"):
        refused("kind", workspace.delete, path)
    refused("kind", workspace.delete, "..")
    assert workspace.delete("in") == "in"
    assert workspace.delete("round") == "round"
    assert workspace.delete("d/") == "d"
    assert workspace.unlink("a.txt") == "a.txt"
    refused("kind", workspace.unlink, "sub")
    assert sorted(os.listdir(root)) == ["out", "sub"]
    assert sorted(os.listdir(tmp_path / "out")) == ["secret.txt"]


def test_renaming_stays_inside(workspace: Workspace, tmp_path: Path) -> None:
    """A rename moves within the workspace and refuses a source or target outside it."""
    assert workspace.rename("a.txt", "new/place.txt") == ("a.txt", "new/place.txt")
    assert workspace.read_bytes("new/place.txt") == b"INSIDE a\n"
    refused("outside", workspace.rename, "new/place.txt", "../out/x")
    refused("outside", workspace.rename, "../out/secret.txt", "x")
    refused("kind", workspace.rename, ".", "x")
    refused("kind", workspace.rename, "sub", ".")
    refused("missing", workspace.rename, "nothing", "x/y")
    assert sorted(os.listdir(workspace.root)) == ["new", "sub"]


def test_special_files_are_refused_without_being_opened(workspace: Workspace) -> None:
    """A pipe neither hangs a reader nor takes a write, and listing does not open it."""
    os.mkfifo(Path(workspace.root) / "pipe")
    refused("kind", workspace.read_bytes, "pipe")
    refused("kind", workspace.write_bytes, "pipe", b"x")
    assert [("a.txt", "file"), ("pipe", "other"), ("sub", "folder")] == [
        (entry.path, entry.kind) for entry in workspace.listdir()
    ]


def test_real_paths_resolve_links_even_before_the_file_is_there(workspace: Workspace) -> None:
    """What permission rules see is where a path leads, not how it is spelled."""
    root = Path(workspace.root)
    (root / ".git").mkdir()
    (root / "notes").symlink_to(".git")
    (root / "dangling").symlink_to("sub/later")
    assert workspace.real_path("notes/hooks/x") == ".git/hooks/x"
    assert workspace.real_path("dangling/y") == "sub/later/y"
    assert workspace.real_path(f"{root}/sub/./b.txt") == "sub/b.txt"
    assert workspace.real_path("sub/..") == "."
    refused("missing", workspace.real_path, "nothing/../../x")


def test_walking_honours_gitignore_at_every_level(workspace: Workspace, tmp_path: Path) -> None:
    """Ignored files and folders, .git and links are left out; a deeper file can take a name back in."""
    root = Path(workspace.root)
    for path in (
        ".git/config",
        "build/x.o",
        "sub/keep.log",
        "sub/drop.log",
        "top.log",
        "sub/deep/c.tmp",
        "sub/top.txt",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    (root / ".gitignore").write_text("# note\n*.log\n/build/\n\n[\n/top.txt\n")
    (root / "sub" / ".gitignore").write_text("!keep.log\n*.tmp\r\n")
    (root / "l.txt").symlink_to(tmp_path / "out" / "secret.txt")
    (root / "loop").symlink_to(".")
    assert [entry.path for entry in workspace.walk()] == [
        ".gitignore",
        "a.txt",
        "sub/.gitignore",
        "sub/b.txt",
        "sub/keep.log",
        "sub/top.txt",
    ]
    assert [entry.path for entry in workspace.walk("sub/deep")] == []
    assert "sub/deep/c.tmp" in [entry.path for entry in workspace.walk("sub", ignored=True)]
    refused("kind", lambda: list(workspace.walk("a.txt")))


def test_a_file_is_text_by_its_first_bytes() -> None:
    """No zero byte is in a text, but in UTF-16; an empty file is one."""
    assert looks_like_text(b"")
    assert looks_like_text(b"text")
    assert looks_like_text("text".encode("utf-16"))
    assert not looks_like_text(b"a\0b")


def test_no_descriptor_is_left_open(workspace: Workspace) -> None:
    """Whatever succeeds or fails, the workspace holds its own descriptor and no other."""
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    (Path(workspace.root) / "in").symlink_to("sub")
    workspace.read_bytes("in/../sub/b.txt")
    workspace.write_bytes("p/q/r", b"")
    list(workspace.walk())
    next(workspace.walk("sub"))
    workspace.delete("p")
    for path in ("in/../../out/x", "a.txt/x", "no/x", "sub/sub"):
        with pytest.raises(PathError):
            workspace.read_bytes(path)
    with pytest.raises(PathError):
        workspace.write_bytes("q/../../x", b"")
    if before:
        assert before == len(os.listdir("/proc/self/fd"))


def test_a_workspace_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A missing folder, a file, and a name with NUL are refused when the workspace is opened."""
    (tmp_path / "f").write_text("")
    refused("missing", Workspace, tmp_path / "no")
    refused("kind", Workspace, tmp_path / "f")
    refused("malformed", Workspace, "a\0b")


def test_the_whole_disk_can_be_a_workspace(tmp_path: Path) -> None:
    """With / as its root nothing is outside, and `..` at the top stays there."""
    (tmp_path / "f").write_text("x")
    with Workspace("/", method="walk") as workspace:
        assert workspace.read_bytes(f"../..{tmp_path}/f") == b"x"


NAMES = st.sampled_from(["a", "b", "c", "..", "."])
PATHS = st.lists(NAMES, min_size=1, max_size=6).map("/".join)
TARGETS = st.one_of(
    PATHS, st.sampled_from(["{WS}", "{WS}/a", "{WS}/b/c", "{OUT}", "/", "../ws/a", "../out/a", "../out"])
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["file", "folder", "link"]), st.lists(st.sampled_from("abc"), min_size=1, max_size=3), TARGETS
    ),
    max_size=8,
)


@given(steps=STEPS, paths=st.lists(st.one_of(PATHS, TARGETS), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tree_of_links_gives_what_the_kernel_gives_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[str], str]], paths: list[str]
) -> None:
    """In any tree, a path that is read gives the file realpath finds inside; both ways of resolving agree."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("tree")))
    root, out = base / "ws", base / "out"
    for folder in (root, out):
        folder.mkdir()
    (out / "a").write_text("OUTSIDE")

    def filled(text: str) -> str:
        return text.replace("{WS}", str(root)).replace("{OUT}", str(out))

    for kind, parts, target in steps:
        at = root.joinpath(*parts)
        if os.path.lexists(at) or not os.path.isdir(at.parent) or not os.path.realpath(at.parent).startswith(str(root)):
            continue
        match kind:
            case "file":
                at.write_text(os.path.realpath(at))
            case "folder":
                at.mkdir()
            case _:
                at.symlink_to(filled(target))
    for path in map(filled, paths):
        answers: list[bytes | str] = []
        for method in METHODS:
            with Workspace(root, method=method) as workspace:
                try:
                    answers.append(workspace.read_bytes(path))
                except PathError as error:
                    answers.append(str(error))
        assert answers == answers[:1] * len(METHODS)
        real = os.path.realpath(os.path.join(root, path))
        if isinstance(answers[0], bytes):
            assert real.encode() == answers[0]
        elif "outside" not in answers[0] and real.startswith(f"{root}/") and os.path.isfile(real):
            # The kernel opens it only if every step of the way exists, which realpath does not ask.
            with pytest.raises(OSError):
                os.close(os.open(os.path.join(root, path), os.O_RDONLY))


def test_a_process_killed_while_it_writes_leaves_no_draft(tmp_path: Path) -> None:
    """Killed in the middle of a write, the old file stands as it was, and nothing lies beside it."""
    try:
        os.close(os.open(tmp_path, os.O_RDWR | os.O_TMPFILE, 0o600))
    except (AttributeError, OSError):
        pytest.skip("this file system knows no files without a name")
    (tmp_path / "a.txt").write_text("old")
    program = (
        "import os, sys\n"
        "from runtime.policy.paths import Workspace\n"
        "def die(written): os.kill(os.getpid(), 9)\n"
        "Workspace(sys.argv[1]).write_bytes(sys.argv[2], b'new', check=die)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(runtime.__path__[0]).parent)}
    for name in ("a.txt", "b.txt"):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path), name], check=False, env=environment)
        assert -9 == done.returncode
    assert {"a.txt": "old"} == {path.name: path.read_text() for path in tmp_path.iterdir()}
