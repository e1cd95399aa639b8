"""The web dashboard: a process of its own on asyncio, a reader of journals and a client of live runs' sockets."""
