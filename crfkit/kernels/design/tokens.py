"""The design matrix token by token: the rows and the single weights that the scores of each read.

Weights are one vector. Attributes with weights for many columns have rows of a table, which is its
beginning; each other weight stands alone. Unlike `BatchPartition`, the lists can be read from any
token on. Shapes: ``N`` tokens, ``D`` attributes, ``P`` weights, ``H`` rows, ``F`` dense features.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, fill, prefetch_at, store
from crfkit.kernels._strips import strips_add
from crfkit.kernels.design.gather import CELLS_AHEAD
from crfkit.kernels.design.partition import _ask


class TokenDesign(NamedTuple):
    """The rows and the single weights of each token."""

    row_ptr: IntArray  # (N + 1,) where the rows of each token start
    rows: IdArray  # (n,) rows of the table of weights
    row_values: FloatArray  # (n,) or (1,)
    cell_ptr: IntArray  # (N + 1,) where its single weights start
    columns: IdArray  # (m,) their columns
    positions: IdArray  # (m,) where they stand in the vector
    cell_values: FloatArray  # (m,) or (1,)
    stride: int  # 0 where all values are 1 and one is kept, else 1
    dense: FloatArray  # (N, F) values of dense features
    first_dense: int  # the row of the table of the first of these


class DenseList(NamedTuple):
    """Room for the dense features of a token that are not 0."""

    rows: IdArray  # (F + 1,)
    values: FloatArray  # (F + 1,)


@part
def gather_token(
    design: TokenDesign,
    t: int,
    flat: FloatArray,  # (L,) weights
    table: FloatArray,  # (H, W) their rows
    listed: DenseList,
    row: int,
    target: FloatArray,  # (Q, W)
) -> None:
    """``target[row, k] += sum_a x[t, a] w[a, k]``."""
    stride, dense, values = design.stride, design.dense, design.cell_values
    final = design.positions.shape[0] - 1
    strips_add(design.rows, design.row_values, stride, design.row_ptr[t], design.row_ptr[t + 1],
               table, row, target)  # fmt: skip
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        prefetch_at(flat, design.positions[min(n + CELLS_AHEAD, final)])
        target[row, design.columns[n]] += values[n * stride] * flat[design.positions[n]]
    if dense.shape[1]:
        count = 0
        for f in range(dense.shape[1]):
            listed.rows[count] = design.first_dense + f
            listed.values[count] = dense[t, f]
            count += dense[t, f] != 0.0
        strips_add(listed.rows, listed.values, 1, 0, count, table, row, target)


@part
def clear_row(target: FloatArray, row: int) -> None:
    """``target[row, k] = 0``."""
    for k in range(0, target.shape[1], WIDTH):
        store(fill(0.0), target, row, k)


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
