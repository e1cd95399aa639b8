"""Watching and steering a run: the log stream, its lines, and the control socket."""

from .stream import LogStream as LogStream
from .stream import Reader as Reader
