"""A worker: takes a job, runs it in a child process, stores how it ended."""

import os
import signal
import threading
import time

TERMINATE_GRACE_SECONDS = 5


class Worker:
    def __init__(self, queue, settings):
        self.queue = queue
        self.settings = settings
        self.name = f"{os.uname().nodename}-{os.getpid()}"
        self.stopping = threading.Event()

    def run_forever(self):
        """Work until told to stop; SIGTERM lets the running job finish first."""
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        while not self.stopping.is_set():
            job = self.queue.take(self.name, self.settings.lease_seconds)
            if job is None:
                time.sleep(self.settings.poll_seconds)
            else:
                self.run_one(job)

    def run_one(self, job):
        renewer = threading.Thread(target=self._renew_lease, args=(job,), daemon=True)
        renewer.start()
        child = os.fork()
        if child == 0:
            self._execute(job)
        self._await_child(child, job)

    def _renew_lease(self, job):
        # A third of the lease leaves two more chances when the disk is slow.
        while not self.stopping.wait(self.settings.lease_seconds / 3):
            self.queue.renew(job, self.name)

    def _await_child(self, child, job):
        deadline = time.monotonic() + (job.timeout or float("inf"))
        while time.monotonic() < deadline:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.05)
        os.kill(child, signal.SIGTERM)
        time.sleep(TERMINATE_GRACE_SECONDS)
        os.kill(child, signal.SIGKILL)
        return None
