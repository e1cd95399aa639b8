"""A server over streamable HTTP (/mcp, with a token /closed/mcp) and SSE (/sse), on the SDK: decent_server.py PORT."""

import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

port = int(sys.argv[1])
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


modern, older = server.streamable_http_app(), server.sse_app()


async def app(scope, receive, send):
    """One application of three paths; /closed/mcp wants a token."""
    path = scope.get("path", "")
    if path.startswith("/closed/"):
        if dict(scope["headers"]).get(b"authorization") != b"Bearer s3cret":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        scope = {**scope, "path": path.removeprefix("/closed"), "raw_path": b"/mcp"}
    await (older if path.startswith(("/sse", "/messages")) else modern)(scope, receive, send)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
