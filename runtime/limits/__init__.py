"""What bounds a run: the budget tree with its clocks, and the loop guard. Verdicts only, never side effects."""
