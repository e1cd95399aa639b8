"""What the queue keeps: order inside a lane, size limits, and no job taken twice."""


def check_two_workers_never_take_the_same_job(queue):
    """Two processes that take at the same time get two different jobs."""
    queue.put("mail")
    queue.put("mail")
    first, second = queue.take("a", 30), queue.take("b", 30)
    assert first != second


def check_large_arguments_are_refused(queue):
    """A job whose arguments take more than 64 KiB is refused with a clear error."""
    assert raises(ArgumentsTooLarge, lambda: queue.put("mail", body="x" * 70_000))
