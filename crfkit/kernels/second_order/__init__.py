"""Recurrences over second-order chains."""
