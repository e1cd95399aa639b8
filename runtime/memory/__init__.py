"""Facts that outlive a run: what agents noted for a workspace or its user, asked for by a tool, never shown unasked."""
