"""Words letter by letter, many at a time: what they consist of, and what they end in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from crfkit._types import BoolArray, ByteArray, CodeArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.features.templates.tables import PairTable
from crfkit.features.word_table import SEPARATOR
from crfkit.kernels.text.hashing import SHIFT
from crfkit.kernels.text.suffixes import (
    N_GROUPS,
    Ends,
    Owners,
    letters_pack,
    suffixes_find,
    suffixes_learn,
)

LETTERS = 0x110000  # of Unicode
KNOWN, UPPER, LOWER, NO_LETTER, ALPHANUMERIC, DIGIT, DECIMAL, HYPHEN = (1 << n for n in range(8))
SHAPES = ".", "0", "AA", "A", "-", "a"
NONE = -1
_ENCODING = "utf-32-le"
_ZERO, _CLOSING = ord("0"), ">"
_kinds = np.zeros(LETTERS, np.uint8)  # of characters that were met


def kinds_of(letters: CodeArray) -> ByteArray:
    """Return what characters are, as sums of bits, shape (n,)."""
    found: ByteArray = _kinds[letters]
    new = letters[found == 0]
    if len(new):
        for letter in set(new.tolist()):
            _kinds[letter] = _kind(chr(letter))
        found = _kinds[letters]
    return found


def _kind(letter: str) -> int:
    is_upper = letter.isupper()
    bits = {
        UPPER: is_upper, LOWER: letter.islower() or (letter.istitle() and not is_upper),
        NO_LETTER: not letter.isalpha(), ALPHANUMERIC: letter.isalnum(), DIGIT: letter.isdigit(),
        DECIMAL: letter.isdecimal(), HYPHEN: letter == "-",
    }  # fmt: skip
    return KNOWN + sum(bit for bit, holds in bits.items() if holds)


class Letters(NamedTuple):
    """The characters of words, each of which has one more behind it that is none of its own."""

    codes: CodeArray  # (n,)
    starts: IntArray  # (W,) where the words begin
    ends: IntArray  # (W,)

    @classmethod
    def of(cls, words: Sequence[str], in_lower_case: bool = False) -> Self:
        """Return the characters of words, with `in_lower_case` those of words in lower case."""
        text = "".join([SEPARATOR.join(words), SEPARATOR])
        found = cls.of_text(text.lower() if in_lower_case else text)
        if len(found.ends) == len(words):
            return found
        if in_lower_case:
            return cls.of([word.lower() for word in words])
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        ends = np.cumsum(lengths + 1) - 1
        return cls(found.codes, ends - lengths, ends)

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the characters of lines, each of which ends with a newline."""
        found = np.frombuffer(text.encode(_ENCODING, "surrogatepass"), "<i4")
        codes = found.astype(np.int32, copy=False)
        ends = np.flatnonzero(codes == ord(SEPARATOR))
        return cls(codes, np.concatenate([[0], ends + 1])[:-1], ends)

    @property
    def lengths(self) -> IntArray:
        """How many characters each word has, (W,)."""
        return self.ends - self.starts

    def of_words(self, chosen: BoolArray) -> Self:
        """Return the characters of some words."""
        return self._replace(starts=self.starts[chosen], ends=self.ends[chosen])

    def spelling(self) -> Spelling:
        """Return how the words are written."""
        kinds, starts = kinds_of(self.codes), self.starts
        kinds[self.ends] = 0
        if not len(starts):
            nothing = np.zeros(0, bool)
            return Spelling(nothing, nothing, np.zeros(0, np.int64))
        every, several = np.bitwise_or.reduceat(kinds, starts), self.lengths > 1
        capital = (kinds[starts] & UPPER) > 0
        upper = ((every & UPPER) > 0) & ((every & LOWER) == 0) & several
        is_word = ((every & NO_LETTER) == 0) & (every != 0)
        tests = [
            ~is_word & ((every & ALPHANUMERIC) == 0), ~is_word & ((every & DIGIT) > 0),
            capital & upper, capital, (every & HYPHEN) > 0,
        ]  # fmt: skip
        shape = np.select(tests, range(len(tests)), len(tests)).astype(np.int64)
        return Spelling(capital, upper, shape)

    def before(self, letter: str) -> Self:
        """Return the words, each with a letter more at its end."""
        lengths = self.lengths + 1
        ends = np.cumsum(lengths)
        places = np.arange(int(lengths.sum())) - np.repeat(ends - lengths - self.starts, lengths)
        places[ends - 1] = 0
        codes: CodeArray = self.codes[places]
        codes[ends - 1] = ord(letter)
        return type(self)(codes, ends - lengths, ends)

    def grouped(self, groups: CodeArray) -> Ends:
        """Return the words with their groups, (W,), for kernels."""
        return Ends(
            frozen(self.codes), frozen(self.starts), frozen(self.ends), frozen(groups)
        )  # fmt: skip

    def strings(self) -> list[str]:
        """Return the words."""
        text = self.codes.astype("<i4", copy=False).tobytes().decode(_ENCODING, "surrogatepass")
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [text[begin:end] for begin, end in pairs]

    def order(self) -> IntArray:
        """Return the places of the words, (W,), in the order of their characters.

        Several characters are compared at a time, as one number; then the next ones of those words
        that are the same so far.
        """
        present = np.zeros(int(self.codes.max(initial=0)) + 1, bool)
        present[self.codes] = True
        ranks = np.cumsum(present)
        bits = max(1, int(ranks[-1]).bit_length())
        width, depth, longest = 63 // bits, 0, int(self.lengths.max(initial=0))
        order = left = np.arange(len(self.starts))
        group = np.zeros(len(order), np.int64)
        while len(left) and depth < longest:
            words, keys = order[left], np.empty(len(left), np.int64)
            starts, ends = frozen(self.starts[words] + depth), frozen(self.ends[words])
            letters_pack(frozen(self.codes), starts, ends, frozen(ranks), bits, width, keys)
            sort = np.lexsort((keys, group)) if depth else np.argsort(keys, kind="stable")
            order = order.copy()
            order[left], keys, group = words[sort], keys[sort], group[sort]
            same = np.zeros(len(left) + 1, bool)  # as the one before
            same[1:-1] = (keys[1:] == keys[:-1]) & (group[1:] == group[:-1])
            tied = np.flatnonzero(same[:-1] | same[1:])
            group, left, depth = np.cumsum(~same[:-1])[tied], left[tied], depth + width
        return order

    def without_digits(self) -> Self:
        """Return the characters with all digits 0."""
        is_digit = (kinds_of(self.codes) & DECIMAL) > 0
        return self._replace(codes=np.where(is_digit, np.int32(_ZERO), self.codes))


