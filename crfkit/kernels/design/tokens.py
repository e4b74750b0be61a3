"""The design matrix token by token: the rows and the single weights that the scores of each read.

Weights are one vector. Attributes with weights for many columns have rows of a table; each other
weight stands alone, a cell. Shapes: ``N`` tokens, ``L`` weights, ``H`` rows of ``W`` columns, ``F``
dense features, ``B`` batches. Numbers of rows that are no weights are 0 and stay 0.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import ByteArray, CodeArray, FloatArray, IdArray, IntArray, PlaceArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    fill,
    load,
    multiply_add,
    prefetch_at,
    store,
    subtract,
    where_bits,
)
from crfkit.kernels._strips import strips_add
from crfkit.kernels.design.gather import CELLS_AHEAD


class BatchRows(NamedTuple):
    """The tokens that read each row, batch by batch."""

    heads: IntArray  # (B + 1,) the first token of each batch
    dense_heads: IntArray  # (B + 1,) where those with dense features start; others have none
    ptr: IntArray  # (B + 1,) where the rows of each batch start
    token_ptr: IntArray  # (B + 1,) where the tokens of its rows start
    cell_ptr: IntArray  # (B + 1,) where its single weights start
    rows: PlaceArray  # (C,) rows that occur in each batch, rising
    ends: PlaceArray  # (C,) where the tokens of each end, from those of the batch on
    tokens: PlaceArray  # (n,) tokens of the batch, rising within a row
    values: FloatArray  # (n,) or (1,)


class Design(NamedTuple):
    """The rows and the single weights of each token.

    Where the tokens are in batches, those that read a row are listed in place of the rows of each
    token, (0,), and a cell is a position in the potentials of its batch, (Q, W) for Q tokens; else
    it is a column.
    """

    row_ptr: IntArray | CodeArray  # (N + 1,) where the rows of each token start
    rows: PlaceArray  # (n,) rows of the table of weights
    row_values: FloatArray  # (n,) or (1,)
    cell_ptr: IntArray | CodeArray  # (N + 1,) where its single weights start
    cells: PlaceArray  # (m,) their columns
    positions: IdArray  # (m,) where they stand in the vector
    cell_values: FloatArray  # (m,) or (1,)
    stride: int  # 0 where all values are 1 and one is kept, else 1
    dense: FloatArray  # (N, F) values of dense features, of the first tokens: others have none
    first_dense: int  # the row of the table of the first of these
    batches: BatchRows  # of no batch, where there are none


class DenseList(NamedTuple):
    """Room for the dense features of a token that are not 0."""

    rows: IdArray  # (F + 1,)
    values: FloatArray  # (F + 1,)


class TokenWeights(NamedTuple):
    """A vector of weights, a table that is part of it, and room for changes."""

    flat: FloatArray  # (L,)
    table: FloatArray  # (H, W)
    bits: ByteArray  # (H, V) which of its numbers are weights: a bit for each lane of a vector
    first: int  # where the table starts in the vector
    scratch: FloatArray  # (L,) zeros
    scratch_table: FloatArray  # (H, W) its rows
    listed: DenseList
    positions: IdArray  # (n,) of weights that are listed
    changes: FloatArray  # (n,)


@part
def gather_token(
    design: Design, t: int, weights: TokenWeights, row: int, target: FloatArray
) -> None:
    """``target[row, k] += sum_a x[t, a] w[a, k]``, for a target of shape (Q, W)."""
    stride, dense, values, flat = design.stride, design.dense, design.cell_values, weights.flat
    final = design.positions.shape[0] - 1
    strips_add(design.rows, design.row_values, stride, design.row_ptr[t], design.row_ptr[t + 1],
               weights.table, row, target)  # fmt: skip
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        prefetch_at(flat, design.positions[min(n + CELLS_AHEAD, final)])
        target[row, design.cells[n]] += values[n * stride] * flat[design.positions[n]]
    if _n_dense(design, t):
        count, listed = 0, weights.listed
        for f in range(dense.shape[1]):
            listed.rows[count] = design.first_dense + f
            listed.values[count] = dense[t, f]
            count += dense[t, f] != 0.0
        strips_add(listed.rows, listed.values, 1, 0, count, weights.table, row, target)


@kernel
def gather_tokens(
    design: Design,
    begin: int,  # tokens begin:end
    end: int,
    weights: TokenWeights,
    first: int,
    target: FloatArray,  # (Q, W)
) -> None:
    """Add the scores of some tokens to rows from a first one on."""
    for t in range(begin, end):
        gather_token(design, t, weights, first + t - begin, target)


@part
def clear_row(target: FloatArray, row: int) -> None:
    """``target[row, k] = 0``."""
    for k in range(0, target.shape[1], WIDTH):
        store(fill(0.0), target, row, k)


@part
def _n_dense(design: Design, t: int) -> int:
    """Return how many dense features a token has."""
    count: int = design.dense.shape[1] if t < design.dense.shape[0] else 0
    return count


@part
def list_weight(size: int, h: int, column: int, value: float, weights: TokenWeights) -> int:
    """List a number of a row, if it is a weight; returns how many are listed."""
    weights.positions[size] = weights.first + h * weights.table.shape[1] + column
    weights.changes[size] = value
    weight: int = (weights.bits[h, column // WIDTH] >> (column % WIDTH)) & 1
    return size + weight


@part
def list_token(
    size: int, design: Design, t: int, column: int, value: float, weights: TokenWeights
) -> int:
    """List the weights that a token reads for a column, times a value."""
    for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
        x = value * design.row_values[n * design.stride]
        size = list_weight(size, design.rows[n], column, x, weights)
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        if design.cells[n] == column:
            weights.positions[size] = design.positions[n]
            weights.changes[size] = value * design.cell_values[n * design.stride]
            size += 1
    for f in range(_n_dense(design, t)):
        if design.dense[t, f] != 0.0:
            x = value * design.dense[t, f]
            size = list_weight(size, design.first_dense + f, column, x, weights)
    return size


@part
def add_row(
    value: float, source: FloatArray, row: int, h: int, weights: TokenWeights, rises: FloatArray
) -> FloatArray:
    """``scratch[h] += value source[row]``; returns rises plus those of the squares, a vector."""
    x, table = fill(value), weights.scratch_table
    for k in range(0, table.shape[1], WIDTH):
        more = where_bits(weights.bits[h, k // WIDTH], load(source, row, k))
        before = load(table, h, k)
        after = multiply_add(x, more, before)
        rises = multiply_add(subtract(after, before), add(after, before), rises)
        store(after, table, h, k)
    return rises


@part
def scatter_token(
    design: Design,
    t: int,
    source: FloatArray,  # (Q, W)
    row: int,
    weights: TokenWeights,
    rise: float,
    rises: FloatArray,
) -> tuple[float, FloatArray]:
    """``scratch[a, k] += x[t, a] source[row, k]``; the rises of squares are added to two sums."""
    for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
        x = design.row_values[n * design.stride]
        rises = add_row(x, source, row, design.rows[n], weights, rises)
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        p = design.positions[n]
        change = design.cell_values[n * design.stride] * source[row, design.cells[n]]
        rise += change * (change + 2.0 * weights.scratch[p])
        weights.scratch[p] += change
    for f in range(_n_dense(design, t)):
        if design.dense[t, f] != 0.0:
            rises = add_row(design.dense[t, f], source, row, design.first_dense + f, weights,
                            rises)  # fmt: skip
    return rise, rises


@part
def apply_token(design: Design, t: int, factor: float, weights: TokenWeights) -> None:
    """``w += factor scratch`` for the weights that a token reads; the scratch is 0 then."""
    for n in range(design.row_ptr[t], design.row_ptr[t + 1]):
        apply_row(factor, design.rows[n], weights)
    for n in range(design.cell_ptr[t], design.cell_ptr[t + 1]):
        p = design.positions[n]
        weights.flat[p] += factor * weights.scratch[p]
        weights.scratch[p] = 0.0
    for f in range(_n_dense(design, t)):
        if design.dense[t, f] != 0.0:
            apply_row(factor, design.first_dense + f, weights)


@part
def apply_row(factor: float, h: int, weights: TokenWeights) -> None:
    """``w[h] += factor scratch[h]``; the row of the scratch is 0 then."""
    x, scratch, table = fill(factor), weights.scratch_table, weights.table
    for k in range(0, table.shape[1], WIDTH):
        store(multiply_add(x, load(scratch, h, k), load(table, h, k)), table, h, k)
        store(fill(0.0), scratch, h, k)
