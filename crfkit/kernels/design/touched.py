"""Sums over the weights that a small batch touches, in the order of its attributes.

Shapes: ``C`` attributes that occur in the batch, ``n`` weights of theirs, ``P`` weights in all. The
weights of attribute ``a`` are ``ptr[a]:ptr[a + 1]``, each with its column.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IdArray, PtrArray
from crfkit.compiler.jit import kernel


@kernel
def touched_pattern(
    columns: IdArray,  # (C,) attributes that occur
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    places: IdArray,  # (n,) out
    touched: IdArray,  # (n,) out
) -> None:
    """List the weights of all attributes that occur, and their columns, one after the other."""
    n = 0
    for c in range(columns.shape[0]):
        attribute = columns[c]
        for p in range(ptr[attribute], ptr[attribute + 1]):
            places[n] = p
            touched[n] = labels[p]
            n += 1


@kernel
def touched_gather(
    places: IdArray,  # (n,)
    touched: IdArray,  # (n,) columns
    local: PtrArray,  # (C + 1,) where the weights of each attribute start among the n
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,) tokens, in order within an attribute
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    weights: FloatArray,  # (P,)
    taken: FloatArray,  # (n,) workspace
    out: FloatArray,  # (N, K) out, added to
) -> None:
    """``out[t, k] += sum_a x[t, a] w[a, k]``, attribute by attribute."""
    for n in range(places.shape[0]):
        taken[n] = weights[places[n]]
    for c in range(local.shape[0] - 1):
        for n in range(col_ptr[c], col_ptr[c + 1]):
            row = rows[n]
            value = values[n * step]
            for p in range(local[c], local[c + 1]):
                out[row, touched[p]] += value * taken[p]


@kernel
def touched_scatter(
    touched: IdArray,  # (n,) columns
    local: PtrArray,  # (C + 1,) where the weights of each attribute start among the n
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,) tokens, in order within an attribute
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    residual: FloatArray,  # (N, K)
    out: FloatArray,  # (n,) out, added to
) -> None:
    """``out[place of (a, k)] += sum_t x[t, a] r[t, k]``: the adjoint of `touched_gather`."""
    for c in range(local.shape[0] - 1):
        for n in range(col_ptr[c], col_ptr[c + 1]):
            row = rows[n]
            value = values[n * step]
            for p in range(local[c], local[c + 1]):
                out[p] += value * residual[row, touched[p]]
