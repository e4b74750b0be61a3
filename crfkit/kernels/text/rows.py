"""Rows of attributes in order.

Shapes: ``N`` tokens with ``n`` entries in all. An entry is the number of an attribute, or negative
where there is none. Values that are all 1 are not stored: `values` has one entry and ``step = 0``.
"""

from __future__ import annotations

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part

Columns = CodeArray | IdArray

REPEATED = -1  # an attribute occurs twice in a token, and there is no room for its value
FEW = 32  # so few entries are sorted by insertion alone


@part
def _sort(columns: Columns, values: FloatArray, begin: int, end: int) -> None:
    """Sort entries by insertion over shrinking gaps (Shell 1959), and their values with them."""
    valued = values.shape[0] > 0
    gap = (end - begin) // 2 if end - begin > FEW else 1
    while gap > 0:
        for i in range(begin + gap, end):
            column, value, place = columns[i], values[i] if valued else 1.0, i
            while place >= begin + gap and columns[place - gap] > column:
                columns[place] = columns[place - gap]
                if valued:
                    values[place] = values[place - gap]
                place -= gap
            columns[place] = column
            if valued:
                values[place] = value
        gap = 1 if gap == 2 else gap * 5 // 11


@part
def merge_row(columns: Columns, values: FloatArray, begin: int, end: int) -> int:
    """Sort the entries ``begin:end`` and add up those of one column; returns the new end.

    `REPEATED` where that makes values, and there is no room for them.
    """
    _sort(columns, values, begin, end)
    size, valued = begin, values.shape[0] > 0
    for i in range(begin, end):
        if size > begin and columns[size - 1] == columns[i]:
            if not valued:
                return REPEATED
            values[size - 1] += values[i]
        else:
            columns[size] = columns[i]
            if valued:
                values[size] = values[i]
            size += 1
    return size


@kernel
def rows_in_order(
    ptr: IntArray,  # (N + 1,)
    entries: CodeArray,  # (n,)
    numbers: CodeArray,  # (D,) column of each attribute, or negative; (0,): the attribute itself
    values: FloatArray,  # (n,) or (1,)
    step: int,
    row_ptr: IntArray,  # (N + 1,) out
    columns: CodeArray,  # (n,) out
    sums: FloatArray,  # (n,) out: the values, or (0,) where all are 1
) -> int:
    """Sort the entries of each row and add up those of one column; returns how many are left.

    `REPEATED` where that makes values, and there is no room for them.
    """
    size, valued = 0, sums.shape[0] > 0
    row_ptr[0] = 0
    for t in range(ptr.shape[0] - 1):
        begin = size
        for i in range(ptr[t], ptr[t + 1]):
            column = entries[i]
            if column >= 0 and numbers.shape[0] > 0:
                column = numbers[column]
            if column >= 0:
                columns[size] = column
                if valued:
                    sums[size] = values[i * step]
                size += 1
        if size > begin + 1:
            size = merge_row(columns, sums, begin, size)
            if size == REPEATED:
                return REPEATED
        row_ptr[t + 1] = size
    return size
