"""The pause between two tries grows, has a cap, and is spread out."""

from heron.backoff import is_exhausted, pause_after


def check_pause_doubles():
    """Each failure doubles the pause."""
    assert [pause_after(n) for n in (1, 2, 3)] == [2.0, 4.0, 8.0]


def check_pause_is_capped():
    """No job waits longer than ten minutes."""
    assert pause_after(40) == 600.0


def check_last_attempt():
    """The fifth failure is the last one."""
    assert is_exhausted(5, 5)
