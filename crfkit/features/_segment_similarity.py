"""How similar texts are to the nearest entry of a lexicon (Cohen and Sarawagi 2004).

All of these are exact: entries are left out only where they cannot be the nearest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from crfkit._jit import frozen
from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.features._segment_words import BLANK, Trie
from crfkit.kernels.edit import BAGS, BITS, edit_nearest

JACCARD, TFIDF, EDIT = "jaccard", "tfidf", "edit"
# What a similarity must be at least to be an attribute, if nothing else is said: any two strings
# are a little similar by their edit distance.
LEAST = {JACCARD: 0.0, TFIDF: 0.0, EDIT: 0.5}
_ENTRIES = 1 << 20  # of a product that is made at a time


class Lexicon:
    """Entries, and what finds those that are equal or similar to texts.

    Parameters
    ----------
    entries : list of str
        Different entries, the words of each parted by single blanks.
    """

    def __init__(self, entries: list[str]) -> None:
        self.entries = entries

    @cached_property
    def known(self) -> frozenset[str]:
        """The entries."""
        return frozenset(self.entries)

    @cached_property
    def trie(self) -> Trie:
        """The entries by their words."""
        return Trie(self.entries)

    @cached_property
    def overlap(self) -> WordOverlap:
        """The entries that have a word."""
        return WordOverlap(self.entries)

    @cached_property
    def letters(self) -> Letters:
        """The entries by their characters."""
        return Letters(self.entries)

    def similarities(self, kind: str, texts: list[str], least: float) -> FloatArray:
        """Return the similarity of each text and its nearest entry, shape (n,), 0 if too little.

        Parameters
        ----------
        kind : {"jaccard", "tfidf", "edit"}
            Jaccard index of the sets of words; cosine of the words' TF-IDF weights; 1 less the edit
            distance over the length of the longer one.
        texts : list of str
        least : float
            Similarities below it are 0.
        """
        if kind == EDIT:
            return self.letters.nearest(texts, least)
        find = self.overlap.jaccard if kind == JACCARD else self.overlap.tfidf
        values = find(texts)
        return np.where(values >= least, values, 0.0)


class _Counts(NamedTuple):
    """How often words occur in texts: of the entries' words, (n, W), and of all others."""

    known: sp.csr_array
    others: sp.csr_array


class WordOverlap:
    """Similarities by common words.

    Parameters
    ----------
    entries : list of str
        The E entries.
    """

    def __init__(self, entries: list[str]) -> None:
        self.index: dict[str, int] = {}
        for entry in entries:
            for word in entry.split(BLANK):
                self.index.setdefault(word, len(self.index))
        counts = self._counts(entries).known
        self.sizes = np.diff(counts.indptr)
        self._sets = sp.csr_array(_with_data(counts, np.ones(counts.nnz)).T)
        df = np.bincount(counts.indices, minlength=len(self.index))
        self.idf = np.log((1 + len(entries)) / (1 + df)) + 1
        self.other_idf = np.log(1 + len(entries)) + 1
        weighted = _with_data(counts, counts.data * self.idf[counts.indices])
        norms = np.sqrt(_row_sums(weighted.indptr, weighted.data**2))
        scaled = _with_data(weighted, weighted.data / np.repeat(norms, self.sizes))
        self._weights = sp.csr_array(scaled.T)

    def jaccard(self, texts: list[str]) -> FloatArray:
        """Return the largest Jaccard index of the words of each text and of an entry, (n,)."""
        counts = self._counts(texts)
        size = np.diff(counts.known.indptr) + np.diff(counts.others.indptr)
        sets = _with_data(counts.known, np.ones(counts.known.nnz))

        def index(common: FloatArray, text: IntArray, entry: IntArray) -> FloatArray:
            found: FloatArray = common / (size[text] + self.sizes[entry] - common)
            return found

        return _largest(sets, self._sets, index)

    def tfidf(self, texts: list[str]) -> FloatArray:
        """Return the largest cosine of the TF-IDF weights of each text and an entry, shape (n,).

        A word that occurs in ``df`` of the E entries has the weight ``log((1 + E) / (1 + df)) + 1``
        times its count (Salton and Buckley 1988, smoothed as scikit-learn's).
        """
        known, others = self._counts(texts)
        weighted = _with_data(known, known.data * self.idf[known.indices])
        squares = _row_sums(known.indptr, weighted.data**2)
        norms = np.sqrt(squares + self.other_idf**2 * _row_sums(others.indptr, others.data**2))

        def cosine(product: FloatArray, text: IntArray, entry: IntArray) -> FloatArray:
            found: FloatArray = np.minimum(product / norms[text], 1.0)
            return found

        return _largest(weighted, self._weights, cosine)

    def _counts(self, texts: list[str]) -> _Counts:
        rows = [[word for word in text.split(BLANK) if word] for text in texts]
        size, new = len(self.index), dict[str, int]()
        codes = [
            self.index[word] if word in self.index else size + new.setdefault(word, len(new))
            for row in rows
            for word in row
        ]
        ptr = np.concatenate([[0], np.cumsum(list(map(len, rows)))]).astype(np.int64)
        counts = sp.csr_array((np.ones(len(codes)), codes, ptr), shape=(len(rows), size + len(new)))
        counts.sum_duplicates()
        return _Counts(sp.csr_array(counts[:, :size]), sp.csr_array(counts[:, size:]))


