"""Names of test cases that are the same in every process, as tests that run in parallel need."""

import re


def stable(value):
    """The text of a value without addresses of memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def kinds(values):
    """The names of the types of some values: the text of a set has no order of its own."""
    return "-".join(type(value).__name__ for value in values)
