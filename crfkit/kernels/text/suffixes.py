"""Loops over the letters of words: their order, and a tree of what they end in.

Shapes: ``W`` words, ``n`` letters of all of them, ``C`` slots of the table of pairs that holds the
tree (:mod:`crfkit.kernels.text.hashing`): a node is the number of a pair of its parent and a letter
before it, from `N_GROUPS` on; the groups of words are the roots.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.text.hashing import SHIFT, Pairs, pair_slot

N_GROUPS = 2


class Ends(NamedTuple):
    """Words of letters, from `starts` on and before `ends`."""

    letters: CodeArray  # (n,)
    starts: IntArray  # (W,)
    ends: IntArray  # (W,)
    groups: CodeArray  # (W,) 0 or 1


class Owners(NamedTuple):
    """Of each pair a word that ends so, ``-1 - word`` where there are several, and its letters."""

    words: CodeArray  # (C // 2,)
    sizes: CodeArray  # (C // 2,)


@kernel
def letters_pack(
    letters: CodeArray,  # (n,)
    starts: IntArray,  # (W,)
    ends: IntArray,  # (W,)
    ranks: IntArray,  # from 1 on, of letters
    bits: int,
    width: int,
    out: IntArray,  # (W,) out
) -> None:
    """``out[w]`` is a number of so many letters of a word, from `starts` on, each of some bits.

    What is behind the end of the word is 0.
    """
    for w in range(starts.shape[0]):
        number = 0
        for place in range(starts[w], starts[w] + width):
            number <<= bits
            if place < ends[w]:
                number |= ranks[letters[place]]
        out[w] = number


@part
def _add(node: int, letter: int, slot: int, pairs: Pairs) -> int:
    """Add a pair, which belongs to an empty slot; returns its number."""
    number: int = pairs.n_keys[0]
    pairs.slots[slot] = node * SHIFT + letter
    pairs.places[slot] = number
    pairs.keys[number] = pairs.slots[slot]
    pairs.n_keys[0] += 1
    return number


@kernel
def suffixes_learn(words: Ends, start: int, most: int, pairs: Pairs, owners: Owners) -> int:
    """Add the suffixes of words, from word `start` on, of at most so many letters.

    A suffix that one word has is a leaf: the longer ones of that word are added when there is a
    second word. Returns the word before which all is done: W, or where there may be no room.
    """
    letters, begins, ends = words.letters, words.starts, words.ends
    size: int = ends.shape[0]
    for w in range(start, size):
        if pairs.n_keys[0] + most + 1 > pairs.keys.shape[0]:
            return w
        node = int(words.groups[w])
        for length in range(1, min(most, ends[w] - begins[w]) + 1):
            letter = int(letters[ends[w] - length])
            slot = pair_slot(node, letter, pairs.slots)
            if pairs.slots[slot] == -1:
                number = _add(node, letter, slot, pairs)
                owners.words[number], owners.sizes[number] = w, length
                break
            number = int(pairs.places[slot])
            node, other = number + N_GROUPS, int(owners.words[number])
            if other >= 0:
                owners.words[number] = -1 - other
                if length < most and ends[other] - begins[other] > length:
                    letter = int(letters[ends[other] - length - 1])
                    number = _add(node, letter, pair_slot(node, letter, pairs.slots), pairs)
                    owners.words[number], owners.sizes[number] = other, length + 1
    return size


@kernel
def suffixes_find(
    words: Ends,
    most: int,
    pairs: Pairs,
    names: IntArray,  # of groups and nodes, -1 of those that are left out
    out: IntArray,  # (W,) out
) -> None:
    """``out[w]`` is the name of the longest suffix of a word, of at most so many letters."""
    for w in range(words.ends.shape[0]):
        node = int(words.groups[w])
        for length in range(1, min(most, words.ends[w] - words.starts[w]) + 1):
            slot = pair_slot(node, int(words.letters[words.ends[w] - length]), pairs.slots)
            if pairs.slots[slot] == -1 or names[pairs.places[slot] + N_GROUPS] < 0:
                break
            node = int(pairs.places[slot]) + N_GROUPS
        out[w] = names[node]
