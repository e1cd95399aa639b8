"""Where runs are kept, and what they are called."""

from __future__ import annotations

import os
import random
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import JournalError, UsageError
from runtime.journal import create_run, find_run, open_state
from runtime.journal.folder import ALPHABET, LETTERS, network_file_system, new_run_id, run_ids, state_path


@pytest.mark.parametrize(
    ("flag", "env", "home", "expected"),
    [
        ("/flag", {"ELENCO_STATE": "/env", "XDG_STATE_HOME": "/xdg"}, "/home/ada", "/flag"),
        (None, {"ELENCO_STATE": "/env", "XDG_STATE_HOME": "/xdg"}, "/home/ada", "/env"),
        (None, {"ELENCO_STATE": "", "XDG_STATE_HOME": "/xdg"}, "/home/ada", "/xdg/elenco"),
        (None, {"XDG_STATE_HOME": "relative"}, "/home/ada", "/home/ada/.local/state/elenco"),
        (None, {}, "/home/ada", "/home/ada/.local/state/elenco"),
        (None, {}, "", None),
        (None, {}, None, None),
    ],
)
def test_the_first_that_names_a_folder_wins(
    flag: str | None, env: dict[str, str], home: str | None, expected: str | None
) -> None:
    """The flag wins over ELENCO_STATE, that over XDG_STATE_HOME, that over the home folder."""
    found = state_path(flag, env, home)
    assert (str(found) if found is not None else None) == expected


def test_what_we_make_is_private(tmp_path: Path) -> None:
    """The state folder and every run's folder are for their owner only, whatever the umask; a found one stays as is."""
    umask = os.umask(0)
    try:
        state = open_state(str(tmp_path / "deep" / "state"))
        run = create_run(state, random.Random(1))
        (tmp_path / "shared").mkdir(0o755)
        shared = open_state(str(tmp_path / "shared"))
    finally:
        os.umask(umask)
    for folder in (state.path, state.runs, run.path, shared.runs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.path.stat().st_mode) == 0o755


def test_without_a_usable_home_a_private_folder_is_used_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that cannot hold the state gives a private folder under the temporary one, and a note that says so."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "file").write_text("")
    state = open_state(None, {"HOME": str(tmp_path / "file")})
    assert state.path.parent == tmp_path
    assert str(state.path) in state.note
    assert "--state" in state.note
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    state.path.chmod(0o777)
    with pytest.raises(JournalError, match="not a private folder of yours"):
        open_state(None, {"HOME": str(tmp_path / "file")})


def test_who_only_looks_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look, a folder that is missing is one without runs; nothing is made, and what is in its way is told."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "file").write_text("")
    state = open_state(str(tmp_path / "none" / "state"), to_look=True)
    assert (tmp_path / "none" / "state", []) == (state.path, run_ids(state))
    assert tmp_path / ".local/state/elenco" == open_state(None, {"HOME": str(tmp_path)}, to_look=True).path
    with pytest.raises(UsageError, match="no run 'k7f2'"):
        find_run(state, "k7f2")
    with pytest.raises(UsageError, match="cannot use the state folder"):
        open_state(str(tmp_path / "file"), to_look=True)
    assert ["file"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_was_asked_for_is_used_or_refused(tmp_path: Path) -> None:
    """A state folder named by the user is never replaced by another one."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot use the state folder"):
        open_state(str(tmp_path / "file" / "state"))


@given(st.integers(0, 1 << 32), st.integers(4, 12))
def test_run_ids_are_short_and_hard_to_misread(seed: int, length: int) -> None:
    """An id begins with a letter and has none that is taken for another sign."""
    id = new_run_id(random.Random(seed), length)
    assert len(id) == length
    assert id[0] in LETTERS
    assert set(id) <= set(ALPHABET)
    assert not set(ALPHABET) & set("ilou")


def test_a_taken_id_makes_the_next_one_longer(tmp_path: Path) -> None:
    """When the same short id comes up again, a longer one is tried."""
    state = open_state(str(tmp_path))
    first = create_run(state, random.Random(7))
    second = create_run(state, random.Random(7))
    assert len(first.id) == 4
    assert len(second.id) > 4
    assert {first.id, second.id} == {path.name for path in state.runs.iterdir()}


def test_an_unknown_run_is_named_with_the_nearest(tmp_path: Path) -> None:
    """A mistyped run id is a usage error that names the nearest one; a path is never followed."""
    state = open_state(str(tmp_path))
    run = create_run(state, random.Random(7))
    assert find_run(state, run.id) == run
    with pytest.raises(UsageError, match=f"did you mean '{run.id}'"):
        find_run(state, run.id[:-1] + "0")
    with pytest.raises(UsageError):
        find_run(state, "../runs/" + run.id)


MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:31 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/ada/fast\\040disk rw - xfs /dev/sdb1 rw
40 22 0:40 / /mnt/c rw,noatime - 9p drvfs rw,dirsync,aname=drvfs;path=C:\\
41 22 0:41 / /vm rw - 9p share rw,trans=virtio
50 22 0:50 / /share rw shared:7 master:2 - fuse.sshfs me@host:/ rw
51 50 8:3 / /share rw - ext4 /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib", None),
        ("/home", "nfs4"),
        ("/home/ada/.local/state", "nfs4"),
        ("/home/ada/fast disk/state", None),
        ("/homes", None),
        ("/mnt/c/Users", "9p"),
        ("/vm/state", None),
        ("/share/state", None),
    ],
)
def test_network_file_systems_are_known_by_their_mount(path: str, kind: str | None) -> None:
    """The innermost mount over a path tells whether it lies on a network file system."""
    assert network_file_system(MOUNTS, path) == kind


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_mount_table_can_be_read(text: str, path: str) -> None:
    """A mount table in a form nobody foresaw names a kind that stands in it, or none."""
    kind = network_file_system(text, "/" + path)
    assert kind is None or kind in text
