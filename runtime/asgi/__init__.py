"""A small HTTP/1.1 server for ASGI applications on Trio: no client can hold it up, cancelling it ends it at once."""

from ._bounds import Bounds as Bounds
from ._exchange import App as App
from ._exchange import Message as Message
from ._exchange import Receive as Receive
from ._exchange import Scope as Scope
from ._exchange import Send as Send
from ._server import serve as serve
