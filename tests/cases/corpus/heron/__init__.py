"""A small job queue in a SQLite file."""

from .queue import GiveUp, Queue

__all__ = ["GiveUp", "Queue"]
