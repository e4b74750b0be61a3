"""From sparse and dense rows to scores, and the adjoint of it.

Shapes: ``N`` tokens, ``K`` labels, ``D`` attributes, ``P`` weights. The weights of attribute ``a``
are ``ptr[a]:ptr[a + 1]``, each with its label. Attribute values that are all one are not stored:
then `values` has one entry and ``step = 0``. Indices are unsigned: a signed one costs a test for
negative values at every access, a third of the time of these loops.
"""

from __future__ import annotations

from crfkit._jit import kernel
from crfkit._types import FloatArray, IdArray, PtrArray


@kernel
def gather_pairs(
    indptr: PtrArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    begin: int,
    end: int,
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    weights: FloatArray,  # (P,)
    out: FloatArray,  # (end - begin, K) out, added to
) -> None:
    """``out[t, k] += sum_a x[begin + t, a] w[a, k]`` over the attributes of each token."""
    for t in range(begin, end):
        row = t - begin
        for n in range(indptr[t], indptr[t + 1]):
            attribute = indices[n]
            value = values[n * step]
            for p in range(ptr[attribute], ptr[attribute + 1]):
                out[row, labels[p]] += value * weights[p]


@kernel
def gather_columns(
    columns: IdArray,  # (C,) attributes that occur
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,) tokens, in order within an attribute
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    weights: FloatArray,  # (P,)
    out: FloatArray,  # (N, K) out, added to
) -> None:
    """``out[t, k] += sum_a x[t, a] w[a, k]``, attribute by attribute: weights are read once."""
    for c in range(columns.shape[0]):
        attribute = columns[c]
        for n in range(col_ptr[c], col_ptr[c + 1]):
            row = rows[n]
            value = values[n * step]
            for p in range(ptr[attribute], ptr[attribute + 1]):
                out[row, labels[p]] += value * weights[p]


@kernel
def scatter_columns(
    columns: IdArray,  # (C,) attributes that occur
    col_ptr: PtrArray,  # (C + 1,)
    rows: IdArray,  # (nnz,) tokens, in order within an attribute
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    begin: int,
    end: int,
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    residual: FloatArray,  # (N, K)
    out: FloatArray,  # (P,) out, added to
) -> None:
    """``out[a, k] += sum_t x[t, a] r[t, k]`` for the columns ``begin:end``.

    Attribute by attribute, so that threads that share the columns never share a weight.
    """
    for c in range(begin, end):
        attribute = columns[c]
        for n in range(col_ptr[c], col_ptr[c + 1]):
            row = rows[n]
            value = values[n * step]
            for p in range(ptr[attribute], ptr[attribute + 1]):
                out[p] += value * residual[row, labels[p]]


@kernel
def gather_dense(
    x: FloatArray,  # (N, F)
    begin: int,
    end: int,
    table: FloatArray,  # (F, K)
    out: FloatArray,  # (end - begin, K) out, added to
) -> None:
    """``out[t, k] += sum_f x[begin + t, f] table[f, k]``."""
    for t in range(begin, end):
        for f in range(x.shape[1]):
            value = x[t, f]
            if value != 0.0:
                for k in range(table.shape[1]):
                    out[t - begin, k] += value * table[f, k]


@kernel
def scatter_dense(
    x: FloatArray,  # (N, F)
    first: int,
    begin: int,
    end: int,
    residual: FloatArray,  # (n, K) of the tokens from `first`
    out: FloatArray,  # (F, K) out, added to
) -> None:
    """``out[f, k] += sum_t x[first + t, f] r[t, k]`` for the features ``begin:end``."""
    for t in range(residual.shape[0]):
        for f in range(begin, end):
            value = x[first + t, f]
            if value != 0.0:
                for k in range(residual.shape[1]):
                    out[f, k] += value * residual[t, k]