def _with_data(matrix: sp.csr_array, data: FloatArray) -> sp.csr_array:
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _row_sums(indptr: IntArray, data: FloatArray) -> FloatArray:
    """Return the sum of each row, its entries added one after the other."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(rows, data, len(indptr) - 1).astype(np.float64)


def _largest(
    texts: sp.csr_array,
    entries: sp.csr_array,
    score: Callable[[FloatArray, IntArray, IntArray], FloatArray],
) -> FloatArray:
    """Return the largest score of each text, shape (n,), of entries it has a word in common with.

    `texts` is (n, W) and `entries` (W, E); scores are made of the entries of their product, a part
    of the rows at a time.
    """
    work = _row_sums(texts.indptr, np.diff(entries.indptr)[texts.indices].astype(np.float64))
    parts = (np.cumsum(work) // _ENTRIES).astype(np.int64)
    best = np.zeros(texts.shape[0])
    edges = np.flatnonzero(np.diff(parts, prepend=-1, append=-1))
    for begin, end in zip(edges, edges[1:], strict=False):
        product = texts[begin:end] @ entries
        counts = np.diff(product.indptr)
        some = np.flatnonzero(counts)
        if len(some):
            rows = np.repeat(np.arange(begin, end), counts)
            scores = score(product.data, rows, product.indices)
            best[begin + some] = np.maximum.reduceat(scores, product.indptr[some])
    return best


class Letters:
    """Entries by their characters.

    Parameters
    ----------
    entries : list of str
        Different entries.
    """

    def __init__(self, entries: list[str]) -> None:
        codes, self._starts = _characters(entries)
        self._known, numbers = np.unique(codes, return_inverse=True)
        self._letters: CodeArray = (numbers + 1).astype(np.int32)
        sizes = np.diff(self._starts)
        self._sizes = np.unique(sizes)
        places = np.repeat(np.arange(len(entries)) * BAGS, sizes) + self._letters % BAGS
        counts = np.bincount(places, minlength=len(entries) * BAGS)
        self._bags: CodeArray = counts.reshape(-1, BAGS).astype(np.int32)

    def may_be_near(self, sizes: IntArray, least: float) -> NDArray[np.bool_]:
        """Return which texts of these lengths may have a similarity of at least `least`."""
        longest = int(max(sizes.max(initial=0), self._sizes[-1]))
        most, every = _allowed(longest, least), np.arange(longest + 1)
        near = np.zeros(longest + 1, bool)
        for size in self._sizes.tolist():
            near |= np.abs(every - size) <= most[np.maximum(every, size)]
        near[0] = False
        return near[sizes]

    def nearest(self, texts: list[str], least: float) -> FloatArray:
        """Return 1 less edit distance by length of the longer one of the nearest entry, (n,)."""
        codes, ptr = _characters(texts)
        place = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        text = np.where(self._known[place] == codes, place + 1, 0).astype(np.int32)
        longest = int(np.diff(ptr).max(initial=0))
        words = -(-longest // BITS)
        out = np.zeros((len(texts), 2), np.int64)
        edit_nearest(
            frozen(text), frozen(ptr), frozen(self._letters), frozen(self._starts),
            frozen(self._bags), frozen(_allowed(max(longest, int(self._sizes[-1])), least)),
            np.zeros((len(self._known) + 1, words), np.int64), np.zeros(BAGS, np.int32),
            np.zeros((2, words), np.int64), out,
        )  # fmt: skip
        return 1 - out[:, 0] / out[:, 1]


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
