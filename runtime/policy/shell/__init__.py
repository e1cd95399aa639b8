"""Command lines: what they execute, and whether the rules allow it. Pure: nothing here runs anything."""

from .judge import Said as Said
from .judge import each_of as each_of
from .judge import judge as judge
from .line import Executed as Executed
from .line import Line as Line
from .line import read_line as read_line
