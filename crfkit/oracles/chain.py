"""What compiled visits of batches on chains have in common: workspaces, and sums of losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import FloatArray
from crfkit.compiler.jit import frozen
from crfkit.compiler.simd import padded
from crfkit.oracles.weights import aligned

# Batches that are visited without a look at Ctrl-C.
AT_ONCE = 256


def visit_workspace(n_labels: int, most: int, tokens: int, sequences: int) -> tuple[Any, ...]:
    """Return the workspace of a thread: for a batch and a part of so many tokens."""

    def both(*shape: int) -> tuple[FloatArray, FloatArray]:
        array = np.empty(shape)
        return array, frozen(array)

    def table() -> tuple[FloatArray, FloatArray]:
        array = np.empty((n_labels, n_labels))
        return array, frozen(array[None])

    target, spare = aligned(tokens, padded(n_labels)), np.empty((tokens, n_labels))
    pair, factor, turned, shift = table(), table(), table(), both(1)
    starts = np.empty(sequences + 1, np.int64)
    square = (1, n_labels, n_labels)
    flows = np.empty(square), np.empty(square)
    room = (
        *both(most, n_labels), *both(most), starts, frozen(starts), *both(sequences),
        np.empty(most), np.empty((1, n_labels)), np.empty((tokens, n_labels)),
        np.empty((tokens, n_labels)), np.empty((3, n_labels)), np.empty(sequences),
        np.empty(sequences, np.int64), frozen(np.arange(sequences)),
        frozen(np.zeros(1, np.uint32)),
    )  # fmt: skip
    read = (pair[1], factor[1], turned[1], shift[1])
    return (
        (target, target.reshape(-1), spare, frozen(spare), np.empty_like(spare)),
        (np.empty(square[1:]), pair[0], factor[0], turned[0], shift[0]),
        read, flows, room,
    )  # fmt: skip
