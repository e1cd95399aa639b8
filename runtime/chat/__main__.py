"""`python -m runtime.chat`: the runtime process of a chat; its screen starts it, with the flags of `elenco chat`."""

import sys
from contextlib import ExitStack

from runtime.cli import streams
from runtime.cli.command_chat import options_of
from runtime.cli.faults import show
from runtime.cli.parser import parse
from runtime.errors import ElencoError
from runtime.journal.elsewhere import kept_in
from runtime.journal.folder import open_state

from .host import run

if __name__ == "__main__":
    streams.prepare()
    with ExitStack() as told:
        try:
            arguments = parse(["chat", *sys.argv[1:]])[1]
            told.enter_context(kept_in(arguments.state))
            run(arguments, open_state(arguments.state), options_of(arguments, None, headless=False))
        except ElencoError as error:
            sys.exit(show(error))
