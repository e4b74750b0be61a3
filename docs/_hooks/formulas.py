"""Formulas become MathML, which browsers show without any script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert


def mathml(formula: str, block: bool = False) -> str:
    """Return a formula of LaTeX as MathML."""
    return convert(formula.strip(), display="block" if block else "inline")


def with_formulas(text: str) -> str:
    """Replace ``$$...$$`` and ``$...$`` of a page, outside of its code."""
    parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.M | re.S)
    for i in range(0, len(parts), 2):
        found = re.sub(r"\$\$(.+?)\$\$", lambda m: mathml(m[1], block=True), parts[i], flags=re.S)
        parts[i] = re.sub(r"(?<![\\$\w])\$([^$\n]+)\$(?!\w)", lambda m: mathml(m[1]), found)
    return "".join(parts)
