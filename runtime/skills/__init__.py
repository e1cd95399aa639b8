"""Skills: folders with a SKILL.md that tell an agent how a kind of work is done, read when they are wanted."""
