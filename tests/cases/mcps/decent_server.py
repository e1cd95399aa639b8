"""A server over streamable HTTP or SSE, on the SDK: python decent_server.py PORT (http|sse) [TOKEN]."""

import sys
import time

import anyio
from mcp.server.mcpserver import Context, MCPServer

port, transport = int(sys.argv[1]), sys.argv[2]
token = sys.argv[3] if len(sys.argv) > 3 else ""
server = MCPServer("decent", version="1")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Count slowly."""
    for number in range(to):
        await anyio.sleep(0.05)
        await ctx.report_progress(number + 1, to, "counting")
    return "counted"


@server.tool(structured_output=False)
def big(size: int) -> str:
    """A long text."""
    return "x" * size


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await anyio.sleep(seconds)
    return "waited"


@server.resource("note://one")
def note() -> str:
    """One note."""
    return "the note"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


app = server.sse_app() if transport == "sse" else server.streamable_http_app()


async def guarded(scope, receive, send):
    if token and scope["type"] == "http":
        headers = {key.decode().lower(): value.decode() for key, value in scope["headers"]}
        if headers.get("authorization") != f"Bearer {token}":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
    await app(scope, receive, send)


if __name__ == "__main__":
    import uvicorn

    del time
    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")
