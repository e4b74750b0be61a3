"""Loops that number lines of text, which are words: a table of the bytes of those that are known.

Shapes: ``n`` bytes of ``N`` lines, each of which ends with `NEWLINE`; ``W`` words of the table,
which are lines, too. The table is open addressing with linear probing (Knuth 1998, section 6.4,
algorithm L): ``slots[h]`` is the hash of a word times 2^32, and its number, or -1. What has the
same hash is compared byte by byte.
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
FIRST = 2027808485 & HASH_MASK  # the hash of no bytes
SHIFT = 32


class LineTable(NamedTuple):
    """The words of a table of C slots; all arrays are written to, where it grows."""

    slots: IntArray  # (C,), C a power of two
    words: ByteArray  # (m,) the words, each with `NEWLINE`
    ends: IntArray  # (C // 2,) where they end
    n_words: IntArray  # (1,) how many words there are


@kernel
def lines_hash(
    text: ByteArray,  # (n,)
    ends: IntArray,  # (N,) out: where lines end
    hashes: IntArray,  # (N,) out
) -> int:
    """Find the lines of a text, and their hashes; returns how many there are.

    More than N are counted, but not noted.
    """
    n, size, value = 0, ends.shape[0], FIRST
    for place in range(text.shape[0]):
        byte = int(text[place])
        if byte == NEWLINE:
            if n < size:
                ends[n] = place
                hashes[n] = value
            n += 1
            value = FIRST
        else:
            product = (value ^ byte) * FACTOR
            value = (product ^ (product >> HASH_BITS)) & HASH_MASK
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
def lines_number(
    text: ByteArray,  # (n,)
    ends: IntArray,  # (N,)
    hashes: IntArray,  # (N,)
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
    mask: int = slots.shape[0] - 1
    for t in range(start, size):
        prefetch_at(slots, hashes[min(t + AHEAD, size - 1)] & mask)
        begin = ends[t - 1] + 1 if t > 0 else 0
        end, value, number = ends[t], hashes[t], -1
        slot = value & mask
        while slots[slot] != -1 and number < 0:
            if slots[slot] >> SHIFT == value:
                word = slots[slot] & 4294967295
                first = word_ends[word - 1] + 1 if word > 0 else 0
                if _same(text, begin, end, words, first, word_ends[word]):
                    number = word
            slot = (slot + 1) & mask
        if number < 0 and grows:
            number = count[0]
            first = word_ends[number - 1] + 1 if number > 0 else 0
            if number >= word_ends.shape[0] or first + end - begin >= words.shape[0]:
                return t
            for n in range(end - begin):
                words[first + n] = text[begin + n]
            words[first + end - begin] = NEWLINE
            word_ends[number] = first + end - begin
            slots[slot] = (value << SHIFT) | number
            count[0] += 1
        out[t] = number
    return size
