"""Recurrences over rooted forests."""
