"""The first program in every box: it sets the limits, makes sure of the guarded places, and becomes the command. Pure.

It is bash itself, whose limits cost nothing; the command never runs before they hold. The guarded places are looked at
from inside, once they are mounted: a path exchanged for a link meanwhile has another number, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from .walls import Caps

MOVED = 125
"""The exit code where a guarded place was not what it should be."""
MOVED_TEXT = "the files that govern agents were moved while the command started: it was not run"
LONGEST = 100_000
"""Bytes of a command line that fit in one argument."""

_ENTRY = """
{
    ulimit -c 0
    ulimit -f "$1"; ulimit -n "$2"; ulimit -t "$3"
    [[ $4 == - ]] || ulimit -u "$4"
    ulimit -v "$5"
} 2>/dev/null
command=$6 expected=$7
shift 7
if (( $# )) && [[ $(stat -c %d:%i -- "$@" 2>/dev/null) != "$expected" ]]; then
    echo "elenco: {moved}" >&2
    exit {code}
fi
exec "$BASH" --norc --noprofile -c "$command"
""".replace("{moved}", MOVED_TEXT).replace("{code}", str(MOVED))


def command_line(
    bash: str, command: str, caps: Caps, *, count: bool = True, guarded: Sequence[tuple[str, str]] = ()
) -> list[str]:
    """The words that run a command under its limits.

    `count` says that processes are counted for this command alone. `guarded` are paths with the `device:inode` that
    must be found there.
    """
    limits = [
        str(max(1, caps.file_size // 1024)),
        str(caps.open_files),
        str(caps.cpu),
        str(caps.processes) if count else "-",
        str(max(1, caps.memory // 1024)),
    ]
    expected = "\n".join(identity for _, identity in guarded)
    paths = [path for path, _ in guarded]
    return [bash, "--norc", "--noprofile", "-c", _ENTRY, "elenco", *limits, command, expected, *paths]
