"""What users run around an actor's steps: commands and functions that may refuse, change or add, and are on record."""
