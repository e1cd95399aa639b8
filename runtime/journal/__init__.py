"""The journal: what happened in a run, durable, and the pure fold that makes state of it again."""

from .interface import AlreadyRecorded as AlreadyRecorded
from .interface import Clock as Clock
from .interface import Journal as Journal
from .interface import Publish as Publish
from .memory import MemoryJournal as MemoryJournal
