"""What samples and entropies of all structures share."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, FloatArray, Potentials
from crfkit.compiler.jit import frozen

# An entropy below this share of the numbers whose difference it is has lost digits. By logarithms,
# which take more time, it is a sum of numbers that are not negative.
LEAST_SHARE = 1e-6


def as_uniforms(potentials: Potentials, uniforms: FloatArray) -> FloatArray:
    """Return the numbers that choose labelings, (n, N), as kernels read them, or ValueError."""
    numbers: FloatArray = frozen(np.asarray(uniforms, np.float64))
    if numbers.ndim != 2 or numbers.shape[1] != len(potentials.unary):
        raise ValueError(
            f"uniforms must have a column for each of the {len(potentials.unary)} tokens, not the "
            f"shape {numbers.shape}."
        )
    return numbers


def are_small(potentials: Potentials, entropy: FloatArray, known: BoolArray) -> BoolArray:
    """Whether an entropy is lost in rounding, or not known, (S,): it is summed by logarithms.

    Entropies, (2, S), stand over the size of the numbers whose differences they are.
    """
    exact = known & (entropy[0] >= LEAST_SHARE * entropy[1])
    small: BoolArray = (np.diff(potentials.offsets) > 0) & ~exact
    return small
