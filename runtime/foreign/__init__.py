"""Agent files of other runtimes, read with their meaning kept: `read` and `models` are where to begin."""
