"""Agent files of other runtimes, read with their meaning kept."""

from .models import settled as settled
from .read import STYLES as STYLES
from .read import load_foreign as load_foreign
from .read import read_foreign as read_foreign
