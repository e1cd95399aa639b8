"""MCP servers: what settings say of them, the connections to them, their tools as an agent's own, the cast as one."""
