"""What samples and entropies of all structures share."""

from __future__ import annotations

import numpy as np

from crfkit._types import BoolArray, FloatArray, Potentials
from crfkit.compiler.jit import frozen

# An entropy of fewer nats a token is a small difference of larger numbers. By logarithms, which
# take more time, it is a sum of numbers that are not negative.
LEAST_ENTROPY = 1e-4


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
    """Whether an entropy, (S,), is lost in rounding, or not known: it is summed by logarithms."""
    sizes = np.diff(potentials.offsets)
    small: BoolArray = (sizes > 0) & ~(known & (entropy >= LEAST_ENTROPY * sizes))
    return small
