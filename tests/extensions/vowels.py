"""A feature function: what a word sounds like, roughly."""

import re


def vowels(string: str) -> str:
    """Return the vowels of a word, each run of them once: ``sleeping`` gives ``ei``."""
    return "".join(run[0] for run in re.findall("[aeiou]+", string.lower()))
