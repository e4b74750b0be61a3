"""Recurrences over linear chains."""
