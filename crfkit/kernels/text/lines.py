"""Loops that number lines of text, which are words: a table of the bytes of those that are known.

Shapes: ``n`` bytes of ``N`` lines, each of which ends with `NEWLINE`; ``W`` words of the table,
which are lines, too. A line has a key: of at most `SHORT` bytes these and their number, of more a
hash, so that only the bytes of those have to be compared. The table is open addressing with linear
probing (Knuth 1998, section 6.4, algorithm L).

References
----------
D. E. Knuth (1998). The art of computer programming 3: sorting and searching.
H. S. Warren (2012). Hacker's delight.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import ByteArray, CodeArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import prefetch_at

NEWLINE = 10
AHEAD = 8  # lines before it is read, a slot is asked for
HASH_BITS = 31  # hashes and the factor are below 2^31, so that products stay within 63 bits
HASH_MASK = 2147483647
FACTOR = 1640531527
SHORT, BYTE = 6, 8
ONES, BYTES, QUAD = 0x01010101010101, 0xFFFFFFFFFFFFFF, 0xFFFFFFFF
LONG = 1 << 62  # keys from here on are hashes


class LineTable(NamedTuple):
    """The words of a table of C slots; all arrays are written to, where it grows."""

    slots: IntArray  # (2 C,) a key and its number, -1 where there is none; C a power of two
    words: ByteArray  # (m,) the words, each with `NEWLINE`
    ends: IntArray  # (C // 2,) where they end
    n_words: IntArray  # (1,) how many words there are


@part
def _folded(key: int) -> int:
    """Return a number of 31 bits for a key."""
    return (key ^ (key >> HASH_BITS)) & HASH_MASK


@part
def _first_slot(key: int, slots: IntArray) -> int:
    """Return the place in `slots` where the search for a key begins."""
    slot: int = (_folded(key) * FACTOR >> 23) & (slots.shape[0] - 2)
    return slot


@part
def _mixed(value: int, number: int) -> int:
    """Return the hash of what had one so far, and a number that follows."""
    product = (value ^ _folded(number)) * FACTOR
    return (product ^ (product >> HASH_BITS)) & HASH_MASK


@part
def _bytes_at(quads: CodeArray, place: int) -> int:
    """Return the seven bytes from `place` on, the first one lowest."""
    n, bits = place >> 2, (place & 3) * BYTE
    low, middle, high = int(quads[n]) & QUAD, int(quads[n + 1]) & QUAD, int(quads[n + 2]) & QUAD
    return ((low >> bits) | (middle << (32 - bits)) | (high << (56 - bits) << BYTE)) & BYTES


@kernel
def lines_key(
    quads: CodeArray,  # the n bytes, four in each number, the first one lowest, and 8 more
    n_bytes: int,
    ends: IntArray,  # (N,) out: where lines end
    keys: IntArray,  # (N,) out
) -> int:
    """Find the lines of a text, and their keys; returns how many there are.

    More than N are counted, but not noted. Seven bytes are read at a time: of these, the lowest bit
    of `marks` is the highest of the first one that is `NEWLINE` (Warren 2012, section 6-1).
    """
    n, place, begin, value = 0, 0, 0, 0
    size: int = ends.shape[0]
    while place < n_bytes:
        part_of = _bytes_at(quads, place)
        found = part_of ^ (NEWLINE * ONES)
        marks = (found - ONES) & ~found & (128 * ONES)
        if marks == 0:
            value, place = _mixed(value, part_of), place + 7
            continue
        lowest = marks & -marks
        for count in range(6):
            place += lowest > 128 << (BYTE * count)
        rest, length = part_of & ((lowest >> 7) - 1), place - begin
        if n < size:
            ends[n] = place
            if length > SHORT:
                length = (length << HASH_BITS) & (LONG - 1)
                keys[n] = LONG + length + _mixed(value, rest)
            else:
                keys[n] = rest + (length << (BYTE * SHORT))
        place += 1
        n, begin, value = n + 1, place, 0
    return n


@part
def _same(text: ByteArray, begin: int, end: int, words: ByteArray, first: int, last: int) -> bool:
    """Whether a part of a text is a word."""
    if end - begin != last - first:
        return False
    for n in range(end - begin):
        if text[begin + n] != words[first + n]:
            return False
    return True


@kernel
def table_extend(old: IntArray, slots: IntArray) -> None:
    """Put what is in the slots of a table into the empty ones of a larger table."""
    mask: int = slots.shape[0] - 2
    for place in range(0, old.shape[0], 2):
        if old[place + 1] >= 0:
            slot = _first_slot(old[place], slots)
            while slots[slot + 1] >= 0:
                slot = (slot + 2) & mask
            slots[slot], slots[slot + 1] = old[place], old[place + 1]


@kernel
def lines_number(
    text: ByteArray,  # (n,)
    ends: IntArray,  # (N,)
    keys: IntArray,  # (N,)
    start: int,
    table: LineTable,
    grows: bool,
    out: CodeArray,  # (N,) out
) -> int:
    """``out[t]`` is the number of line ``t``, from `start` on.

    A new word gets the next number, or -1 if the table does not grow. Returns the line before which
    all is done: N, or where there was no room for a word.
    """
    slots, words, word_ends, count = table.slots, table.words, table.ends, table.n_words
    size: int = ends.shape[0]
    mask: int = slots.shape[0] - 2
    for t in range(start, size):
        prefetch_at(slots, _first_slot(keys[min(t + AHEAD, size - 1)], slots))
        key, number = keys[t], -1
        slot = _first_slot(key, slots)
        while slots[slot + 1] >= 0 and number < 0:
            if slots[slot] == key:
                number = slots[slot + 1]
                if key >= LONG:
                    first = word_ends[number - 1] + 1 if number > 0 else 0
                    begin = ends[t - 1] + 1 if t > 0 else 0
                    if not _same(text, begin, ends[t], words, first, word_ends[number]):
                        number = -1
            slot = (slot + 2) & mask
        if number < 0 and grows:
            number = count[0]
            first = word_ends[number - 1] + 1 if number > 0 else 0
            begin, end = ends[t - 1] + 1 if t > 0 else 0, ends[t]
            if number >= word_ends.shape[0] or first + end - begin >= words.shape[0]:
                return t
            for n in range(end - begin):
                words[first + n] = text[begin + n]
            words[first + end - begin] = NEWLINE
            word_ends[number] = first + end - begin
            slots[slot], slots[slot + 1] = key, number
            count[0] += 1
        out[t] = number
    return size
