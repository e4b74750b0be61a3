"""Hash tables and distances of strings."""
