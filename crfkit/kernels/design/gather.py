"""Rows in order, from sparse and dense ones to scores, the adjoint, and which weights there are.

Shapes: ``N`` tokens, ``K`` labels, ``D`` attributes, ``P`` weights. The weights of attribute ``a``
are ``ptr[a]:ptr[a + 1]``, each with its label. Attribute values that are all one are not stored:
then `values` has one entry and ``step = 0``. Indices are unsigned: a signed one costs a test for
negative values at every access.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, LabelArray, PlaceArray, PtrArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import (
    WIDTH,
    add,
    add_few,
    fill,
    load_few,
    multiply_add,
    prefetch,
    prefetch_at,
)
from crfkit.kernels._strips import (
    STRIP,
    nine_add,
    strips_add,
    strips_add_product,
    strips_outer,
    three_add,
    two_add,
)

# Single numbers are asked for so many before they are needed.
CELLS_AHEAD = 64
# Tokens whose dense features stay in the nearest cache.
TILE = 32
# What is known of an attribute: its last column, plus 1, and in how many tokens of that it occurs.
COLUMN, USES = 0, 1
# Attributes are asked for so many tokens before they are read: two lines of a cache.
TOKENS_AHEAD, LINE = 8, 16
# An attribute occurs twice in a token, and there is no room for its value.
REPEATED = -1
# A row has so many entries at most, and attributes have so large numbers.
LOW = 0xFFFFFFFF
# So few entries are sorted by insertion alone.
FEW = 48


class SparseRows(NamedTuple):
    """Attributes of tokens. Read-only."""

    indptr: PtrArray  # (N + 1,)
    indices: IdArray  # (nnz,)
    values: FloatArray  # (nnz,) or (1,)
    stride: int  # 0 where all values are 1 and one is kept, else 1


class PairWeights(NamedTuple):
    """Weights of pairs of an attribute and a label, and where to find them. Read-only."""

    slots: IdArray  # (D,) row in the table, H + label of the only weight, or H + K: pairs
    n_slots: int  # H
    single: FloatArray  # (D,) the only weight of an attribute
    ptr: PtrArray  # (D + 1,)
    labels: IdArray  # (P,)
    weights: FloatArray  # (P,)


class ListedRows(NamedTuple):
    """Rows of the table that tokens have, which the kernel writes."""

    ptr: IntArray  # (n + 1,)
    rows: IdArray  # (nnz,) the rows of each token
    values: FloatArray  # (nnz,) or (1,)


class CellEntries(NamedTuple):
    """Pairs (position in the scores, place of a weight), grouped by their upper bits. Read-only."""

    first_cell: PtrArray  # (G,) added to the positions of each group
    first_place: PtrArray  # (G,) added to its places
    ptr: PtrArray  # (G + 1,) where its entries start
    cells: LabelArray  # (n,)
    places: LabelArray  # (n,)
    values: FloatArray  # (n,) or (1,)


@part
def _ask(tokens: SparseRows, t: int, pairs: PairWeights) -> None:
    """Have the machine fetch what tells the weights of the attributes of a token."""
    for n in range(tokens.indptr[t], tokens.indptr[t + 1]):
        attribute = tokens.indices[n]
        if pairs.slots[attribute] >= pairs.n_slots:
            prefetch_at(pairs.single, attribute)
            prefetch_at(pairs.ptr, attribute)


@part
def add_pairs(
    pairs: PairWeights, attribute: int, slot: int, value: float, row: int, out: FloatArray
) -> None:
    """``out[row, k] += value w[attribute, k]`` of an attribute without a row in the table."""
    if slot < pairs.n_slots + out.shape[1]:
        out[row, slot - pairs.n_slots] += value * pairs.single[attribute]
    else:
        for p in range(pairs.ptr[attribute], pairs.ptr[attribute + 1]):
            out[row, pairs.labels[p]] += value * pairs.weights[p]


@kernel
def gather_tokens(
    tokens: SparseRows,
    begin: int,
    end: int,
    pairs: PairWeights,
    listed: ListedRows,  # out
    out: FloatArray,  # (end - begin, K) out, added to
) -> None:
    """``out[t, k] += sum_a x[begin + t, a] w[a, k]``; attributes with a row are listed instead."""
    indptr, indices, stride = tokens.indptr, tokens.indices, tokens.stride
    slots, n_slots, count = pairs.slots, pairs.n_slots, 0
    listed.ptr[0] = 0
    for t in range(begin, end):
        row = t - begin
        if t + 2 < end:
            for n in range(indptr[t + 2], indptr[t + 3]):
                prefetch_at(slots, indices[n])
        if t + 1 < end:
            _ask(tokens, t + 1, pairs)
        for n in range(indptr[t], indptr[t + 1]):
            attribute = indices[n]
            slot, value = slots[attribute], tokens.values[n * stride]
            if slot < n_slots:
                listed.rows[count] = slot
                listed.values[count * stride] = value
                count += 1
            else:
                add_pairs(pairs, attribute, slot, value, row, out)
        listed.ptr[row + 1] = count


@part
def _few_add(slots: PlaceArray, values: FloatArray, step: int, begin: int, end: int,
             table: FloatArray, row: int, out: FloatArray) -> None:  # fmt: skip
    """Add rows of fewer than eight numbers: see `strips_add`."""
    size, a = table.shape[1], fill(0.0)
    if step == 0:
        for n in range(begin, end):
            a = add(a, load_few(table, slots[n], 0, size))
    else:
        for n in range(begin, end):
            a = multiply_add(fill(values[n]), load_few(table, slots[n], 0, size), a)
    add_few(a, out, row, 0, size)


@kernel
def gather_rows(
    columns: IdArray,  # (C,) rows of the sums; (1,): the range itself, and so many more
    ptr: IntArray,  # (C + 1,)
    rows: PlaceArray,  # (nnz,) rows of the table, list by list
    values: FloatArray,  # (nnz,) or (1,)
    step: int,
    begin: int,
    end: int,
    table: FloatArray,  # (H, K)
    out: FloatArray,  # (N, K) out, added to
) -> None:
    """``out[columns[c], k] += sum_n values[n] table[rows[n], k]`` over the lists ``begin:end``.

    From weights to scores, each token has a list of attributes; from the gradient of scores to that
    of weights, each attribute has one of tokens. Threads that share the lists share no number.
    Lists are short: what rows are like is asked once for all.
    """
    size, listed = table.shape[1], min(columns.shape[0] - 1, 1)
    low = ptr[begin] if begin < end else 0
    if size < WIDTH:
        for c in range(begin, end):
            row, high = columns[c * listed] + (1 - listed) * c, ptr[c + 1]
            _few_add(rows, values, step, low, high, table, row, out)
            low = high
    elif size == WIDTH + 1:
        for c in range(begin, end):
            row, high = columns[c * listed] + (1 - listed) * c, ptr[c + 1]
            nine_add(rows, values, step, low, high, table, row, out)
            low = high
    elif size <= 2 * WIDTH:
        for c in range(begin, end):
            row, high = columns[c * listed] + (1 - listed) * c, ptr[c + 1]
            two_add(rows, values, step, low, high, table, row, out)
            low = high
    elif size <= STRIP:
        for c in range(begin, end):
            row, high = columns[c * listed] + (1 - listed) * c, ptr[c + 1]
            three_add(rows, values, step, low, high, table, row, out)
            low = high
    else:
        for c in range(begin, end):
            row, high = columns[c * listed] + (1 - listed) * c, ptr[c + 1]
            strips_add(rows, values, step, low, high, table, row, out)
            low = high


@kernel
def add_cells(
    entries: CellEntries,
    begin: int,
    end: int,
    stride: int,
    given: FloatArray,  # (P,) weights
    out: FloatArray,  # (N K,) out, added to
) -> None:
    """``out[cell] += x given[place]`` over the groups ``begin:end``; exchanged, its adjoint."""
    if begin == end:
        return
    cells, places, values, one = entries.cells, entries.places, entries.values, entries.values[0]
    for g in range(begin, end):
        cell, place, final = entries.first_cell[g], entries.first_place[g], entries.ptr[g + 1] - 1
        for n in range(entries.ptr[g], entries.ptr[g + 1]):
            soon = min(n + CELLS_AHEAD, final)
            prefetch_at(out, cell + cells[soon])
            prefetch_at(given, place + places[soon])
            x = one if stride == 0 else values[n]
            out[cell + cells[n]] += x * given[place + places[n]]


@kernel
def spread_rows(
    attributes: IdArray,  # (H,) attribute of each row of the table
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    weights: FloatArray,  # (P,)
    table: FloatArray,  # (H, K) out, in the places of weights
) -> None:
    """``table[h, k] = w[attribute of h, k]``."""
    for h in range(attributes.shape[0]):
        for p in range(ptr[attributes[h]], ptr[attributes[h] + 1]):
            table[h, labels[p]] = weights[p]


@kernel
def collect_rows(
    attributes: IdArray,  # (H,) attribute of each row of the table
    begin: int,
    end: int,
    ptr: PtrArray,  # (D + 1,)
    labels: IdArray,  # (P,)
    table: FloatArray,  # (H, K)
    out: FloatArray,  # (P,) out, added to
) -> None:
    """``out[attribute of h, k] += table[h, k]`` for the rows ``begin:end``."""
    for h in range(begin, end):
        for p in range(ptr[attributes[h]], ptr[attributes[h] + 1]):
            out[p] += table[h, labels[p]]


@kernel
def gather_dense(
    x: FloatArray,  # (N, F)
    begin: int,
    end: int,
    table: FloatArray,  # (1, F, K)
    out: FloatArray,  # (end - begin, K) out, added to
) -> None:
    """``out[t, k] += sum_f x[begin + t, f] table[f, k]``."""
    size = table.shape[2]
    for t in range(begin, end):
        if size >= WIDTH:
            strips_add_product(x, t, table, 0, out, t - begin)
            continue
        for f in range(x.shape[1]):
            value = x[t, f]
            if value != 0.0:
                for k in range(size):
                    out[t - begin, k] += value * table[0, f, k]


@kernel
def scatter_dense(
    x: FloatArray,  # (N, F)
    first: int,
    begin: int,
    end: int,
    residual: FloatArray,  # (n, K) of the tokens from `first`
    out: FloatArray,  # (1, F, K) out, added to
) -> None:
    """``out[f, k] += sum_t x[first + t, f] r[t, k]`` for the features ``begin:end``."""
    n_tokens, size = residual.shape
    if size >= WIDTH:
        for low in range(0, n_tokens, TILE):
            high = min(low + TILE, n_tokens)
            strips_outer(x, first, residual, low, high, out, 0, begin, end)
        return
    for t in range(n_tokens):
        for f in range(begin, end):
            value = x[first + t, f]
            if value != 0.0:
                for k in range(size):
                    out[0, f, k] += value * residual[t, k]


@part
def _use(known: IdArray, a: int, column: int) -> int:
    """Note a use of a pair; returns how many it has now."""
    uses = known[a, USES] + 1 if known[a, COLUMN] == column + 1 else 1
    known[a, COLUMN] = column + 1
    known[a, USES] = uses
    return uses


@kernel
def seen_list(
    tokens: IntArray,  # (n,) by rising column
    columns: IntArray,  # (n,) of these tokens
    indptr: IntArray,  # (N + 1,)
    indices: IdArray,  # (nnz,) attributes
    least: int,  # a pair occurs in so many tokens, or does not count
    known: IdArray,  # (D, 2) workspace: zeros
    ends: IntArray,  # (D,) in: where the pairs of each attribute start, out: where they end
    found: CodeArray,  # (P,) out: their columns, rising; (0,) to count alone
) -> None:
    """List the columns in which each attribute occurs in at least `least` tokens.

    Tokens come column by column: the pairs of an attribute are met in the order of their columns.
    Attributes of tokens to come are fetched, and what is known of those of the next one.
    """
    final = tokens.shape[0] - 1
    for i in range(tokens.shape[0]):
        begin, token = indptr[tokens[min(i + TOKENS_AHEAD, final)]], tokens[min(i + 1, final)]
        prefetch_at(indices, begin)
        prefetch_at(indices, begin + LINE)
        for n in range(indptr[token], indptr[token + 1]):
            prefetch(known, indices[n], 0)
        for n in range(indptr[tokens[i]], indptr[tokens[i] + 1]):
            attribute = indices[n]
            if _use(known, attribute, columns[i]) == least:
                if found.shape[0] > 0:
                    found[ends[attribute]] = columns[i]
                ends[attribute] += 1


@part
def _sort(keys: IntArray, size: int) -> None:
    """Sort numbers by insertion over shrinking gaps (Shell 1959)."""
    gap = size // 2 if size > FEW else 1
    while gap > 0:
        for i in range(gap, size):
            key, place = keys[i], i
            while place >= gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                place -= gap
            keys[place] = key
        gap = 1 if gap == 2 else gap * 5 // 11


@kernel
def rows_in_order(
    ptr: IntArray,  # (N + 1,)
    entries: CodeArray,  # (n,)
    numbers: CodeArray,  # (D,) column of each attribute, or negative; (0,): the attribute itself
    values: FloatArray,  # (n,) or (1,)
    step: int,
    keys: IntArray,  # (L,) workspace: columns and places of the entries of the longest row
    row_ptr: IntArray,  # (N + 1,) out
    columns: IdArray,  # (n,) out
    sums: FloatArray,  # (n,) out: the values, or (0,) where all are 1
) -> int:
    """Sort the entries of each row and add up those of one column; returns how many are left.

    An entry is an attribute, or negative where there is none. `REPEATED` where that makes values,
    and there is no room for them.
    """
    size, valued = 0, sums.shape[0] > 0
    row_ptr[0] = 0
    for t in range(ptr.shape[0] - 1):
        begin, first, count = size, ptr[t], 0
        for i in range(first, ptr[t + 1]):
            column = entries[i]
            if column >= 0 and numbers.shape[0] > 0:
                column = numbers[column]
            if column >= 0:
                keys[count] = column
                keys[count] = (keys[count] << 32) | (i - first)
                count += 1
        _sort(keys, count)
        for i in range(count):
            column, value = keys[i] >> 32, values[(first + (keys[i] & LOW)) * step]
            if size > begin and columns[size - 1] == column:
                if not valued:
                    return REPEATED
                sums[size - 1] += value
            else:
                columns[size] = column
                if valued:
                    sums[size] = value
                size += 1
        row_ptr[t + 1] = size
    return size
