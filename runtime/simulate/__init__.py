"""The whole runtime against an adversary: seeded worlds with bad models, tools, stores and people, in virtual time."""

from .simulation import Broken as Broken
from .simulation import simulate as simulate
from .tally import Tally as Tally
