"""Skills: folders with a SKILL.md that tell an agent how a kind of work is done, read when they are wanted."""

from .document import Allowed as Allowed
from .document import Problem as Problem
from .document import Reading as Reading
from .document import Skill as Skill
from .document import read_document as read_document
