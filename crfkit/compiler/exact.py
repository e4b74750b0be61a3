"""Sums and differences that are rounded as they are written, whatever surrounds them."""

from __future__ import annotations

from typing import Any

from crfkit.compiler.simd import emitted


def _emit_sum(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    # Numba gives all its flags to an instruction that has none: among them the one that lets sums
    # be added up in another order. This one says that the sign of 0 does not matter.
    return builder.fadd(*values, flags=("nsz",))


def _emit_difference(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    return builder.fsub(*values, flags=("nsz",))


@emitted(lambda x, y: x(x, y), _emit_sum)
def exact_sum(x: float, y: float) -> float:
    """Return ``x + y``, rounded at once: the same wherever it is computed again."""
    return x + y


@emitted(lambda x, y: x(x, y), _emit_difference)
def exact_difference(x: float, y: float) -> float:
    """Return ``x - y``, rounded at once."""
    return x - y
