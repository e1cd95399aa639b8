"""Which parts of a result change by themselves, and which only look like it."""

import pytest

from runtime.limits.loops.volatile import is_clock, masked, masked_error, measures, reads_as_error, says_something

SAME = [
    ("1 failed, 7 passed in 0.64s", "1 failed, 7 passed in 12.01s"),
    ("inactive\n[exit 3, 39 ms, pid 30550]", "inactive\n[exit 3, 8 ms, pid 412]"),
    ('{"ok": true, "sent_at": "2025-11-03T09:14:34.765Z"}', '{"ok": true, "sent_at": "2025-11-04T01:00:00Z"}'),
    ('{"request_id": "req_8f3a2b", "state": "up"}', '{"request_id": "req_11aa00", "state": "up"}'),
    ("sent as ce3e396c-a3d4-4963-a873-c910880d38a2", "sent as 072c4441-90e9-4471-a568-fc094e2c39aa"),
    ("running; idle_for_seconds=4 updated_at=2026-01-01T10:00:00Z", "running; idle_for_seconds=99 updated_at=now"),
    ("done after 4m 12s", "done after 11m 3s"),
    ("web Up 2 minutes (starting)", "web Up 14 minutes (starting)"),
    ("trace 4bf92f3577b34da6a3ce929d0e0e4736 ok", "trace 00f067aa0ba902b7aaaaaaaa0e0e4736 ok"),
    ("wrote /tmp/tmpab12cd_x", "wrote /tmp/tmpzz99yy_x"),
    ("object at 0x7f3a9c001", "object at 0x7f3a9cfff"),
    ("seen at 1760000000123", "seen at 1760000999999"),
    ("pod-1 Running 5m12s", "pod-1 Running 47h"),
    ("seen 3d4h ago", "seen 12d ago"),
    ("stamp 1730712345.123 ok", "stamp 1730712399.9 ok"),
    ('{"responseTime": 0.31, "state": "up"}', '{"responseTime": 4.7, "state": "up"}'),
    ("Started at 10:00:01, nothing to do", "Started at 11:22:33, nothing to do"),
]
DIFFERENT = [
    ("9 failed, 21 passed", "8 failed, 22 passed"),
    ("running 8%", "running 16%"),
    ("Row(id=1, w=37)", "Row(id=2, w=74)"),
    ("mean 12.54 ms, p95 18.66 ms", "mean 15.15 ms, p95 18.66 ms"),
    ("uploading, ETA 30 s", "uploading, ETA 20 s"),
    ("copying, 40 s left", "copying, 30 s left"),
    ("throughput 849.0 req/s (9.9 s)", "throughput 621.1 req/s (9.9 s)"),
    ("2025-11-06T08:00:11Z", "2025-11-06T08:04:11Z"),
    ("10:00:01 GC\n10:00:02 flush", "10:00:02 GC\n10:00:03 flush"),
    ("calendar: Sep 2025", "calendar: Oct 2025"),
    ("src/a.py:41 in f()", "src/a.py:42 in f()"),
    ("remaining_time=40", "remaining_time=30"),
    ("ticket 48213", "ticket 48214"),
    ("version v1.2.3", "version v1.2.4"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_what_changes_by_itself_does_not_count(one: str, two: str) -> None:
    """Times, durations, ids and process numbers make no new answer."""
    assert one != two
    assert masked(one) == masked(two)


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_what_says_something_counts(one: str, two: str) -> None:
    """Figures, progress, measurements, log entries and a clock's own answer do."""
    assert masked(one) != masked(two)


def test_durations_count_where_they_are_asked_for() -> None:
    """A benchmark's durations are its answer; its time of day is not."""
    assert measures('{"command":"./bench --quick"}')
    assert not measures('{"command":"make test"}')
    assert masked("real 0m12.5s for all", True) != masked("real 0m15.1s for all", True)
    assert masked("at 10:00:01 all went well", True) == masked("at 10:00:09 all went well", True)


def test_clock_is_nothing_but_time() -> None:
    """An answer that holds nothing but time is a clock; an empty list is not."""
    assert is_clock("2025-11-06T08:00:11Z")
    assert is_clock("12.3 s")
    assert not is_clock("[]")
    assert not is_clock("12 files in 3 s")


def test_failure_is_known_whatever_it_quotes() -> None:
    """Numbers, quoted text and what the call itself said do not make a new failure."""
    one = masked_error("cat: conf/app.toml: No such file (line 3)", ["conf/app.toml"])
    two = masked_error("cat: etc/db.ini: No such file (line 12)", ["etc/db.ini"])
    assert one == two
    assert masked_error('"x = 1" not found', []) == masked_error('"y = 2" not found', [])


def test_silent_failure_says_nothing() -> None:
    """A search without a match exits with 1 and is silent: that is an answer, not a failure."""
    assert not says_something("")
    assert not says_something("[exit 1]")
    assert not says_something("exit code 1, no output")
    assert says_something("exit 1: permission denied")


def test_failures_without_a_flag_are_recognised_by_how_they_begin() -> None:
    """Text that begins like an error is one; text that speaks of errors is not."""
    assert reads_as_error("Error: old text not found")
    assert reads_as_error("fatal: not a git repository")
    assert not reads_as_error("0 errors, 3 warnings")
    assert not reads_as_error("The error was fixed")
