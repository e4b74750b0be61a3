"""Cells such as ``%x[-1,0]`` in the lines of CRF++ and Wapiti."""

from __future__ import annotations

import re
from collections.abc import Iterator

CELL = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")


def template_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, with their numbers from 1."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def bad_line(number: int, line: str, problem: str) -> ValueError:
    """Return the error of a line."""
    return ValueError(f"line {number} of the templates, {line!r}: {problem}.")
