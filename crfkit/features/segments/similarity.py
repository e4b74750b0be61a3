"""Similarity of texts to the nearest entry of a lexicon (Cohen and Sarawagi 2004).

All of these are exact: entries are left out only where they cannot be the nearest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import frozen
from crfkit.features._lexicons import BLANK
from crfkit.features.segments.words import Trie, number_entries
from crfkit.features.templates.tables import PairTable
from crfkit.kernels.text import overlap
from crfkit.kernels.text.edit import BITS, LEVELS, edit_nearest, letters_bag
from crfkit.kernels.text.overlap import overlap_nearest, squares_left

JACCARD, TFIDF, EDIT = "jaccard", "tfidf", "edit"
# What a similarity must be at least to be an attribute, if nothing else is said: any two strings
# are a little similar by their edit distance.
LEAST = {JACCARD: 0.0, TFIDF: 0.0, EDIT: 0.5}
_WORK = 1 << 22  # pairs of words, or of texts and characters, between two looks at Ctrl-C
_BELOW = 1 - 1e-9  # rounding must not leave out what is as similar as asked for


class Lexicon:
    """Different entries, of words parted by blanks, and what finds those that are like texts."""

    def __init__(self, entries: list[str]) -> None:
        self.entries = entries

    @cached_property
    def known(self) -> frozenset[str]:
        """The entries."""
        return frozenset(self.entries)

    @cached_property
    def trie(self) -> Trie:
        """The entries by their words."""
        return Trie.of(self.entries)

    @cached_property
    def overlap(self) -> WordOverlap:
        """The entries that have a word."""
        return WordOverlap(self.entries)

    @cached_property
    def letters(self) -> Letters:
        """The entries by their characters."""
        return Letters(self.entries)

    def similarities(self, kind: str, texts: list[str], least: float) -> FloatArray:
        """Return the similarity of each text and its nearest entry, (n,), 0 if below `least`.

        That is the Jaccard index of the sets of words; the cosine of the words' TF-IDF weights; 1
        less the edit distance over the length of the longer one.
        """
        if kind == EDIT:
            return self.letters.nearest(texts, least)
        find = self.overlap.jaccard if kind == JACCARD else self.overlap.tfidf
        return find(texts, least)


class _Weighted(NamedTuple):
    """Words with weights, and the size of each text."""

    words: sp.csr_array
    size: FloatArray

    def take(self, rows: IntArray | slice) -> _Weighted:
        """Return some of the texts."""
        return _Weighted(sp.csr_array(self.words[rows]), self.size[rows])

    @property
    def rest(self) -> FloatArray:
        """The sum of squares of each text from each word on, shape (V,)."""
        out = np.empty(self.words.nnz)
        squares_left(frozen(self.words.indptr.astype(np.int64)), frozen(self.words.data), out)
        return out


class _Measure(NamedTuple):
    """A similarity ``p / (a + b - c p)`` of the product of weights and the sizes."""

    entries: overlap.Entries
    sizes: FloatArray  # b, shape (E,)
    shared: float  # c
    most: Callable[[FloatArray], FloatArray]  # largest p, from the squares that a text has left


class WordOverlap:
    """Similarities to E entries by common words."""

    def __init__(self, entries: list[str]) -> None:
        df = Counter(word for entry in entries for word in set(_words(entry)))
        rising = sorted(df, key=lambda word: (df[word], word))
        self.index = {word: number for number, word in enumerate(rising)}
        self.idf = np.log((1 + len(entries)) / (1 + np.array([df[word] for word in rising]))) + 1
        self.other_idf = np.log(1 + len(entries)) + 1
        counts, _ = self._counts(entries)
        sizes = np.diff(counts.indptr)
        places = np.argsort(counts.indices, kind="stable")
        owners = np.repeat(np.arange(len(entries)), sizes)[places]
        heads = np.searchsorted(counts.indices[places], np.arange(len(rising) + 1))
        index = (
            frozen(counts.indptr.astype(np.int64)), frozen(counts.indices.astype(np.int32)),
            frozen(heads.astype(np.int64)), frozen(places.astype(np.int64)),
            frozen(owners.astype(np.int32)),
        )  # fmt: skip

        def measure(listed: _Weighted, shared: float, most: Any) -> _Measure:
            found = listed.words.data, listed.rest[places], listed.size[owners]
            return _Measure(overlap.Entries(*index, *map(frozen, found)), listed.size, shared, most)

        ones = _with_data(counts, np.ones(counts.nnz))
        self._jaccard = measure(_Weighted(ones, sizes.astype(np.float64)), 1.0, np.positive)
        weights = counts.data * self.idf[counts.indices]
        norms = np.sqrt(_row_sums(counts.indptr, weights**2))
        scaled = _with_data(counts, weights / np.repeat(norms, sizes))
        self._cosine = measure(_Weighted(scaled, np.zeros(len(entries))), 0.0, np.sqrt)

    def jaccard(self, texts: list[str], least: float = 0.0) -> FloatArray:
        """Return the largest Jaccard index of the words of each text and of an entry, (n,)."""
        known, others = self._counts(texts)
        size = np.diff(known.indptr) + np.diff(others.indptr)
        sets = _with_data(known, np.ones(known.nnz))
        return self._nearest(_Weighted(sets, size.astype(np.float64)), self._jaccard, least)

    def tfidf(self, texts: list[str], least: float = 0.0) -> FloatArray:
        """Return the largest cosine of the TF-IDF weights of each text and an entry, shape (n,).

        A word that occurs in ``df`` of the E entries has the weight ``log((1 + E) / (1 + df)) + 1``
        times its count (Salton and Buckley 1988, smoothed as scikit-learn's).
        """
        known, others = self._counts(texts)
        weighted = _with_data(known, known.data * self.idf[known.indices])
        squares = _row_sums(known.indptr, weighted.data**2)
        norms = np.sqrt(squares + self.other_idf**2 * _row_sums(others.indptr, others.data**2))
        return self._nearest(_Weighted(weighted, norms), self._cosine, least)

    def _nearest(self, texts: _Weighted, measure: _Measure, least: float) -> FloatArray:
        """Return the largest similarity of each text, (n,), 0 if below `least`."""
        words = texts.words
        rows = number_entries(words.indices, words.data, words.indptr)
        kinds = np.unique(texts.size, return_inverse=True)[1].astype(np.int32)
        rows = PairTable().number(rows, kinds)
        _, chosen, place = np.unique(rows, return_index=True, return_inverse=True)
        different, (entries, sizes, shared, most) = texts.take(chosen), measure

        def search(part: slice) -> FloatArray:
            some = different.take(part)
            ptr, rest = some.words.indptr.astype(np.int64), some.rest
            bound = most(rest) / np.repeat(some.size, np.diff(ptr))
            nearest, products = np.empty(len(ptr) - 1, np.int32), np.empty(len(ptr) - 1)
            overlap_nearest(
                overlap.Texts(
                    frozen(ptr), frozen(some.words.indices.astype(np.int32)),
                    frozen(some.words.data), frozen(rest), frozen(bound), frozen(some.size),
                ),
                entries, shared, least * _BELOW, np.full(len(sizes), -1, np.int32),
                nearest, products,
            )  # fmt: skip
            both = some.size + sizes[nearest]
            scores = products / np.where(nearest >= 0, both - shared * products, 1.0)
            return np.minimum(scores, 1.0)

        lengths = np.diff(entries.heads)[different.words.indices]
        values = _in_parts(_row_sums(different.words.indptr, lengths), search)[place]
        return np.where(values >= least, values, 0.0)

    def _counts(self, texts: list[str]) -> tuple[sp.csr_array, sp.csr_array]:
        """Return the counts of the entries' words in texts, shape (n, W), and of all others."""
        rows = [_words(text) for text in texts]
        size, new = len(self.index), dict[str, int]()
        codes = [
            self.index[word] if word in self.index else size + new.setdefault(word, len(new))
            for row in rows
            for word in row
        ]
        ptr = np.concatenate([[0], np.cumsum(list(map(len, rows)))]).astype(np.int64)
        counts = sp.csr_array((np.ones(len(codes)), codes, ptr), shape=(len(rows), size + len(new)))
        counts.sum_duplicates()
        return sp.csr_array(counts[:, :size]), sp.csr_array(counts[:, size:])


def _words(text: str) -> list[str]:
    return [word for word in text.split(BLANK) if word]


def _with_data(matrix: sp.csr_array, data: FloatArray) -> sp.csr_array:
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _row_sums(indptr: IntArray, data: FloatArray | IntArray) -> FloatArray:
    """Return the sum of each row, its entries added one after the other."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(rows, data, len(indptr) - 1).astype(np.float64)


def _in_parts(work: FloatArray | IntArray, search: Callable[[slice], FloatArray]) -> FloatArray:
    """Return what a search finds for all texts, (n,), in short parts that threads share."""
    parts = np.cumsum(work) // _WORK
    edges = np.flatnonzero(np.diff(parts, prepend=-1, append=-1)).tolist()
    with ThreadMap(None) as threads:
        found = threads(search, [slice(*pair) for pair in pairwise(edges)])
    return np.concatenate([np.zeros(0), *found])


class Letters:
    """Different entries by their characters."""

    def __init__(self, entries: list[str]) -> None:
        codes, self._starts = _characters(sorted(entries, key=len))
        self._known, numbers = np.unique(codes, return_inverse=True)
        self._letters: CodeArray = (numbers + 1).astype(np.int32)
        sizes = np.diff(self._starts)
        self._longest = int(sizes[-1])
        self._by_size: IntArray = np.searchsorted(sizes, np.arange(self._longest + 2))
        self._bags = _bags(self._letters, self._starts)

    def candidates(self, sizes: IntArray, least: float) -> IntArray:
        """Return how many entries have a length that a text of each of these may be near, (n,)."""
        longest = max(int(sizes.max(initial=0)), self._longest)
        most, every = _allowed(longest, least), np.arange(longest + 1)
        near, counts = np.zeros(longest + 1, np.int64), np.diff(self._by_size)
        for size in np.flatnonzero(counts).tolist():
            near += counts[size] * (np.abs(every - size) <= most[np.maximum(every, size)])
        near[0] = 0
        return near[sizes]

    def nearest(self, texts: list[str], least: float) -> FloatArray:
        """Return 1 less edit distance by length of the longer one of the nearest entry, (n,)."""
        codes, ptr = _characters(texts)
        place = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        text = np.where(self._known[place] == codes, place + 1, 0).astype(np.int32)
        sizes = np.diff(ptr)
        most = frozen(_allowed(max(int(sizes.max(initial=0)), self._longest), least))

        def search(part: slice) -> FloatArray:
            begin, end = part.start, part.stop
            letters, bounds = text[ptr[begin] : ptr[end]], ptr[begin : end + 1] - ptr[begin]
            words = -(-int(sizes[part].max()) // BITS)
            out = np.zeros((end - begin, 2), np.int64)
            edit_nearest(
                frozen(letters), frozen(bounds), frozen(_bags(letters, bounds)),
                frozen(self._letters), frozen(self._starts), frozen(self._bags),
                frozen(self._by_size), most, np.zeros((len(self._known) + 1, words), np.int64),
                np.zeros((2, words), np.int64), out,
            )  # fmt: skip
            return 1 - out[:, 0] / out[:, 1]

        return _in_parts(self.candidates(sizes, least) * sizes, search)


def _bags(letters: CodeArray, ptr: IntArray) -> IntArray:
    """Return which characters strings have, shape (n, LEVELS), as a search compares them."""
    out = np.zeros((len(ptr) - 1, LEVELS), np.int64)
    letters_bag(frozen(letters), frozen(ptr), out)
    return out


def _allowed(longest: int, least: float) -> IntArray:
    """Return the largest distance by the length of the longer string, shape (longest + 1,)."""
    sizes = np.arange(longest + 1)
    most: IntArray = np.clip(np.ceil((1 - least) * sizes).astype(np.int64), 0, sizes)
    most[1 - most / np.maximum(sizes, 1) < least] -= 1
    return most


def _characters(texts: list[str]) -> tuple[CodeArray, IntArray]:
    """Return the characters of all texts, and where those of each begin, shape (n + 1,)."""
    whole = "".join(texts).encode("utf-32-le", "surrogatepass")
    ptr = np.concatenate([[0], np.cumsum(list(map(len, texts)))]).astype(np.int64)
    return np.frombuffer(whole, np.int32), ptr
