"""The walls around a command: what it sees, may write, may call and may use up. Views and filters are pure values."""
