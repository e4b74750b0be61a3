"""Loops of compiled templates: shifted columns, numbered pairs, and the rows they make.

Shapes: ``N`` tokens of ``S`` sequences, ``F`` templates, ``P`` the largest distance of a cell from
its token. A code of -1 stands for nothing, and whatever is made of it is -1. The code of a cell
outside of its sequence is looked up in ``marks``: ``marks[k - 1]`` is ``k`` tokens before the
first, ``marks[P + k - 1]`` is ``k`` tokens after the last.

A table of pairs of codes is open addressing with linear probing (Knuth 1998, section 6.4,
algorithm L): ``slots[h]`` holds a key ``left 2^32 + right`` or -1, ``places[h]`` its number.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at

SHIFT = 4294967296
# Odd numbers of 31 bits: the products with codes, and their sum, stay within 64 bits.
LEFT_FACTOR = 1640531527
RIGHT_FACTOR = 2027808485
# What is at random places is asked for so many tokens before it is read.
AHEAD, ROWS_AHEAD = 8, 2


class Pairs(NamedTuple):
    """A table of pairs of C slots, C a power of two; all arrays are written to, where it grows."""

    slots: IntArray  # (C,)
    places: CodeArray  # (C,)
    keys: IntArray  # (C // 2,) the keys in the order of their numbers
    n_keys: IntArray  # (1,)


@kernel
def codes_shift(
    codes: CodeArray,  # (N,)
    offsets: IntArray,  # (S + 1,)
    offset: int,
    absolute: bool,
    marks: CodeArray,  # (2 P,)
    out: CodeArray,  # (N,) out
) -> None:
    """``out[t]`` is ``codes[t + offset]``, or that at one position of the sequence of ``t``.

    Absolute positions count from 1, negative ones from the end: -1 is the last token. What is
    outside of the sequence is the mark of its distance.
    """
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        for t in range(begin, end):
            place = t + offset
            if absolute:
                place = end + offset if offset < 0 else begin + offset - 1
            if place < begin:
                out[t] = marks[begin - place - 1]
            elif place >= end:
                out[t] = marks[marks.shape[0] // 2 + place - end]
            else:
                out[t] = codes[place]


@part
def _first_slot(left: int, right: int, slots: IntArray) -> int:
    """Return the slot where the search for a pair begins."""
    mixed = left * LEFT_FACTOR + right * RIGHT_FACTOR
    slot: int = (mixed ^ (mixed >> 17) ^ (mixed >> 34)) & (slots.shape[0] - 1)
    return slot


@part
def pair_slot(left: int, right: int, slots: IntArray) -> int:
    """Return the slot of the key ``left 2^32 + right``, or the empty one where it belongs."""
    mask: int = slots.shape[0] - 1
    key, slot = left * SHIFT + right, _first_slot(left, right, slots)
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
    grows: bool,
    out: CodeArray,  # (N,) out
) -> int:
    """``out[t]`` is the number of the pair ``(left[t], right[t])``.

    A new pair gets the next number, or -1 if the table does not grow. Returns the position before
    which all is done: N, or where the table was half full.
    """
    size: int = left.shape[0]
    for t in range(start, size):
        a, b, soon = int(left[t]), int(right[t]), min(t + AHEAD, size - 1)
        ahead = _first_slot(int(left[soon]), int(right[soon]), slots)
        prefetch_at(slots, ahead)
        prefetch_at(places, ahead)
        out[t] = -1
        if a < 0 or b < 0:
            continue
        slot = pair_slot(a, b, slots)
        if slots[slot] == -1:
            if not grows:
                continue
            if count[0] >= keys.shape[0]:
                return t
            slots[slot] = a * SHIFT + b
            places[slot] = count[0]
            keys[count[0]] = slots[slot]
            count[0] += 1
        out[t] = places[slot]
    return size


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
    final = ids.shape[1] - 1
    for t in range(ids.shape[1]):
        soon = min(t + ROWS_AHEAD, final)
        for f in range(ids.shape[0]):
            place = starts[f] + ids[f, t]
            prefetch_at(columns, starts[f] + ids[f, soon])
            if place >= starts[f] and place < starts[f + 1]:
                column = columns[place]
                if column >= 0:
                    indices[n] = column
                    n += 1
        indptr[t + 1] = n
    return n