class Spelling(NamedTuple):
    """How words are written."""

    capital: BoolArray  # (W,) whether they begin with a capital
    upper: BoolArray  # (W,) whether they have several letters, none of which is in lower case
    shape: IntArray  # (W,) what they consist of, a place in `SHAPES`


class RepeatedSuffixes(NamedTuple):
    """Suffixes that two words of a group have, among others."""

    table: PairTable  # of suffixes, each the number of one with a letter less, and a letter
    numbers: IntArray  # (n,) those that two words have
    groups: CodeArray  # (n,) 0 or 1
    texts: Letters  # (n,)

    @classmethod
    def of(cls, words: Letters, groups: CodeArray, most: int) -> Self:
        """Return the suffixes of words of at most so many letters, given their groups, (W,)."""
        table = PairTable(room=2 * len(groups))
        given = words.grouped(groups)
        owners = Owners(*np.empty((2, len(table.pairs.keys)), np.int32))
        done = suffixes_learn(given, 0, most, table.pairs, owners)
        while done < len(groups):
            table.grow()
            more = np.empty((2, len(table.pairs.keys) - len(owners.words)), np.int32)
            owners = Owners(*np.hstack([owners, more]))
            done = suffixes_learn(given, done, most, table.pairs, owners)
        numbers = np.flatnonzero(owners.words[: len(table)] < 0)
        example, sizes = -1 - owners.words[numbers], owners.sizes[numbers]
        ends = words.ends[example]
        return cls(table, numbers, groups[example], Letters(words.codes, ends - sizes, ends))

    def order(self) -> IntArray:
        """Return the places of the suffixes, (n,), in the order of their texts before a ">"."""
        return self.texts.before(_CLOSING).order()

    def named(self, names: IntArray) -> Endings:
        """Return the tree of the suffixes, (n,), which stand for `names`."""
        every = np.full(N_GROUPS + len(self.table), NONE)
        every[self.numbers + N_GROUPS] = names
        return Endings(self.table, every)


class Endings(NamedTuple):
    """A tree of suffixes of words in two groups: a node has one letter more than its parent."""

    table: PairTable  # of nodes: the number of the parent, and a letter
    names: IntArray  # what the groups, and nodes, stand for; -1 for nothing

    @classmethod
    def of(cls, suffixes: Sequence[str], groups: CodeArray, names: IntArray) -> Self:
        """Return the tree of suffixes, given their groups, 0 or 1, and what they stand for, (n,).

        Those of which another one, without its first letter, is none, are left out.
        """
        table, words, order = PairTable(), Letters.of(suffixes), list[IntArray]()
        nodes, left, lengths = groups.copy(), np.arange(len(groups)), words.lengths
        for size in range(1, int(lengths.max(initial=0)) + 1):
            left = left[lengths[left] >= size]
            letters, ends = words.codes[words.ends[left] - size], lengths[left] == size
            table.number(nodes[left[ends]], letters[ends])
            order.append(names[left[ends]])
            numbers = table.find(nodes[left], letters)
            left = left[numbers != NONE]
            nodes[left] = numbers[numbers != NONE] + N_GROUPS
        return cls(table, np.concatenate([np.full(N_GROUPS, NONE), *order]))

    def find(self, words: Letters, groups: CodeArray, most: int) -> IntArray:
        """Return what the longest suffix of each word stands for, of at most so many letters.

        Shape (W,), -1 where there is none.
        """
        found = np.empty(len(groups), np.int64)
        suffixes_find(words.grouped(groups), most, self.table.pairs, frozen(self.names), found)
        return found

    def parents(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return what suffixes stand for, those without their first letters, and their groups.

        Of single letters, what is left stands for -1; of others, no group is told.
        """
        named = np.flatnonzero(self.names >= 0)
        nodes = (self.table.keys // SHIFT)[named - N_GROUPS]
        return self.names[named], self.names[nodes], np.minimum(nodes, N_GROUPS - 1)
