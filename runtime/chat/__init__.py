"""The terminal chat: a screen process that shows a conversation, and a runtime process that works on it."""
