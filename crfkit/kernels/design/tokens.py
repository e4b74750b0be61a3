"""Entries of tokens: the rows of a table, and the single weights, that the scores of each read.

Shapes: ``N`` tokens, ``D`` attributes, ``P`` weights, ``H`` rows. Unlike the lists of `shares`,
those here can be read from any token on.
"""

from __future__ import annotations

from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.design.partition import _ask


@kernel
def tokens_count(
    begin: int,  # tokens begin:end
    end: int,
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    slots: IdArray,  # (D,) row of the table, H where there is none
    n_slots: int,  # H
    ptr: PtrArray,  # (D + 1,)
    spots: IdArray,  # (P,) where each weight stands in the vector
    row_counts: IntArray,  # (N,) out: entries in rows of each token
    cell_counts: IntArray,  # (N,) out: single weights of each token
) -> None:
    """Count what `tokens_deal` lists."""
    final = indices.shape[0] - 1
    for t in range(begin, end):
        rows, cells = 0, 0
        for n in range(indptr[t], indptr[t + 1]):
            _ask(n, final, indices, slots, n_slots, ptr, spots)
            if slots[indices[n]] < n_slots:
                rows += 1
            else:
                cells += ptr[indices[n] + 1] - ptr[indices[n]]
        row_counts[t] = rows
        cell_counts[t] = cells


@kernel
def tokens_deal(
    begin: int,  # tokens begin:end, and the following: see tokens_count
    end: int,
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,)
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    slots: IdArray,  # (D,)
    n_slots: int,  # H
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    spots: IdArray,  # (P,)
    row_ptr: IntArray,  # (N + 1,) where the entries in rows of each token start
    cell_ptr: IntArray,  # (N + 1,) where the single weights of each token start
    found: IdArray,  # (n,) out: rows of the table
    factor: FloatArray,  # (n,) or (1,) out: their values
    columns: IdArray,  # (m,) out: labels of single weights
    places: IdArray,  # (m,) out: where they stand in the vector
    scale: FloatArray,  # (m,) or (1,) out: their values
) -> None:
    """List the rows and the single weights of some tokens, in the order of their attributes."""
    final = indices.shape[0] - 1
    for t in range(begin, end):
        k, m = row_ptr[t], cell_ptr[t]
        for n in range(indptr[t], indptr[t + 1]):
            _ask(n, final, indices, slots, n_slots, ptr, spots)
            attribute, value = indices[n], values[n * step]
            if slots[attribute] < n_slots:
                found[k] = slots[attribute]
                factor[k * step] = value
                k += 1
                continue
            for p in range(ptr[attribute], ptr[attribute + 1]):
                columns[m] = labels[p]
                places[m] = spots[p]
                scale[m * step] = value
                m += 1
