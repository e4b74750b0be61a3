"""Recurrences over segmentations."""
