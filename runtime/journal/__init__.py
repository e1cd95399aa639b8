"""The journal: what happened in a run, durable, and the pure fold that makes state of it again."""

from .blobs import Blobs as Blobs
from .durable import SqliteJournal as SqliteJournal
from .durable import open_journal as open_journal
from .folder import RunFolder as RunFolder
from .folder import State as State
from .folder import create_run as create_run
from .folder import find_run as find_run
from .folder import open_state as open_state
from .index import RunRow as RunRow
from .interface import AlreadyRecorded as AlreadyRecorded
from .interface import Clock as Clock
from .interface import Journal as Journal
from .interface import Publish as Publish
from .memory import MemoryJournal as MemoryJournal
from .overview import overview as overview
from .read import Follower as Follower
from .read import RunInfo as RunInfo
from .read import RunReader as RunReader
from .read import follow as follow
from .read import load as load
from .read import runs as runs
from .replay import fold as fold
from .replay import replay as replay
from .state import ActorState as ActorState
from .state import CallState as CallState
from .state import RunState as RunState
