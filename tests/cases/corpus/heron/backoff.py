"""How long a failed job waits: pure arithmetic, the random part comes in as an argument."""


def pause_after(failures, base=2.0, cap=600.0, jitter=0.0):
    """Seconds until the next try; `jitter` is between 0 and 1 and adds up to a tenth."""
    pause = min(cap, base**failures)
    return pause * (1 + jitter / 10)


def is_exhausted(attempt, max_attempts):
    return attempt >= max_attempts
