"""Loops of compiled templates: shifted columns, numbered pairs, and the rows they make.

Shapes: ``N`` tokens of ``S`` sequences, ``F`` templates, ``P`` the largest distance of a cell from
its token. A code of -1 stands for nothing, and whatever is made of it is -1. The code of a cell
outside of its sequence is looked up in ``marks``: ``marks[k - 1]`` is ``k`` tokens before the
first, ``marks[P + k - 1]`` is ``k`` tokens after the last.

A table of pairs of codes is open addressing with linear probing (Knuth 1998, section 6.4,
algorithm L): ``slots[h]`` holds a key ``left 2^32 + right`` or -1, ``places[h]`` its number.
"""

from __future__ import annotations

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import kernel

SHIFT = 4294967296
# Odd numbers of 31 bits: the products with codes, and their sum, stay within 64 bits.
LEFT_FACTOR = 1640531527
RIGHT_FACTOR = 2027808485


@kernel
def _code_at(codes: CodeArray, begin: int, end: int, place: int, marks: CodeArray) -> int:
    """``codes[place]`` in the sequence ``begin:end``, the mark of the distance outside of it."""
    if place < begin:
        return int(marks[begin - place - 1])
    if place >= end:
        return int(marks[marks.shape[0] // 2 + place - end])
    return int(codes[place])


@kernel
def codes_shift(
    codes: CodeArray,  # (N,)
    offsets: IntArray,  # (S + 1,)
    shift: int,
    marks: CodeArray,  # (2 P,)
    out: CodeArray,  # (N,) out
) -> None:
    """``out[t] = codes[t + shift]`` within the sequence of ``t``, a mark outside of it."""
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        for t in range(begin, end):
            out[t] = _code_at(codes, begin, end, t + shift, marks)


@kernel
def codes_spread(
    codes: CodeArray,  # (N,)
    offsets: IntArray,  # (S + 1,)
    position: int,
    marks: CodeArray,  # (2 P,)
    out: CodeArray,  # (N,) out
) -> None:
    """``out[t]`` is the code at one position of the sequence of ``t``, a mark if it is too short.

    Positions count from 1, negative ones from the end: -1 is the last token.
    """
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        place = end + position if position < 0 else begin + position - 1
        for t in range(begin, end):
            out[t] = _code_at(codes, begin, end, place, marks)


@kernel
def _slot(left: int, right: int, slots: IntArray) -> int:
    """Return the slot of the key ``left 2^32 + right``, or the empty one where it belongs."""
    mask: int = slots.shape[0] - 1
    key = left * SHIFT + right
    mixed = left * LEFT_FACTOR + right * RIGHT_FACTOR
    slot = (mixed ^ (mixed >> 17) ^ (mixed >> 34)) & mask
    while slots[slot] != key and slots[slot] != -1:
        slot = (slot + 1) & mask
    return slot


@kernel
def pairs_number(
    left: CodeArray,  # (N,)
    right: CodeArray,  # (N,)
    start: int,
    slots: IntArray,  # (C,) in and out, C a power of two
    places: CodeArray,  # (C,) in and out
    keys: IntArray,  # (C // 2,) in and out: the keys in the order of their numbers
    count: IntArray,  # (1,) in and out: how many keys there are
    out: CodeArray,  # (N,) out
) -> int:
    """``out[t]`` is the number of the pair ``(left[t], right[t])``; a new pair gets the next one.

    Returns the position before which all is done: N, or where the table was half full.
    """
    size: int = left.shape[0]
    for t in range(start, size):
        a, b = int(left[t]), int(right[t])
        if a < 0 or b < 0:
            out[t] = -1
            continue
        slot = _slot(a, b, slots)
        if slots[slot] == -1:
            if count[0] >= keys.shape[0]:
                return t
            slots[slot] = a * SHIFT + b
            places[slot] = count[0]
            keys[count[0]] = slots[slot]
            count[0] += 1
        out[t] = places[slot]
    return size


@kernel
def pairs_find(
    left: CodeArray,  # (N,)
    right: CodeArray,  # (N,)
    slots: IntArray,  # (C,)
    places: CodeArray,  # (C,)
    out: CodeArray,  # (N,) out
) -> None:
    """``out[t]`` is the number of the pair ``(left[t], right[t])``, -1 if the table has it not."""
    for t in range(left.shape[0]):
        a, b = int(left[t]), int(right[t])
        out[t] = -1
        if a >= 0 and b >= 0:
            slot = _slot(a, b, slots)
            if slots[slot] != -1:
                out[t] = places[slot]


@kernel
def rows_fill(
    ids: CodeArray,  # (F, N)
    starts: IntArray,  # (F + 1,) where the columns of a template begin in `columns`
    columns: CodeArray,  # (M,) column of each number, rising within a template, or -1
    indptr: IntArray,  # (N + 1,) out
    indices: CodeArray,  # (F N,) out
) -> int:
    """Row ``t`` holds ``columns[starts[f] + ids[f, t]]`` for each ``f``; returns how many in all.

    What is -1, or beyond the columns of its template, has no entry.
    """
    n = 0
    indptr[0] = 0
    for t in range(ids.shape[1]):
        for f in range(ids.shape[0]):
            place = starts[f] + ids[f, t]
            if place >= starts[f] and place < starts[f + 1]:
                column = columns[place]
                if column >= 0:
                    indices[n] = column
                    n += 1
        indptr[t + 1] = n
    return n


@kernel
def rows_join(
    first_ptr: IntArray,  # (N + 1,)
    first: CodeArray,  # (nnz1,)
    second_ptr: IntArray,  # (N + 1,)
    second: CodeArray,  # (nnz2,)
    indices: CodeArray,  # (nnz1 + nnz2,) out
    origin: IntArray,  # (nnz1 + nnz2,) out: the place in `second`, -1 for entries of `first`
) -> None:
    """Row ``t`` is row ``t`` of the first followed by row ``t`` of the second."""
    n = 0
    for t in range(first_ptr.shape[0] - 1):
        for m in range(first_ptr[t], first_ptr[t + 1]):
            indices[n] = first[m]
            origin[n] = -1
            n += 1
        for m in range(second_ptr[t], second_ptr[t + 1]):
            indices[n] = second[m]
            origin[n] = m
            n += 1
