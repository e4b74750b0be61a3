"""Sums of numbers that are rounded as they are written, whatever surrounds them in a kernel."""

from __future__ import annotations

from typing import Any

from crfkit.compiler.simd import emitted


def _emit_sum(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return builder.fadd(*values)  # without the flag that lets sums be added up in another order


@emitted(lambda x, y: x(x, y), _emit_sum)
def exact_sum(x: float, y: float) -> float:
    """Return ``x + y``, rounded at once: the same wherever it is computed again."""
    return x + y
