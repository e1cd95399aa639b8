"""Watching and steering a run: the log stream, its lines, and the control socket."""

from .client import Client as Client
from .client import Disconnected as Disconnected
from .client import NotRunning as NotRunning
from .client import Subscription as Subscription
from .client import connect as connect
from .commands import Answer as Answer
from .commands import Approve as Approve
from .commands import Cancel as Cancel
from .commands import ChangeLimits as ChangeLimits
from .commands import Command as Command
from .commands import Commands as Commands
from .commands import Compact as Compact
from .commands import Continue as Continue
from .commands import Deny as Deny
from .commands import Hold as Hold
from .commands import Say as Say
from .commands import Status as Status
from .control import Control as Control
from .control import serve as serve
from .lines import line as line
from .lines import record_from as record_from
from .runtime_folder import runtime_folder as runtime_folder
from .stream import LogStream as LogStream
from .stream import Reader as Reader
from .unattended import append_command as append_command
from .unattended import deliver as deliver
