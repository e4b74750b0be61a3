"""Edit distances of texts to the nearest of many entries.

Shapes: ``n`` texts and ``E`` entries, the shorter ones first, over ``A`` characters, numbered from
1 (0 is a character that no entry has); ``M`` characters at most in an entry; ``W`` words of 62
bits for the longest text. Bits of a signed number above these would change its sign.
"""

from __future__ import annotations

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import kernel, part

BITS = 62
FULL = (1 << BITS) - 1
LEVELS = 4  # characters are counted up to this number before anything else is compared
_ONES, _PAIRS, _FOURS = 0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F


@kernel
def letters_bag(
    letters: CodeArray,  # (V,) characters of some strings
    ptr: IntArray,  # (n + 1,) where those of each begin
    out: IntArray,  # (n, LEVELS) zeros, out
) -> None:
    """Bit ``b`` of ``out[i, k]`` is set if string i has more than k characters ``62 q + b``."""
    for i in range(ptr.shape[0] - 1):
        for j in range(ptr[i], ptr[i + 1]):
            bit = 1 << (int(letters[j]) % BITS)
            for k in range(LEVELS):
                if not out[i, k] & bit:
                    out[i, k] |= bit
                    break


@part
def _bits(word: int) -> int:
    """Return how many bits of a word of 62 bits are set (Knuth 2009, section 7.1.3)."""
    word -= (word >> 1) & _ONES
    word = (word & _PAIRS) + ((word >> 2) & _PAIRS)
    word = (word + (word >> 4)) & _FOURS
    word += word >> 8
    word += word >> 16
    return int((word + (word >> 32)) & 127)


@part
def _difference(bag: IntArray, i: int, bags: IntArray, e: int) -> int:
    """``sum_b |n_b - m_b|`` of the counts of characters, each up to LEVELS."""
    total = 0
    for k in range(LEVELS):
        total += _bits(bag[i, k] ^ bags[e, k])
    return total


@part
def _distance(
    letters: CodeArray,  # (V,)
    begin: int,
    length: int,
    masks: IntArray,  # (A + 1, W) bit j of masks[c]: whether character j of the text is c
    size: int,
    most: int,
    columns: IntArray,  # (2, W) for work
) -> int:
    """Return the edit distance of a text and an entry, or more than `most` if it is larger.

    ``D[j, i] = min(D[j - 1, i] + 1, D[j, i - 1] + 1, D[j - 1, i - 1] + cost)``, of which a column
    is kept as two sets of bits: where it rises by 1 from each row to the next, and where it falls
    (Myers 1999, in blocks as of Hyyro 2003).
    """
    words = (size + BITS - 1) // BITS
    for w in range(words):
        columns[0, w], columns[1, w] = FULL, 0
    score = size
    for j in range(length):
        step = 1  # of the first row, from each character of the entry to the next
        for w in range(words):
            equal, rise, fall = masks[letters[begin + j], w], columns[0, w], columns[1, w]
            last = 1 << (BITS - 1 if w < words - 1 else (size - 1) % BITS)
            either = equal | fall
            if step < 0:
                equal |= 1
            across = ((((equal & rise) + rise) ^ rise) | equal) & FULL
            up, down = fall | (FULL ^ (across | rise)), rise & across
            before, step = step, 0
            if up & last:
                step = 1
            elif down & last:
                step = -1
            up, down = (up << 1) & FULL, (down << 1) & FULL
            if before > 0:
                up |= 1
            elif before < 0:
                down |= 1
            columns[0, w], columns[1, w] = down | (FULL ^ (either | up)), up & either
        score += step
        if score - (length - 1 - j) > most:
            return most + 1
    return int(score)


@kernel
def edit_nearest(
    text: CodeArray,  # (C,) characters of all texts
    ptr: IntArray,  # (n + 1,) where those of each text begin
    bag: IntArray,  # (n, LEVELS) by letters_bag
    letters: CodeArray,  # (V,) characters of all entries
    starts: IntArray,  # (E + 1,) where those of each entry begin
    bags: IntArray,  # (E, LEVELS) by letters_bag
    by_size: IntArray,  # (M + 2,) the first entry of each length or more
    allowed: IntArray,  # the largest distance, by the length of the longer one
    masks: IntArray,  # (A + 1, W) zeros, for work
    columns: IntArray,  # (2, W) for work
    out: IntArray,  # (n, 2) out
) -> None:
    """``out[i]`` is (d, m) with the least d / m over the entries, (1, 1) where none is near.

    ``d`` is the edit distance of a text and an entry, and ``m`` the length of the longer one; d may
    be ``allowed[m]`` at most. It is at least half of what the counts of characters and the lengths
    differ by together, which leaves out most entries; those of the most similar lengths are the
    first, until all others differ too much by that alone.
    """
    longest = by_size.shape[0] - 2
    for i in range(ptr.shape[0] - 1):
        begin, size = ptr[i], ptr[i + 1] - ptr[i]
        for j in range(size):
            masks[text[begin + j], j // BITS] |= 1 << (j % BITS)
        distance, longer = 1, 1
        for gap in range(max(size - longest, 0), max(size, longest - size) + 1):
            some = False
            for side in range(1 if gap == 0 else 2):
                length = size + gap if side == 0 else size - gap
                if length < 0 or length > longest:
                    continue
                both = max(size, length)
                if min(allowed[both], (distance * both - 1) // longer) < gap:
                    continue
                some = True
                for e in range(by_size[length], by_size[length + 1]):
                    most = min(allowed[both], (distance * both - 1) // longer)
                    if _difference(bag, i, bags, e) + gap > 2 * most:
                        continue
                    found = _distance(letters, starts[e], length, masks, size, most, columns)
                    if found <= most:
                        distance, longer = found, both
            if not some:
                break
        for j in range(size):
            masks[text[begin + j], j // BITS] = 0
        out[i, 0] = distance
        out[i, 1] = longer
