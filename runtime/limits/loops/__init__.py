"""Loop detection for one actor: pure verdicts, never side effects."""

from .chant import ChantGuard as ChantGuard
from .guard import Guard as Guard
from .settings import GuardSettings as GuardSettings
from .settings import Ladder as Ladder
from .settings import guard_settings as guard_settings
from .steps import CallSeen as CallSeen
from .steps import Event as Event
from .steps import Flags as Flags
from .steps import StepSeen as StepSeen
from .verdicts import Block as Block
from .verdicts import Evidence as Evidence
from .verdicts import Nudge as Nudge
from .verdicts import Ok as Ok
from .verdicts import Refusal as Refusal
from .verdicts import Stop as Stop
from .verdicts import Verdict as Verdict
from .verdicts import note as note
from .verdicts import rank as rank
