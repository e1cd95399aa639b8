"""The tools that come with Elenco, by name; agent files choose from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._tool import Tool
from .ask import ASK_TOOLS
from .compare import COMPARE_TOOLS
from .edit import EDIT_TOOLS
from .edit_patch import PATCH_TOOLS
from .files import find_files, list_files, read_file, write_file
from .jobs import JOB_TOOLS
from .notes import NOTE_TOOLS
from .passages import search_passages
from .places import PLACE_TOOLS
from .recall import MEMORY_TOOLS
from .search import search_text
from .shell import SHELL_TOOLS
from .symbols import OUTLINE_TOOLS
from .web import WEB_TOOLS
from .web_search import search_web_of

if TYPE_CHECKING:
    from runtime.config import SearchConfig


def built_in(search: SearchConfig | None = None) -> tuple[Tool, ...]:
    """All of them but those that belong to one run or one actor (`read_result`, delegation).

    `search` says whom search_web asks.
    """
    return (
        *(list_files, find_files, search_text, search_passages, read_file, write_file),
        *(*EDIT_TOOLS, *PATCH_TOOLS, *PLACE_TOOLS, *COMPARE_TOOLS, *OUTLINE_TOOLS),
        *(*WEB_TOOLS, search_web_of(search), *ASK_TOOLS, *NOTE_TOOLS),
        *(*SHELL_TOOLS, *JOB_TOOLS, *MEMORY_TOOLS),
    )
