"""Agent files of other runtimes, read with their meaning kept."""

from .read import STYLES as STYLES
from .read import Style as Style
from .read import load_foreign as load_foreign
from .read import read_foreign as read_foreign
