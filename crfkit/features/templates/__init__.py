"""Feature templates of tokens, compiled once and applied to whole columns."""
