"""Elenco as an agent of editors, by the Agent Client Protocol: sessions over JSON-RPC, on Trio."""
