"""What holds for all tests, wherever they are run from."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Run in the background of a shell: commands that tests start would inherit it, and be deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
