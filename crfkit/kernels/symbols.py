"""Log-probabilities of symbols, of which few are listed, and counts of symbols by label.

Shapes: ``N`` tokens, ``K`` labels, ``D`` attributes, ``B`` blocks of attributes.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel


class ListedLogs(NamedTuple):
    """Log-probabilities of attributes in blocks, of which each has others that are all alike."""

    starts: IntArray  # (B + 1,) where the attributes of each block begin, and the end
    ptr: IntArray  # (D + 1,) where the listed ones of each attribute begin, and the end
    labels: CodeArray  # (n,) in order
    values: FloatArray  # (n,)
    floor: FloatArray  # (B, K) those that are not listed


@kernel
def add_listed(
    ptr: IntArray, indices: CodeArray, begin: int, end: int, table: ListedLogs, out: FloatArray
) -> None:
    """``out[t, k] += sum_a log P(a | k)`` over the attributes of token ``begin + t``, in order."""
    n_labels = out.shape[1]
    for t in range(begin, end):
        row, block = t - begin, 0
        for n in range(ptr[t], ptr[t + 1]):
            attribute = indices[n]
            while attribute >= table.starts[block + 1]:
                block += 1
            first = 0
            for p in range(table.ptr[attribute], table.ptr[attribute + 1]):
                label = table.labels[p]
                for k in range(first, label):
                    out[row, k] += table.floor[block, k]
                out[row, label] += table.values[p]
                first = label + 1
            for k in range(first, n_labels):
                out[row, k] += table.floor[block, k]


@kernel
def add_shares(
    ptr: IntArray,
    indices: CodeArray,
    begin: int,
    end: int,
    shares: FloatArray,  # (end - begin, K)
    out: FloatArray,  # (D, K) out, added to
) -> None:
    """``out[a, k] += shares[t, k]`` for each attribute ``a`` of token ``begin + t``."""
    for t in range(begin, end):
        for n in range(ptr[t], ptr[t + 1]):
            attribute = indices[n]
            for k in range(out.shape[1]):
                out[attribute, k] += shares[t - begin, k]
