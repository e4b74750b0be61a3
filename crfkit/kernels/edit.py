"""Edit distances of texts to the nearest of many entries.

Shapes: ``n`` texts and ``E`` entries over ``A`` characters, numbered from 1 (0 is a character that
no entry has); ``W`` words of 62 bits for the longest text. Bits of a signed number above these
would change its sign.
"""

from __future__ import annotations

from crfkit._jit import kernel, part
from crfkit._types import CodeArray, IntArray

BITS = 62
FULL = (1 << BITS) - 1
BAGS = 32  # so many counts of characters are compared before anything else


@part
def _difference(bag: CodeArray, bags: CodeArray, e: int) -> int:
    """``sum_b |bag[b] - bags[e, b]|``."""
    total = 0
    for b in range(bag.shape[0]):
        total += abs(bag[b] - bags[e, b])
    return int(total)


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
    letters: CodeArray,  # (V,) characters of all entries
    starts: IntArray,  # (E + 1,) where those of each entry begin
    bags: CodeArray,  # (E, BAGS) how many characters of an entry have each remainder
    allowed: IntArray,  # the largest distance, by the length of the longer one
    masks: IntArray,  # (A + 1, W) zeros, for work
    bag: CodeArray,  # (BAGS,) zeros, for work
    columns: IntArray,  # (2, W) for work
    out: IntArray,  # (n, 2) out
) -> None:
    """``out[i]`` is (d, m) with the least d / m over the entries, (1, 1) where none is near.

    ``d`` is the edit distance of a text and an entry, and ``m`` the length of the longer one; d may
    be ``allowed[m]`` at most. It is at least half of what the counts of characters and the lengths
    differ by together, which leaves out most entries.
    """
    for i in range(ptr.shape[0] - 1):
        begin, size = ptr[i], ptr[i + 1] - ptr[i]
        for j in range(size):
            letter = text[begin + j]
            bag[letter % BAGS] += 1
            masks[letter, j // BITS] |= 1 << (j % BITS)
        distance, longer = 1, 1
        for e in range(starts.shape[0] - 1):
            length = starts[e + 1] - starts[e]
            both, gap = max(size, length), abs(size - length)
            most = min(allowed[both], (distance * both - 1) // longer)
            if gap > most or _difference(bag, bags, e) + gap > 2 * most:
                continue
            found = _distance(letters, starts[e], length, masks, size, most, columns)
            if found <= most:
                distance, longer = found, both
        for j in range(size):
            letter = text[begin + j]
            bag[letter % BAGS] = 0
            masks[letter, j // BITS] = 0
        out[i, 0] = distance
        out[i, 1] = longer
