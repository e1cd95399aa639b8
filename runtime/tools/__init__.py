"""What agents can do: the tool contract, the box they are kept in, and the built-in tools."""

from ._arguments import Arguments as Arguments
from ._tool import Effects as Effects
from ._tool import Output as Output
from ._tool import PathUse as PathUse
from ._tool import SignatureError as SignatureError
from ._tool import Tool as Tool
from ._tool import ToolContext as ToolContext
from ._tool import ToolError as ToolError
from ._tool import answered_for as answered_for
from ._tool import is_async as is_async
from ._tool import tool as tool
from ._toolbox import NO_HOOKS as NO_HOOKS
from ._toolbox import Problem as Problem
from ._toolbox import RunHooks as RunHooks
from ._toolbox import ToolBox as ToolBox
from .schedule import rounds as rounds
from .subjects import subject_of as subject_of
